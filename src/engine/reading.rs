//! What becomes of an alert that has no place yet: it is read, then opened, joined or buried.
//!
//! Reading is what an alert can kill its reader with, so the store has counted it before it begins. Whatever ends it
//! without a death and without a decision is taken off that count again.
//!
//! A death is counted for all that the worker was at. So an alert that may have caused one is read alone: while it is,
//! this worker reads and claims nothing else, and runs nothing that one more death would bring nearer to being given up.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::attention::attended;
use super::dispatch::{Dispatcher, Intake, Misread, Understood, jittered};
use super::ports::{
    Claimed, DeadReason, Delivery, Feed, JournalError, OpenRequest, Opened, Place, Received, Refusal, Sessions,
};
use super::world::World;
use crate::investigation::ids::SessionId;

/// How long taking a reading off the count may hold up the answer to the broker.
const SPARE_BOUND: Duration = Duration::from_secs(5);
/// Until the session of the fingerprint that is being cancelled is over.
const CLOSING: Duration = Duration::from_secs(2);

/// What came back together after a death begins within this time.
const SPREAD: Duration = Duration::from_secs(1);

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
    /// As `Later`, and it is off the count already.
    Waits(Duration),
    /// Reading it panicked.
    Died,
}

/// What became of a body.
enum Reading {
    Understood(Box<Understood>),
    Refused(Refusal),
    Away(JournalError),
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
        let reading = async {
            if attempts > 1 {
                return self.read_alone(received).await;
            }
            let _turn = self.running.beside_others().await;
            self.read_and_open(received).await
        };
        attended(delivery, self.settings.lease, reading).await
    }

    /// A reader has died, perhaps of this very alert. It is off the count until its turn comes.
    async fn read_alone(&self, received: &Received) -> Result<Decision, JournalError> {
        let id = received.alert_id;
        self.spare(id).await;
        let turn = async {
            tokio::time::sleep(SPREAD.mul_f64(fastrand::f64())).await; // so that none of them is always the first
            self.running.alone().await
        };
        let alone = tokio::select! {
            () = self.drain.cancelled() => return Ok(Decision::Waits(Duration::ZERO)),
            alone = tokio::time::timeout(2 * self.settings.lease, turn) => alone,
        };
        let Ok(_alone) = alone else {
            tracing::debug!(session_id = %id, "alert goes back to the queue: it cannot be read alone now");
            return Ok(Decision::Waits(jittered(self.settings.lease)));
        };
        match self.sessions.receive(received.clone()).await {
            Ok(Place::Undecided { attempts }) => match self.poison(attempts) {
                Some(refusal) => self.sessions.bury(id, refusal).await.map(|()| Decision::Placed),
                None => self.read_and_open(received).await,
            },
            Ok(Place::Opened | Place::Joined(_) | Place::Ended | Place::Dead(_) | Place::UsedId) => Ok(Decision::Raced),
            Err(error) => {
                tracing::warn!(session_id = %id, "alert goes back to the queue: {error}");
                Ok(Decision::Waits(jittered(CLOSING)))
            }
        }
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
            // Taken off the count by the caller, as after any other write that failed.
            Reading::Away(error) => Err(error),
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
                Ok(Ok(Err(Misread::Refused(refusal)))) => Reading::Refused(refusal),
                Ok(Ok(Err(Misread::Away(error)))) => Reading::Away(error),
                Ok(Err(panic)) => {
                    tracing::error!(session_id = %id, "reading an alert panicked: {panic}");
                    Reading::Panicked
                }
                Err(_) => Reading::TooLong,
            }
        }
    }

    async fn open(&self, id: SessionId, understood: Understood) -> Result<Decision, JournalError> {
        let Understood { alert, plan, started, force, retry_of, parent } = understood;
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
            parent,
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
