//! Implements the port [`Sessions`]: alerts, leases and settlement.

use std::time::Duration;

use diesel::prelude::*;
use uuid::Uuid;

use tarsy_config::Retention;
use tarsy_core::ids::{SessionId, WorkerId};
use tarsy_engine::ports::{
    CancelOutcome, Claim, ClaimRequest, Disposition, Inherited, JoinRequest, Lease, OpenRequest,
    Opened, Pruned, Received, Recover, Recovered, Refusal, Renewal, Sessions, SettlementStatus,
    StoreError, StoredMessage, Sweep, Swept, Worded,
};
use tarsy_reports::DispositionKind;

use super::call::{Operation, once};
use super::connect::Store;
use super::fence::count_refused;
use super::rows::nul;
use super::rows::number;
use super::statement::statement;
use super::writes::cancel::CancelAnswer;
use super::writes::claim::{FindInherited, InheritedRow, TakeOver};
use super::writes::open::Open;
use super::writes::receive::{GiveUp, Receive, ReceivedRow, RefundAttempt, Requeued, Waited};
use super::writes::recover;
use super::writes::renew::{Release, Renew, RenewOne};
use super::writes::settle::{ReadSettlementStatus, Settle, SettlementRow};
use super::writes::sweep::{FindOrphaned, OrphanRow};

/// Less than the renewal interval: a stuck renewal is given up before the next one is due.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(8);
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// A small write that shows whether the database accepts writes.
pub(super) struct Probe {
    slot: i16,
}

statement!(Probe, "probe.sql" -> (), [slot]);

impl Sessions for Store {
    async fn receive(&self, received: Received) -> Result<Disposition, StoreError> {
        let write = Receive::from(received);
        let row: ReceivedRow = self
            .run(Operation::Receive, move |connection| {
                (&write).get_result(connection)
            })
            .await?;
        row.disposition()
    }

    async fn open(&self, request: OpenRequest) -> Result<Opened, StoreError> {
        let planned = self.outgoing.of_session(&request);
        let write = Open::new(request, planned)?;
        let opened = self
            .run(Operation::Open, move |connection| write.decide(connection))
            .await?;
        self.outgoing.has_changed();
        Ok(opened)
    }

    async fn join(&self, request: JoinRequest) -> Result<Option<Opened>, StoreError> {
        let planned = self.outgoing.of_list(&request);
        let write = Open::join_only(request, planned);
        let opened = self
            .run(Operation::Join, move |connection| write.join(connection))
            .await?;
        if let Some(Opened::Limited { .. } | Opened::CoveredByCooldown(_)) = &opened {
            self.outgoing.has_changed();
        }
        Ok(opened)
    }

    async fn waited(&self, alert: SessionId) -> Result<Duration, StoreError> {
        let read = Waited { alert_id: alert.0 };
        let seconds: Option<f64> = self
            .run(Operation::Waited, move |connection| {
                (&read).get_result(connection).optional()
            })
            .await?;
        let seconds = seconds.ok_or_else(|| StoreError::Conflict(format!("no alert {alert}")))?;
        Ok(number::from_seconds(seconds))
    }

    async fn give_up(&self, alert: SessionId, refusal: Refusal) -> Result<(), StoreError> {
        // The detail may quote the alert. Every refusal passes this method, so it is masked here.
        let detail = nul::replace(self.mask.apply(&refusal.detail).into_owned());
        let notifications = self.outgoing.of_dead_letter().into();
        let write = GiveUp {
            reason: refusal.reason.as_str(),
            detail,
            alert_id: alert.0,
            link: self.link(alert),
            notifications,
        };
        let disposition: Option<DispositionKind> = self
            .run(Operation::GiveUp, move |connection| {
                (&write).get_result(connection).optional()
            })
            .await?;
        match disposition {
            Some(DispositionKind::Dead) => {
                self.outgoing.has_changed();
                Ok(())
            }
            Some(other) => Err(StoreError::Conflict(format!(
                "alert {alert} cannot be given up: it is {other}"
            ))),
            None => Err(StoreError::Conflict(format!("no alert {alert}"))),
        }
    }

    async fn claim(&self, session: SessionId, claim: ClaimRequest) -> Result<Claim, StoreError> {
        let write = TakeOver::new(session, claim);
        Ok(self
            .run(Operation::Claim, move |connection| write.take(connection))
            .await?)
    }

    /// Sent once: without an answer the leases expire.
    async fn inherited(&self, predecessors: Vec<WorkerId>) -> Result<Vec<Inherited>, StoreError> {
        let read = FindInherited::new(&predecessors);
        let call = once(
            &self.pool,
            self.call_timeout,
            Operation::Inherited,
            move |connection| (&read).get_results(connection),
        );
        let rows: Vec<InheritedRow> = call.await?;
        Ok(rows.into_iter().map(Inherited::from).collect())
    }

    /// Sent once: the next renewal is due soon, and must not wait behind this one.
    async fn renew(
        &self,
        leases: Vec<Lease>,
        period: Duration,
    ) -> Result<Vec<Renewal>, StoreError> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let write = Renew::new(&leases, period);
        let renewals = once(
            &self.renewals,
            RENEWAL_TIMEOUT,
            Operation::Renew,
            move |connection| write.write(connection),
        )
        .await?;
        for _ in renewals.iter().filter(|renewal| **renewal == Renewal::Lost) {
            count_refused("renew");
        }
        Ok(renewals)
    }

    async fn release(&self, lease: Lease, reason: &'static str) -> Result<(), StoreError> {
        let write = Release::refunding(lease, reason);
        self.run(Operation::Release, move |connection| {
            write.write(connection)
        })
        .await?
    }

    async fn release_counted(&self, lease: Lease, reason: &'static str) -> Result<(), StoreError> {
        let write = Release::counted(lease, reason);
        self.run(Operation::Release, move |connection| {
            write.write(connection)
        })
        .await?
    }

    /// Sent once, as [`Sessions::renew`] is, but not on its connection: this statement waits for a locked row, and the
    /// renewal of all leases must not wait behind it.
    async fn renew_one(&self, lease: Lease, period: Duration) -> Result<Renewal, StoreError> {
        let write = RenewOne::new(lease, period);
        Ok(once(
            &self.pool,
            self.call_timeout,
            Operation::RenewOne,
            move |connection| write.write(connection),
        )
        .await?)
    }

    async fn standing(&self, session: SessionId) -> Result<SettlementStatus, StoreError> {
        let read = ReadSettlementStatus {
            alert_id: session.0,
        };
        let row: Option<SettlementRow> = self
            .run(Operation::SettlementStatus, move |connection| {
                (&read).get_result(connection).optional()
            })
            .await?;
        let row = row.ok_or_else(|| StoreError::Conflict(format!("no alert {session}")))?;
        Ok(row.status_of(session))
    }

    async fn recover(&self, recover: Recover) -> Result<Recovered, StoreError> {
        self.run(Operation::Recover, move |connection| {
            recover::recover(connection, &recover)
        })
        .await?
    }

    async fn settled(&self, session: SessionId, message: StoredMessage) -> Result<(), StoreError> {
        let write = Settle::masked(session, message, &self.mask);
        let settled: bool = self
            .run(Operation::Settle, move |connection| {
                (&write).get_result(connection)
            })
            .await?;
        if settled {
            Ok(())
        } else {
            Err(StoreError::Conflict(format!(
                "session {session} has not ended"
            )))
        }
    }

    async fn refund_attempt(&self, alert: SessionId) -> Result<(), StoreError> {
        let write = RefundAttempt {
            id: Uuid::new_v4(),
            alert_id: alert.0,
        };
        self.run(Operation::RefundAttempt, move |connection| {
            (&write).execute(connection)
        })
        .await?;
        Ok(())
    }

    async fn cancel(
        &self,
        session: SessionId,
        by: Option<String>,
    ) -> Result<CancelOutcome, StoreError> {
        let answer = self.request_cancel_by(session, by).await?;
        self.outgoing.has_changed();
        Ok(match answer {
            CancelAnswer::Requested => CancelOutcome::Requested,
            CancelAnswer::Cancelled => CancelOutcome::Cancelled,
            CancelAnswer::Joined(_) | CancelAnswer::Ended | CancelAnswer::Unknown => {
                CancelOutcome::Nothing
            }
        })
    }

    /// Sent once: the next sweep is due soon.
    async fn sweep(&self, sweep: Sweep) -> Result<Vec<Swept>, StoreError> {
        let write = FindOrphaned::new(sweep);
        let rows: Vec<OrphanRow> = once(
            &self.pool,
            self.call_timeout,
            Operation::Sweep,
            move |connection| (&write).get_results(connection),
        )
        .await?;
        Ok(rows.into_iter().map(Swept::from).collect())
    }

    async fn requeued(&self, alert: SessionId, stream_sequence: u64) -> Result<(), StoreError> {
        let write = Requeued {
            stream_sequence: number::big(stream_sequence),
            alert_id: alert.0,
        };
        match self
            .run(Operation::Requeued, move |connection| {
                (&write).execute(connection)
            })
            .await?
        {
            0 => Err(StoreError::Conflict(format!("no alert {alert}"))),
            _ => Ok(()),
        }
    }

    async fn prune(&self, retention: Retention, limit: u32) -> Result<Pruned, StoreError> {
        Ok(self.prune_some(retention, limit).await?)
    }

    async fn complete_words(&self) -> Result<Worded, StoreError> {
        Ok(self.complete_some_words().await?)
    }

    async fn reachable(&self) -> bool {
        let probe = Probe {
            slot: self.probe_slot,
        };
        self.look_for_a_newer_primary().await;
        once(
            &self.pool,
            PROBE_TIMEOUT,
            Operation::Probe,
            move |connection| (&probe).execute(connection),
        )
        .await
        .is_ok()
    }
}
