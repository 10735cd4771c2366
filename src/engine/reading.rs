//! What becomes of an alert that has no place yet: it is read, then opened, joined or buried.
//!
//! Reading is what an alert can kill its reader with, so the store has counted it before it begins. Whatever ends it
//! without a death and without a decision is taken off that count again.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::attention::attended;
use super::dispatch::{Dispatcher, Intake, Understood, jittered};
use super::ports::{
    Claimed, DeadReason, Delivery, Feed, JournalError, OpenRequest, Opened, Received, Refusal, Sessions,
};
use super::world::World;
use crate::investigation::ids::SessionId;

/// How long taking a reading off the count may hold up the answer to the broker.
const SPARE_BOUND: Duration = Duration::from_secs(5);
/// Until the session of the fingerprint that is being cancelled is over.
const CLOSING: Duration = Duration::from_secs(2);

/// What reading an undecided alert led to.
#[derive(Debug)]
pub(super) enum Decision {
    /// A session, leased to this worker; the lease was asked for at that instant.
    Session(Claimed, Instant),
    /// It has its place, and no session of its own.
    Placed,
    /// Another worker was faster: look at its place again.
    Raced,
    /// Nothing was decided: somebody shall try again after this time.
    Later(Duration),
    /// Reading it panicked.
    Died,
}

/// What became of a body.
enum Reading {
    Understood(Box<Understood>),
    Refused(Refusal),
    Panicked,
    /// The worker shuts down.
    Stopped,
    TooLong,
}

impl<W: World, S: Sessions, I: Intake, D: Delivery> Dispatcher<W, S, I, D> {
    /// Finds a place for an undecided alert. `attempts` counts this reading, too.
    pub(super) async fn decide(
        &self,
        received: &Received,
        (fault, attempts): (Option<Refusal>, u32),
        delivery: &D,
    ) -> Result<Decision, JournalError> {
        if let Some(refusal) = fault.or_else(|| self.poison(attempts)) {
            self.sessions.bury(received.alert_id, refusal).await?;
            return Ok(Decision::Placed);
        }
        attended(delivery, self.settings.lease, self.read_and_open(received)).await
    }

    /// This delivery was no attempt to read the alert. The store may be what is away: then it stays counted.
    pub(super) async fn spare(&self, id: SessionId) {
        match tokio::time::timeout(SPARE_BOUND, self.sessions.spare(id)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(session_id = %id, "an interrupted reading stays counted: {error}"),
            Err(_) => tracing::debug!(session_id = %id, "an interrupted reading stays counted: no answer"),
        }
    }

    /// An alert that killed everybody who read it is not read again.
    fn poison(&self, attempts: u32) -> Option<Refusal> {
        (attempts > self.settings.attempts).then(|| {
            let deaths = attempts.saturating_sub(1);
            Refusal {
                reason: DeadReason::AttemptsExhausted,
                detail: format!("{deaths} workers died while they read it"),
            }
        })
    }

    async fn read_and_open(&self, received: &Received) -> Result<Decision, JournalError> {
        let id = received.alert_id;
        match self.read(received).await {
            Reading::Understood(understood) => self.open(id, *understood).await,
            Reading::Refused(refusal) => {
                self.sessions.bury(id, refusal).await?;
                Ok(Decision::Placed)
            }
            Reading::Panicked => Ok(Decision::Died),
            Reading::Stopped => Ok(Decision::Later(Duration::ZERO)),
            Reading::TooLong => {
                tracing::warn!(session_id = %id, "alert goes back to the queue: listing tools takes too long");
                Ok(Decision::Later(jittered(self.settings.lease)))
            }
        }
    }

    /// In a task of its own, so that a panic ends the reading and not the sessions beside it.
    async fn read(&self, received: &Received) -> Reading {
        let (id, intake, received) = (received.alert_id, Arc::clone(&self.intake), received.clone());
        let reading = AbortOnDropHandle::new(tokio::spawn(async move { intake.understand(&received).await }));
        tokio::select! {
            biased;
            () = self.drain.cancelled() => Reading::Stopped,
            read = tokio::time::timeout(2 * self.settings.lease, reading) => match read {
                Ok(Ok(Ok(understood))) => Reading::Understood(Box::new(understood)),
                Ok(Ok(Err(refusal))) => Reading::Refused(refusal),
                Ok(Err(panic)) => {
                    tracing::error!(session_id = %id, "reading an alert panicked: {panic}");
                    Reading::Panicked
                }
                Err(_) => Reading::TooLong,
            }
        }
    }

    async fn open(&self, id: SessionId, understood: Understood) -> Result<Decision, JournalError> {
        let Understood { alert, plan, started, force, retry_of } = understood;
        let request = OpenRequest {
            alert_id: id,
            alert,
            plan,
            worker: self.settings.worker,
            worker_name: self.settings.worker_name.clone(),
            token: Uuid::new_v4(),
            lease: self.settings.lease,
            session_timeout: self.settings.session_timeout,
            started,
            cooldown: self.settings.cooldown,
            force,
            retry_of,
        };
        let asked_at = Instant::now();
        Ok(match self.sessions.open(request).await? {
            Opened::Session(claimed) => {
                tracing::info!(session_id = %id, epoch = claimed.lease.epoch, "session opened");
                Decision::Session(claimed, asked_at)
            }
            Opened::Joined(target) => {
                metrics::counter!("tarsy_alerts_joined_total", "reason" => "open").increment(1);
                tracing::info!(session_id = %id, %target, "alert joined an open session");
                self.ports.feed.poke(target);
                Decision::Placed
            }
            Opened::Cooling(target) => {
                metrics::counter!("tarsy_alerts_joined_total", "reason" => "cooldown").increment(1);
                tracing::info!(session_id = %id, %target, "alert is answered for by a session that completed just before");
                Decision::Placed
            }
            Opened::Closing(target) => {
                tracing::debug!(session_id = %id, %target, "alert waits for the end of a session that is cancelled");
                Decision::Later(jittered(CLOSING))
            }
            Opened::NotInvestigated => Decision::Placed,
            Opened::Raced => Decision::Raced,
        })
    }
}
