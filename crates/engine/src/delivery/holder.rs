//! The holder of a leased session: runs it from its claim to its end or release, and acknowledges its message.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument as _;

use super::acknowledgement::{Acknowledgement, jittered};
use super::dispatcher::Dispatcher;
use super::redelivery::Redelivery;
use crate::ports::{Claimed, Feed, Recovered, SessionAfterRun, Sessions, StoreError, Tools as _};
use crate::run::control::{Control, Interrupted, ReleaseReason};
use crate::run::early_end::end_early;
use crate::run::instruments;
use crate::run::recovery::reconcile;
use crate::run::registry::RunHandle;
use crate::run::session::LeasedSession;
use crate::run::session_end::SessionEnded;
use crate::trace;
use crate::world::World;
use tarsy_core::chain::EarlyEnd;
use tarsy_core::chain::SessionRecord;

/// A run whose lease is lost ends at its next await. After this time it counts as stuck and is dropped.
const LOST_GRACE: Duration = Duration::from_secs(30);
/// The time until a session whose commits the store has lost is claimed again.
const BEHIND_DELAY: Duration = Duration::from_secs(1);
/// The time until a session is claimed again after the store was unavailable.
const STORE_DELAY: Duration = Duration::from_secs(2);
/// The time until a session that this version cannot run is claimed again.
const INCOMPATIBLE_DELAY: Duration = Duration::from_secs(30);

/// A session that this worker has just opened or claimed.
#[derive(Debug)]
pub(crate) struct Leased {
    pub claimed: Claimed,
    /// The time when the lease was requested.
    pub asked_at: Instant,
    /// The record of a session that was opened; that of a claimed one is in the store.
    pub begun: Option<Begun>,
}

impl Leased {
    /// A session that another run has begun.
    pub(super) fn resumed(claimed: Claimed, asked_at: Instant) -> Self {
        Self {
            claimed,
            asked_at,
            begun: None,
        }
    }
}

/// A session that was opened.
#[derive(Debug)]
pub(crate) struct Begun {
    pub record: SessionRecord,
    /// The timeline stream had no event of it, so the store has lost none.
    pub is_new: bool,
}

impl<W: World> Dispatcher<W> {
    /// Runs a claimed session and acknowledges its latest delivery, which may not be the one that brought it. A session
    /// that was claimed without a delivery may have none at its end: its message is redelivered then.
    pub(crate) async fn run(
        &self,
        leased: Leased,
        delivery: Option<&Arc<W::Delivery>>,
    ) -> Acknowledgement {
        let Leased {
            claimed,
            asked_at,
            begun,
        } = leased;
        let lease = claimed.lease;
        let session = lease.session_id;
        // Counted from the request: the store's answer may have taken longer to arrive than the lease lasts.
        let control = Control::new(
            asked_at,
            self.lease().mul_f64(2.0 / 3.0),
            self.shutdown.drain.clone(),
        );
        if claimed.attempts > 0 {
            control.resumed_after_death();
        }
        let handle = RunHandle {
            lease,
            control: control.clone(),
            delivery: delivery.cloned(),
        };
        let registered = self.runs.insert(handle);
        let span = trace::run(session, claimed.previous);
        let ended = Box::pin(self.run_to_end(&claimed, begun, &control))
            .instrument(span.clone())
            .await;
        instruments::run_ended(&span, &ended);
        drop(span);
        let after = match &ended {
            Ok(_end) => SessionAfterRun::Ended,
            Err(
                Interrupted::LeaseLost
                | Interrupted::Panicked
                | Interrupted::Parked
                | Interrupted::Release(_),
            ) => SessionAfterRun::Continues,
        };
        self.ports.tools.run_ended(lease, after);
        // Taken out before the answer: a delivery that comes later finds no run, and looks up the session itself.
        let latest = registered
            .remove()
            .map_or_else(|| delivery.cloned(), |run| run.delivery);
        // Progress proves that the store and the LLM service work, also for the judgement of other sessions.
        if control.has_progressed() {
            self.backoff.progressed(session);
        }
        if !matches!(ended, Err(Interrupted::Release(_) | Interrupted::Parked)) {
            self.backoff.forget(session);
        }
        let acknowledgement = match ended {
            Ok(end) => {
                let took = self.age(&claimed, control.age());
                metrics::histogram!("tarsy_session_duration_seconds").record(took.as_secs_f64());
                if let Some(end) = end {
                    instruments::session_ended(session, &end, took);
                }
                // The slot is free for the next alert: the settlement does not occupy it.
                self.settler.take(session, latest.as_ref())
            }
            Err(Interrupted::LeaseLost) => {
                metrics::counter!("tarsy_sessions_lost_total").increment(1);
                tracing::warn!(session_id = %session, epoch = lease.epoch, "lease lost");
                Acknowledgement::Skip
            }
            // The lease has to expire: after a release the same call would be made and paid for again and again.
            Err(Interrupted::Panicked) => Acknowledgement::Nak(jittered(self.lease())),
            // No worker has it from now on, so its message does not stay here.
            Err(Interrupted::Parked) => {
                metrics::counter!("tarsy_sessions_parked_total").increment(1);
                tracing::info!(session_id = %session, "session parked: it waits for a person");
                latest.as_ref().map_or(Acknowledgement::Skip, |delivery| {
                    self.parked.take(session, delivery)
                })
            }
            Err(Interrupted::Release(reason)) => {
                Box::pin(self.release(&claimed, &control, &reason, latest.as_ref())).await
            }
        };
        if let Some(latest) = latest {
            Box::pin(acknowledgement.send(session, &*latest)).await;
        }
        Acknowledgement::Skip
    }

    /// Returns the end that this run has committed; `None` for one that the stream has restored.
    async fn run_to_end(
        &self,
        claimed: &Claimed,
        begun: Option<Begun>,
        control: &Control,
    ) -> Result<Option<SessionEnded>, Interrupted> {
        let lease = claimed.lease;
        let recovered = match &begun {
            // The stream has no event of the session, so the store cannot have lost one.
            Some(Begun { is_new: true, .. }) => None,
            Some(_) | None => {
                let compared = reconcile(
                    &*self.ports.sessions,
                    &*self.ports.feed,
                    lease.session_id,
                    Some(lease),
                );
                Box::pin(compared).await?
            }
        };
        let opened = match recovered {
            Some(Recovered::Ended) => return Ok(None),
            // There were earlier steps, which the store had lost.
            Some(Recovered::GoesOn) => None,
            None => begun.map(|begun| begun.record),
        };
        self.ports.feed.notify(lease.session_id);
        let end = if claimed.cancel_requested {
            Some(EarlyEnd::Cancelled)
        } else if claimed.remaining.is_zero() {
            Some(EarlyEnd::Deadline)
        } else if claimed.attempts >= self.settings.limits.attempts {
            Some(EarlyEnd::AttemptsExhausted)
        } else {
            None
        };
        if let Some(end) = end {
            return end_early(&self.ports, lease, end).await.map(Some);
        }
        let _timer = control.stop_after(claimed.remaining);
        let drained = async {
            self.shutdown.drain.cancelled().await;
            tokio::select! {
                () = tokio::time::sleep(self.settings.limits.drain_timeout) => {} // the drain timeout itself
                () = self.shutdown.abort.cancelled() => {}
            }
        };
        let stuck = async {
            control.lost().await;
            tokio::time::sleep(LOST_GRACE).await; // how long a stuck run keeps its slot
        };
        let leased = LeasedSession {
            ports: Arc::clone(&self.ports),
            lease,
            control: control.clone(),
            opened,
            max_open: self.settings.max_open,
        };
        tokio::select! {
            ended = Box::pin(leased.run()) => ended.map(Some),
            () = drained => Err(ReleaseReason::Drain.into()),
            () = stuck => Err(Interrupted::LeaseLost),
        }
    }

    /// Releases the session in the store before its message: the next worker must find the session free.
    async fn release(
        &self,
        claimed: &Claimed,
        control: &Control,
        reason: &ReleaseReason,
        delivery: Option<&Arc<W::Delivery>>,
    ) -> Acknowledgement {
        let session_id = claimed.lease.session_id;
        let redelivery = self.backoff.released(session_id, reason);
        let counts = redelivery.is_some_and(|redelivery| redelivery.counts_as_attempt);
        if counts {
            metrics::counter!("tarsy_returns_counted_total", "reason" => reason.as_str())
                .increment(1);
            // A checkpoint of this run has reset the count of earlier attempts.
            let before = if control.has_progressed() {
                0
            } else {
                claimed.attempts
            };
            if before.saturating_add(1) >= self.settings.limits.attempts
                && self.give_up_session(claimed, control, reason).await
            {
                return self.settler.take(session_id, delivery);
            }
        }
        let sessions = &self.ports.sessions;
        let released = if counts {
            sessions
                .release_counted(claimed.lease, reason.as_str())
                .await
        } else {
            sessions.release(claimed.lease, reason.as_str()).await
        };
        match released {
            Ok(()) => {
                metrics::counter!("tarsy_sessions_released_total", "reason" => reason.as_str())
                    .increment(1);
                tracing::info!(%session_id, counts, "session released: {reason}");
                Acknowledgement::Nak(redelivery_delay(reason, redelivery))
            }
            // Another worker has the message, too.
            Err(error @ StoreError::LeaseLost { .. }) => {
                metrics::counter!("tarsy_sessions_lost_total").increment(1);
                tracing::warn!(%session_id, "session not released: {error}");
                Acknowledgement::Skip
            }
            // The end was committed, only the reply to it was lost.
            Err(StoreError::Ended) => self.settler.take(session_id, delivery),
            Err(error @ StoreError::Behind(_)) => {
                tracing::warn!(%session_id, "session not released: {error}");
                Acknowledgement::Nak(jittered(BEHIND_DELAY))
            }
            Err(
                error @ (StoreError::Conflict(_)
                | StoreError::Refused(_)
                | StoreError::Undecided(_)
                | StoreError::TimedOut(_)
                | StoreError::Unavailable(_)),
            ) => {
                tracing::warn!(%session_id, %reason, "session not released, its lease has to expire: {error}");
                Acknowledgement::Nak(jittered(self.lease()))
            }
        }
    }

    /// The time that a session has existed, this long after its claim. The time before follows from its remaining
    /// time.
    fn age(&self, claimed: &Claimed, since_claim: Duration) -> Duration {
        self.settings
            .limits
            .session_timeout
            .saturating_sub(claimed.remaining)
            + since_claim
    }

    /// Ends a session that has used up its attempts without a death. Returns whether the end is committed.
    async fn give_up_session(
        &self,
        claimed: &Claimed,
        control: &Control,
        reason: &ReleaseReason,
    ) -> bool {
        let session_id = claimed.lease.session_id;
        let end = EarlyEnd::GivenUp(format!("given up: {reason}, again and again"));
        match end_early(&self.ports, claimed.lease, end).await {
            Ok(ended) => {
                tracing::warn!(%session_id, "session given up: {reason}");
                instruments::session_ended(session_id, &ended, self.age(claimed, control.age()));
                self.backoff.forget(session_id);
                true
            }
            Err(error) => {
                tracing::warn!(%session_id, "session not given up: {error}");
                false
            }
        }
    }
}

fn redelivery_delay(reason: &ReleaseReason, redelivery: Option<Redelivery>) -> Duration {
    if let Some(Redelivery { delay, .. }) = redelivery {
        return jittered(delay);
    }
    match reason {
        ReleaseReason::Drain => Duration::ZERO,
        ReleaseReason::StoreBehind(_) => jittered(BEHIND_DELAY),
        ReleaseReason::StoreUnavailable(_) => jittered(STORE_DELAY),
        ReleaseReason::Incompatible(_)
        | ReleaseReason::ModelUnavailable(_)
        | ReleaseReason::ModelBroke(_)
        | ReleaseReason::Refused(_)
        | ReleaseReason::StoreTimedOut(_) => jittered(INCOMPATIBLE_DELAY),
    }
}
