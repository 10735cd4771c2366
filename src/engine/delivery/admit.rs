//! What becomes of an alert that has no place yet: it is read, then opened, joined or buried.
//!
//! Reading is what an alert can kill its reader with, so the store has counted it before it begins. Whatever ends it
//! without a death and without a decision is taken off that count again.
//!
//! A death is counted for all that the worker was at. So an alert that may have caused one is read alone: while it is,
//! this worker reads and claims nothing else, and runs nothing that one more death would bring nearer to being given up.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::dispatch::{Dispatcher, Intake, Planned, PrepareError, PreparedAlert, jittered};
use super::heartbeat::attended;
use crate::engine::ports::{
    Claimed, DeadReason, Delivery, Disposition, Feed, JoinRequest, OpenRequest, Opened, Received, Refusal, Sessions,
    StoreError,
};
use crate::engine::world::World;
use crate::investigation::ids::SessionId;

/// How long taking a reading off the count may hold up the answer to the broker.
const REFUND_TIMEOUT: Duration = Duration::from_secs(5);
/// Until the session of the fingerprint that is being cancelled is over.
const CLOSING: Duration = Duration::from_secs(2);

/// Between two looks at whether the tools of an alert's chain can be reached.
const TOOLS: Duration = Duration::from_secs(5);

/// What came back together after a death begins within this time.
const SPREAD: Duration = Duration::from_secs(1);

/// What reading an undecided alert led to.
#[derive(Debug)]
pub(super) enum Admission {
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

/// Why nothing came of a body.
enum Unread {
    Refused(Refusal),
    Unavailable(StoreError),
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
    ) -> Result<Admission, StoreError> {
        if let Some(refusal) = fault.or_else(|| self.poison(attempts)) {
            self.sessions.give_up(received.alert_id, refusal).await?;
            return Ok(Admission::Placed);
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
    async fn read_alone(&self, received: &Received) -> Result<Admission, StoreError> {
        let id = received.alert_id;
        self.refund_attempt(id).await;
        let turn = async {
            tokio::time::sleep(SPREAD.mul_f64(fastrand::f64())).await; // so that none of them is always the first
            self.running.alone().await
        };
        let alone = tokio::select! {
            () = self.drain.cancelled() => return Ok(Admission::Waits(Duration::ZERO)),
            alone = tokio::time::timeout(2 * self.settings.lease, turn) => alone,
        };
        let Ok(_alone) = alone else {
            tracing::debug!(session_id = %id, "alert goes back to the queue: it cannot be read alone now");
            return Ok(Admission::Waits(jittered(self.settings.lease)));
        };
        match self.sessions.receive(received.clone()).await {
            Ok(Disposition::Undecided { attempts }) => match self.poison(attempts) {
                Some(refusal) => self.sessions.give_up(id, refusal).await.map(|()| Admission::Placed),
                None => self.read_and_open(received).await,
            },
            Ok(
                Disposition::Opened
                | Disposition::Joined(_)
                | Disposition::Ended
                | Disposition::Dead(_)
                | Disposition::UsedId,
            ) => Ok(Admission::Raced),
            Err(error) => {
                tracing::warn!(session_id = %id, "alert goes back to the queue: {error}");
                Ok(Admission::Waits(jittered(CLOSING)))
            }
        }
    }

    /// This delivery was no attempt to read the alert. The store may be what is unavailable: then it stays counted.
    pub(super) async fn refund_attempt(&self, id: SessionId) {
        match tokio::time::timeout(REFUND_TIMEOUT, self.sessions.refund_attempt(id)).await {
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

    /// The store is asked first: an alert that an open session takes along, or that one answers for which completed just
    /// before, needs no plan and no tools.
    async fn read_and_open(&self, received: &Received) -> Result<Admission, StoreError> {
        let (id, shared) = (received.alert_id, Arc::new(received.clone()));
        let (intake, body) = (Arc::clone(&self.intake), Arc::clone(&shared));
        let prepared = match self.aside(id, async move { intake.prepare(&body).await }).await {
            Ok(prepared) => Arc::new(prepared),
            Err(unread) => return self.unread(id, unread).await,
        };
        if prepared.thread.is_none() {
            let PreparedAlert { alert, force, .. } = &*prepared;
            let (alert, force, cooldown) = (alert.clone(), *force, self.settings.cooldown);
            if let Some(taken) = self.sessions.join(JoinRequest { alert_id: id, alert, cooldown, force }).await? {
                return Ok(self.decided(id, (taken, Instant::now())));
            }
        }
        let (intake, about) = (Arc::clone(&self.intake), Arc::clone(&prepared));
        let planned = match self.aside(id, async move { intake.plan(&shared, &about).await }).await {
            Ok(planned) => planned,
            Err(unread) => return self.unread(id, unread).await,
        };
        if self.waits_for_tools(id, &planned.plan.unavailable_servers).await? {
            return Ok(Admission::Later(jittered(TOOLS)));
        }
        self.open(id, (*prepared).clone(), planned).await
    }

    async fn unread(&self, id: SessionId, unread: Unread) -> Result<Admission, StoreError> {
        match unread {
            Unread::Refused(refusal) => {
                self.sessions.give_up(id, refusal).await?;
                Ok(Admission::Placed)
            }
            // Taken off the count by the caller, as after any other write that failed.
            Unread::Unavailable(error) => Err(error),
            Unread::Panicked => Ok(Admission::Died),
            Unread::Stopped => Ok(Admission::Later(Duration::ZERO)),
            Unread::TooLong => {
                tracing::warn!(session_id = %id, "alert goes back to the queue: reading it takes too long");
                Ok(Admission::Later(jittered(self.settings.lease)))
            }
        }
    }

    /// An investigation without the tools of its chain is paid for and finds little, so a server that restarts is waited
    /// for. It is bounded by the store's clock: neither a redelivery nor another worker begins anew.
    async fn waits_for_tools(&self, id: SessionId, unavailable: &[String]) -> Result<bool, StoreError> {
        if unavailable.is_empty() {
            return Ok(false);
        }
        let servers = unavailable.join(", ");
        if self.sessions.waited(id).await? < self.settings.tool_wait {
            metrics::counter!("tarsy_tool_server_waits_total").increment(1);
            tracing::info!(session_id = %id, "alert waits for its mcp servers: unavailable: {servers}");
            return Ok(true);
        }
        metrics::counter!("tarsy_sessions_without_tools_total").increment(1);
        tracing::warn!(session_id = %id, "session begins without mcp servers: unavailable: {servers}");
        Ok(false)
    }

    /// In a task of its own, so that a panic ends the reading and not the sessions beside it.
    async fn aside<T: Send + 'static>(
        &self,
        id: SessionId,
        reading: impl Future<Output = Result<T, PrepareError>> + Send + 'static,
    ) -> Result<T, Unread> {
        let reading = AbortOnDropHandle::new(tokio::spawn(reading));
        tokio::select! {
            biased;
            () = self.drain.cancelled() => Err(Unread::Stopped),
            read = tokio::time::timeout(2 * self.settings.lease, reading) => match read {
                Ok(Ok(Ok(read))) => Ok(read),
                Ok(Ok(Err(PrepareError::Refused(refusal)))) => Err(Unread::Refused(refusal)),
                Ok(Ok(Err(PrepareError::Unavailable(error)))) => Err(Unread::Unavailable(error)),
                Ok(Err(panic)) => {
                    tracing::error!(session_id = %id, "reading an alert panicked: {panic}");
                    Err(Unread::Panicked)
                }
                Err(_) => Err(Unread::TooLong),
            }
        }
    }

    async fn open(&self, id: SessionId, prepared: PreparedAlert, planned: Planned) -> Result<Admission, StoreError> {
        let PreparedAlert { alert, force, retry_of, thread } = prepared;
        let Planned { plan, started } = planned;
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
            parent: thread.map(|thread| thread.root),
        };
        let asked_at = Instant::now();
        let opened = self.sessions.open(request).await?;
        Ok(self.decided(id, (opened, asked_at)))
    }

    fn decided(&self, id: SessionId, (opened, asked_at): (Opened, Instant)) -> Admission {
        match opened {
            Opened::Session(claimed) => {
                tracing::info!(session_id = %id, epoch = claimed.lease.epoch, "session opened");
                Admission::Session(claimed, asked_at)
            }
            Opened::Joined(target) => {
                metrics::counter!("tarsy_alerts_joined_total", "reason" => "open").increment(1);
                tracing::info!(session_id = %id, %target, "alert joined an open session");
                self.ports.feed.notify(target);
                Admission::Placed
            }
            Opened::CoveredByCooldown(target) => {
                metrics::counter!("tarsy_alerts_joined_total", "reason" => "cooldown").increment(1);
                tracing::info!(session_id = %id, %target, "alert is answered for by a session that completed just before");
                Admission::Placed
            }
            Opened::TargetCancelling(target) => {
                tracing::debug!(session_id = %id, %target, "alert waits for the end of a session that is cancelled");
                Admission::Later(jittered(CLOSING))
            }
            Opened::NotInvestigated => Admission::Placed,
            Opened::Raced => Admission::Raced,
        }
    }
}
