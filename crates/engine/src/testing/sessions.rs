//! A fake of the port `Sessions`: it records each statement, and returns what a test has set.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::FakeJournal;
use crate::ports::*;
use tarsy_core::ids::{SessionId, WorkerId};

/// A store with one alert in it.
#[derive(Debug)]
pub(crate) struct FakeSessions {
    pub(crate) dispositions: Mutex<Vec<Disposition>>,
    pub opened: Mutex<Vec<Opened>>,
    /// Has the first stage of an opened session.
    pub journal: Option<Arc<FakeJournal>>,
    pub joined: Mutex<Option<Opened>>,
    pub waited: Mutex<Duration>,
    pub claim: Mutex<Claim>,
    pub(crate) claim_takes: Mutex<Duration>,
    /// Of each request to cancel.
    pub(crate) cancel_outcome: Mutex<CancelOutcome>,
    pub released: Mutex<Result<(), StoreError>>,
    /// `None`: no renewal succeeds.
    pub renewal: Mutex<Option<Renewal>>,
    /// By a statement that waits for its row.
    pub(crate) renewal_of_one: Mutex<Renewal>,
    /// The renewals: time and number of leases.
    pub renewed: Mutex<Vec<(Instant, usize)>>,
    pub standing: SettlementStatus,
    pub recovered: Mutex<Recovered>,
    pub swept: Mutex<Vec<Vec<Swept>>>,
    /// Of each batch; nothing when they are used up.
    pub pruned: Mutex<Vec<Pruned>>,
    pub(crate) worded: Mutex<Vec<Worded>>,
    /// A statement that finds the store unavailable.
    pub unavailable: Mutex<Option<&'static str>>,
    /// A statement that the store refuses.
    pub refuses: Mutex<Option<&'static str>>,
    /// A statement that the store does not finish in time.
    pub(crate) too_slow: Mutex<Option<&'static str>>,
    /// Cancelled by the statement that opens.
    pub cancels: Mutex<Option<CancellationToken>>,
    pub requests: Mutex<Vec<OpenRequest>>,
    pub asked: Mutex<Vec<String>>,
    pub inherited: Mutex<Vec<Inherited>>,
    /// Of each claim.
    pub(crate) outage_graces: Mutex<Vec<Duration>>,
}

impl FakeSessions {
    pub(crate) fn new(
        dispositions: Vec<Disposition>,
        claim: Claim,
        standing: SettlementStatus,
    ) -> Self {
        Self {
            dispositions: Mutex::new(dispositions),
            opened: Mutex::default(),
            journal: None,
            joined: Mutex::default(),
            waited: Mutex::default(),
            claim: Mutex::new(claim),
            claim_takes: Mutex::default(),
            cancel_outcome: Mutex::new(CancelOutcome::Requested),
            released: Mutex::new(Ok(())),
            renewal: Mutex::new(Some(Renewal::Renewed {
                last_seq: 1,
                updates: 0,
                cancel_requested: false,
            })),
            renewal_of_one: Mutex::new(Renewal::Locked),
            renewed: Mutex::default(),
            standing,
            recovered: Mutex::new(Recovered::GoesOn),
            swept: Mutex::default(),
            pruned: Mutex::default(),
            worded: Mutex::default(),
            unavailable: Mutex::default(),
            refuses: Mutex::default(),
            too_slow: Mutex::default(),
            cancels: Mutex::default(),
            requests: Mutex::default(),
            asked: Mutex::default(),
            inherited: Mutex::default(),
            outage_graces: Mutex::default(),
        }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }

    fn ask(&self, what: &'static str, about: impl std::fmt::Display) -> Result<(), StoreError> {
        self.asked
            .lock()
            .push(format!("{what} {about}").trim().to_owned());
        if *self.unavailable.lock() == Some(what) {
            return Err(StoreError::Unavailable("gone".to_owned()));
        }
        if *self.refuses.lock() == Some(what) {
            return Err(StoreError::Refused("too long".to_owned()));
        }
        if *self.too_slow.lock() == Some(what) {
            return Err(StoreError::TimedOut("statement timeout".to_owned()));
        }
        Ok(())
    }
}

fn number(id: SessionId) -> u128 {
    id.0.as_u128()
}

impl Sessions for FakeSessions {
    async fn receive(&self, received: Received) -> Result<Disposition, StoreError> {
        self.ask("receive", number(received.alert_id))?;
        Ok(self.dispositions.lock().remove(0))
    }

    async fn open(&self, request: OpenRequest) -> Result<Opened, StoreError> {
        self.ask("open", "")?;
        let first_stage = request.first_stage.clone();
        self.requests.lock().push(request);
        if let Some(token) = self.cancels.lock().as_ref() {
            token.cancel();
        }
        let opened = self.opened.lock().remove(0);
        if let (Opened::Session(_), Some(journal), Some(first)) =
            (&opened, &self.journal, first_stage)
        {
            journal.begins(first);
        }
        Ok(opened)
    }

    async fn join(&self, _request: JoinRequest) -> Result<Option<Opened>, StoreError> {
        self.ask("join", "")?;
        Ok(self.joined.lock().take())
    }

    async fn waited(&self, alert: SessionId) -> Result<Duration, StoreError> {
        self.ask("waited", number(alert))?;
        Ok(*self.waited.lock())
    }

    async fn give_up(&self, alert: SessionId, refusal: Refusal) -> Result<(), StoreError> {
        self.ask(
            "give_up",
            format!(
                "{} {}: {}",
                number(alert),
                refusal.reason.as_str(),
                refusal.detail
            ),
        )
    }

    async fn claim(&self, session: SessionId, claim: ClaimRequest) -> Result<Claim, StoreError> {
        let mut about = claim.stream_sequence.map_or_else(
            || format!("{} without a job", number(session)),
            |_| String::new(),
        );
        for worker in &claim.predecessors {
            about += &format!(" after {}", worker.0.as_u128());
        }
        self.ask("claim", about)?;
        self.outage_graces.lock().push(claim.outage_grace);
        let takes = *self.claim_takes.lock();
        tokio::time::sleep(takes).await; // paused time
        Ok(self.claim.lock().clone())
    }

    async fn inherited(&self, predecessors: Vec<WorkerId>) -> Result<Vec<Inherited>, StoreError> {
        self.ask("inherited", predecessors.len())?;
        Ok(self.inherited.lock().clone())
    }

    async fn renew(
        &self,
        leases: Vec<Lease>,
        _period: Duration,
    ) -> Result<Vec<Renewal>, StoreError> {
        self.renewed.lock().push((Instant::now(), leases.len()));
        let renewal = self
            .renewal
            .lock()
            .ok_or_else(|| StoreError::Unavailable("gone".to_owned()))?;
        Ok(leases.iter().map(|_| renewal).collect())
    }

    async fn release(&self, _lease: Lease, _reason: &'static str) -> Result<(), StoreError> {
        self.ask("release", "")?;
        self.released.lock().clone()
    }

    async fn release_counted(
        &self,
        _lease: Lease,
        _reason: &'static str,
    ) -> Result<(), StoreError> {
        self.ask("release counted", "")?;
        self.released.lock().clone()
    }

    async fn renew_one(&self, _lease: Lease, _period: Duration) -> Result<Renewal, StoreError> {
        Ok(*self.renewal_of_one.lock())
    }

    async fn standing(&self, _session: SessionId) -> Result<SettlementStatus, StoreError> {
        Ok(self.standing.clone())
    }

    async fn recover(&self, recover: Recover) -> Result<Recovered, StoreError> {
        let about = format!(
            "{} after {}",
            number(recover.session_id),
            recover.divergence.kept
        );
        self.ask("recover", about)?;
        Ok(*self.recovered.lock())
    }

    async fn settled(
        &self,
        _session: SessionId,
        _message: StoredMessage,
    ) -> Result<(), StoreError> {
        self.ask("settled", "")
    }

    async fn refund_attempt(&self, alert: SessionId) -> Result<(), StoreError> {
        self.ask("refund_attempt", number(alert))
    }

    async fn cancel(
        &self,
        session: SessionId,
        _by: Option<String>,
    ) -> Result<CancelOutcome, StoreError> {
        self.ask("cancel", number(session))?;
        Ok(*self.cancel_outcome.lock())
    }

    async fn sweep(&self, _sweep: Sweep) -> Result<Vec<Swept>, StoreError> {
        self.ask("sweep", "")?;
        let mut swept = self.swept.lock();
        Ok(if swept.is_empty() {
            Vec::new()
        } else {
            swept.remove(0)
        })
    }

    async fn requeued(&self, alert: SessionId, stream_sequence: u64) -> Result<(), StoreError> {
        self.ask(
            "requeued",
            format!("{} as {stream_sequence}", number(alert)),
        )
    }

    async fn prune(
        &self,
        _retention: tarsy_config::Retention,
        _limit: u32,
    ) -> Result<Pruned, StoreError> {
        self.ask("prune", "")?;
        let mut pruned = self.pruned.lock();
        Ok(if pruned.is_empty() {
            Pruned::default()
        } else {
            pruned.remove(0)
        })
    }

    async fn complete_words(&self) -> Result<Worded, StoreError> {
        let mut worded = self.worded.lock();
        Ok(if worded.is_empty() {
            Worded {
                sessions: 0,
                is_all: true,
            }
        } else {
            worded.remove(0)
        })
    }

    async fn reachable(&self) -> bool {
        *self.unavailable.lock() != Some("reachable")
    }
}
