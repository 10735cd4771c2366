//! A session that this worker owns: from its claim to the answer to the message that brought it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::control::{Control, Interrupted, ReleaseReason, Stop};
use super::execution::interrupted;
use super::instruments;
use super::recovery::reconcile;
use super::registry::Run;
use super::session::{LeasedSession, end_early};
use crate::engine::delivery::dispatch::{Answer, Dispatcher, Intake, answer_with, jittered};
use crate::engine::delivery::redelivery::Cause;
use crate::engine::ports::{Claimed, Delivery, Feed, Recovered, Sessions, StoreError};
use crate::engine::world::World;
use crate::investigation::chain::EarlyEnd;

/// A run whose lease is lost ends at its next await. After this time it is taken for stuck and dropped.
const LOST_GRACE: Duration = Duration::from_secs(30);
/// Until a session whose commits were lost is claimed again.
const BEHIND_DELAY: Duration = Duration::from_secs(1);

impl<W: World, S: Sessions, I: Intake, D: Delivery> Dispatcher<W, S, I, D> {
    /// Runs a claimed session and answers its latest delivery, which may not be the one that brought it.
    pub(crate) async fn run(&self, (claimed, asked_at): (Claimed, Instant), delivery: &Arc<D>) -> Answer {
        let (lease, session) = (claimed.lease, claimed.lease.session_id);
        // The store's answer may have been on its way for longer than the lease lasts.
        let control = Control::new(asked_at, self.settings.lease.mul_f64(2.0 / 3.0), self.drain.clone());
        if claimed.attempts > 0 {
            control.inherited();
        }
        let entered = self.running.insert(Run { lease, control: control.clone(), delivery: Arc::clone(delivery) });
        let ended = self.drive(&claimed, &control).await;
        let latest = entered.leave().map_or_else(|| Arc::clone(delivery), |run| run.delivery);
        if control.has_progressed() {
            self.hesitation.worked(session);
        }
        if !matches!(&ended, Err(Interrupted::Release(reason)) if cause(reason).is_some()) {
            self.hesitation.forget(session);
        }
        let answer = match ended {
            Ok(()) => {
                instruments::ended(&claimed, self.settings.session_timeout, asked_at.elapsed());
                // The slot is free for the next alert: what is owed to the world is not its business.
                self.settler.take(session, &latest)
            }
            Err(Interrupted::LeaseLost) => {
                metrics::counter!("tarsy_sessions_lost_total").increment(1);
                tracing::warn!(session_id = %session, epoch = lease.epoch, "lease lost");
                Answer::Nothing
            }
            // The lease has to run out: a release would be no attempt, and the same call would be paid for ever.
            Err(Interrupted::Panicked) => Answer::Nak(jittered(self.settings.lease)),
            Err(Interrupted::Release(reason)) => self.release((&claimed, &control), &reason, &latest).await,
        };
        answer_with(session, &*latest, answer).await;
        Answer::Nothing
    }

    async fn drive(&self, claimed: &Claimed, control: &Control) -> Result<(), Interrupted> {
        let (lease, remaining) = (claimed.lease, claimed.remaining);
        let compared = reconcile(&*self.sessions, &*self.ports.feed, lease.session_id, Some(lease));
        if let Some(Recovered::Ended) = compared.await.map_err(interrupted)? {
            return Ok(());
        }
        self.ports.feed.notify(lease.session_id);
        let end = if claimed.cancel_requested {
            Some(EarlyEnd::Cancelled)
        } else if remaining.is_zero() {
            Some(EarlyEnd::Deadline)
        } else {
            (claimed.attempts >= self.settings.attempts).then_some(EarlyEnd::AttemptsExhausted)
        };
        if let Some(end) = end {
            return end_early(&self.ports, lease, end).await;
        }
        let deadline = async {
            tokio::time::sleep(remaining).await; // the deadline itself
            control.stop(Stop::Deadline);
            std::future::pending::<()>().await;
        };
        let drained = async {
            self.drain.cancelled().await;
            tokio::select! {
                () = tokio::time::sleep(self.settings.drain_timeout) => {} // the drain timeout itself
                () = self.hurry.cancelled() => {}
            }
        };
        let stuck = async {
            control.lost().await;
            tokio::time::sleep(LOST_GRACE).await; // how long a stuck run keeps its slot
        };
        let leased = LeasedSession { ports: self.ports.clone(), lease, control: control.clone() };
        tokio::select! {
            ended = leased.run() => ended,
            () = deadline => Ok(()),
            () = drained => Err(Interrupted::Release(ReleaseReason::Drain)),
            () = stuck => Err(Interrupted::LeaseLost),
        }
    }

    /// The store first: whoever gets the message next must find the session free.
    async fn release(
        &self,
        (claimed, control): (&Claimed, &Control),
        reason: &ReleaseReason,
        delivery: &Arc<D>,
    ) -> Answer {
        let (session_id, progressed) = (claimed.lease.session_id, control.has_progressed());
        let returned = cause(reason).map(|cause| self.hesitation.returned(session_id, progressed, cause));
        let counts = returned.is_some_and(|returned| returned.counts);
        if counts {
            metrics::counter!("tarsy_returns_counted_total", "reason" => reason.as_str()).increment(1);
            let before = if progressed { 0 } else { claimed.attempts };
            if before.saturating_add(1) >= self.settings.attempts && self.give_up(claimed, reason).await {
                return self.settler.take(session_id, delivery);
            }
        }
        let released = match counts {
            true => self.sessions.release_counted(claimed.lease).await,
            false => self.sessions.release(claimed.lease).await,
        };
        match released {
            Ok(()) => {
                metrics::counter!("tarsy_sessions_released_total", "reason" => reason.as_str()).increment(1);
                tracing::info!(%session_id, counts, "session released: {reason}");
            }
            // Another worker has the message, too.
            Err(error @ StoreError::LeaseLost { .. }) => {
                metrics::counter!("tarsy_sessions_lost_total").increment(1);
                tracing::warn!(%session_id, "not released: {error}");
                return Answer::Nothing;
            }
            // The end was committed, only the answer to it was lost.
            Err(StoreError::Ended) => return self.settler.take(session_id, delivery),
            Err(StoreError::Behind(error)) => {
                tracing::warn!(%session_id, error, "session not released: its row is gone");
                return Answer::Nak(jittered(BEHIND_DELAY));
            }
            Err(error @ (StoreError::Conflict(_) | StoreError::Refused(_) | StoreError::Unavailable(_))) => {
                tracing::warn!(%session_id, "session was to be released ({reason}), its lease has to run out: {error}");
                return Answer::Nak(jittered(self.settings.lease));
            }
        }
        match (reason, returned) {
            (_, Some(returned)) => Answer::Nak(jittered(returned.delay)),
            (ReleaseReason::Drain, None) => Answer::Nak(Duration::ZERO),
            (ReleaseReason::StoreBehind(_), None) => Answer::Nak(jittered(BEHIND_DELAY)),
            (ReleaseReason::StoreUnavailable(_), None) => Answer::Nak(jittered(Duration::from_secs(2))),
            (
                ReleaseReason::Incompatible(_)
                | ReleaseReason::ModelUnavailable(_)
                | ReleaseReason::ModelBroke(_)
                | ReleaseReason::Refused(_),
                None,
            ) => Answer::Nak(jittered(Duration::from_secs(30))),
        }
    }

    /// Ends a session that has used up its attempts without a death; whether that is committed.
    async fn give_up(&self, claimed: &Claimed, reason: &ReleaseReason) -> bool {
        let session_id = claimed.lease.session_id;
        let end = EarlyEnd::GivenUp(format!("given up: {reason}, again and again"));
        match end_early(&self.ports, claimed.lease, end).await {
            Ok(()) => {
                tracing::warn!(%session_id, "session is given up: {reason}");
                self.hesitation.forget(session_id);
                true
            }
            Err(error) => {
                tracing::warn!(%session_id, "session could not be given up: {error}");
                false
            }
        }
    }
}

/// Whether a session came back for what it may have done itself, or because the LLM service is unavailable.
fn cause(reason: &ReleaseReason) -> Option<Cause> {
    match reason {
        ReleaseReason::ModelUnavailable(_) => Some(Cause::Unavailable),
        ReleaseReason::ModelBroke(_) => Some(Cause::Broke),
        ReleaseReason::Refused(_) => Some(Cause::Refused),
        ReleaseReason::Drain
        | ReleaseReason::StoreUnavailable(_)
        | ReleaseReason::StoreBehind(_)
        | ReleaseReason::Incompatible(_) => None,
    }
}
