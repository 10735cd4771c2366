//! The way of one message through the dispatcher, to its acknowledgement.
//!
//! The alert is recorded first. Then it is admitted (`admit.rs`) or its session is claimed, the session runs
//! (`holder.rs`), and the settler acknowledges the message.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument as _;

use super::acknowledgement::{Acknowledgement, jittered};
use super::admit::Admission;
use super::attempt::Attempt;
use super::dispatcher::Dispatcher;
use super::heartbeat::with_heartbeat;
use super::holder::Leased;
use super::settle::SettleError;
use crate::ports::{
    Claim, ClaimRequest, DeadReason, Delivery as _, Disposition, Job, Refusal, Sessions, StoreError,
};
use crate::run::instruments;
use crate::trace::{self, messaging};
use crate::world::World;
use tarsy_core::ids::SessionId;

/// Limit of the tries to find the disposition of an alert that several workers hold at once. The store retries its own
/// races; another try follows a race that another worker has won.
const MAX_RACES: u32 = 3;
/// The delay of the redelivery after [`MAX_RACES`] lost races.
const RACE_DELAY: Duration = Duration::from_secs(1);
/// The delay after an error of the store or the broker.
const ERROR_DELAY: Duration = Duration::from_secs(2);
/// The delay for a session that this version cannot run, or that the store does not know.
const UNKNOWN_DELAY: Duration = Duration::from_secs(30);

impl<W: World> Dispatcher<W> {
    /// Brings one message to its acknowledgement, or to the settler, which acknowledges it when every event is on the
    /// stream. Runs in a separate task: the future may be dropped, but then the message waits for its ack deadline.
    pub async fn handle(&self, job: Job<W::Delivery>) {
        let span = messaging::process(&job.received);
        self.acknowledge(job).instrument(span).await;
    }

    async fn acknowledge(&self, job: Job<W::Delivery>) {
        let id = job.received.alert_id;
        let delivery = Arc::clone(&job.delivery);
        let acknowledgement = self.place(job).await.unwrap_or_else(|error| {
            tracing::warn!(session_id = %id, "message returned to the queue: {error}");
            Acknowledgement::Nak(jittered(ERROR_DELAY))
        });
        acknowledgement.send(id, &*delivery).await;
    }

    async fn place(&self, mut job: Job<W::Delivery>) -> Result<Acknowledgement, SettleError> {
        for _ in 0..MAX_RACES {
            if let Some(acknowledgement) = self.try_place(&mut job).await? {
                return Ok(acknowledgement);
            }
        }
        tracing::warn!(session_id = %job.received.alert_id, "message returned to the queue: {MAX_RACES} races lost");
        Ok(Acknowledgement::Nak(jittered(RACE_DELAY)))
    }

    /// `None`: the job has changed, or another worker was faster. Then the alert's disposition is looked up again.
    async fn try_place(
        &self,
        job: &mut Job<W::Delivery>,
    ) -> Result<Option<Acknowledgement>, SettleError> {
        let id = job.received.alert_id;
        let Some(disposition) = self.receive(job).await? else {
            return Ok(Some(Acknowledgement::Nak(Duration::ZERO)));
        };
        let number = match disposition {
            Disposition::UsedId if id == job.derived_id => {
                return Ok(Some(Acknowledgement::Term(DeadReason::UsedId)));
            }
            Disposition::UsedId => {
                job.received.alert_id = job.derived_id;
                job.fault = Some(Refusal::used_id(id));
                return Ok(None);
            }
            Disposition::Opened => return self.take_over(job).await.map(Some),
            Disposition::Joined(_) | Disposition::Ended | Disposition::Dead(_) => {
                return Ok(Some(self.settler.take(id, Some(&job.delivery))));
            }
            Disposition::Undecided { attempts } => attempts,
        };
        let attempt = Attempt {
            sessions: &*self.ports.sessions,
            alert: id,
            number,
        };
        // Boxed, as every long future of a session: the ones around it would contain it several times.
        Ok(match Box::pin(self.admit(job, attempt)).await? {
            Admission::Leased(leased) => {
                instruments::opened(job.derived_id);
                Some(Box::pin(self.run(*leased, Some(&job.delivery))).await)
            }
            Admission::Placed => Some(self.settler.take(id, Some(&job.delivery))),
            // After one lease, as if the worker had died.
            Admission::Panicked => Some(Acknowledgement::Nak(jittered(self.lease()))),
            Admission::Retry(delay) => Some(Acknowledgement::Nak(delay)),
            Admission::Raced => None,
        })
    }

    /// Records the delivery when it is its turn. `None`: the worker drains.
    async fn receive(&self, job: &Job<W::Delivery>) -> Result<Option<Disposition>, StoreError> {
        let turn = with_heartbeat(
            self.lease() / 3,
            || job.delivery.progress(),
            self.receiving.acquire(),
        );
        let _turn = tokio::select! {
            biased;
            turn = turn => turn,
            () = self.shutdown.drain.cancelled() => return Ok(None),
        };
        self.ports
            .sessions
            .receive(job.received.clone())
            .await
            .map(Some)
    }

    /// Claims a session that is open already.
    async fn take_over(&self, job: &Job<W::Delivery>) -> Result<Acknowledgement, SettleError> {
        let id = job.received.alert_id;
        let delivery = &job.delivery;
        // The session runs here, so the run acknowledges this delivery when it ends.
        if self.runs.adopt(id, delivery) {
            return Ok(Acknowledgement::Skip);
        }
        if self.shutdown.drain.is_cancelled() {
            return Ok(Acknowledgement::Nak(Duration::ZERO));
        }
        let request = ClaimRequest {
            stream_sequence: Some(job.received.stream_sequence),
            outage_grace: self.outages.grace(self.lease()),
            ..self.claim_request()
        };
        let (claim, asked_at) = self.claim(id, request).await?;
        Ok(match claim {
            Claim::Taken(claimed) => {
                let leased = Leased::resumed(claimed, asked_at);
                Box::pin(self.run(leased, Some(delivery))).await
            }
            Claim::Busy(remaining) => Acknowledgement::Nak(jittered(remaining)),
            // Every wake queues the alert again, so this message has no further use.
            Claim::Waiting => self.parked.take(id, delivery),
            Claim::Ended { .. } => self.settler.take(id, Some(delivery)),
            Claim::Incompatible | Claim::Unknown => Acknowledgement::Nak(jittered(UNKNOWN_DELAY)),
        })
    }

    /// Claims a session while no alert is prepared in isolation. Returns when the lease was requested, too.
    pub(super) async fn claim(
        &self,
        id: SessionId,
        request: ClaimRequest,
    ) -> Result<(Claim, Instant), StoreError> {
        let span = trace::claim();
        let request = ClaimRequest {
            trace: trace::linkable(&span),
            ..request
        };
        let _shared = self.runs.shared().await;
        // Before the statement: the lease may begin any time after it is sent.
        let asked_at = Instant::now();
        let claim = self
            .ports
            .sessions
            .claim(id, request)
            .instrument(span.clone())
            .await?;
        if let Claim::Taken(claimed) = &claim {
            trace::taken(&span);
            metrics::counter!("tarsy_sessions_resumed_total").increment(1);
            tracing::info!(session_id = %id, epoch = claimed.lease.epoch, "session taken over");
        }
        Ok((claim, asked_at))
    }
}
