//! `CancelListener`, which passes requests to cancel sessions on to their runs.
//!
//! The listener receives requests while they are made, and looks them up wherever it could have missed one: the stream
//! keeps the last request of every session. So a request for a session that is still queued is found when the session
//! is opened, and one that was made while the broker was unavailable is found at the next renewal. The listener delays
//! no run.
//!
//! A session that no worker has needs no worker to run it, so a worker that claims nothing ends and settles it as well.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::sync::{Notify, mpsc};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::delivery::dispatcher::Dispatcher;
use crate::delivery::settle::{SettleError, Settled, settle};
use crate::ports::{CancelNotice, CancelOutcome, CancelRequests, RunStatus, Sessions, StoreError};
use crate::run::registry::RunHandle;
use crate::run::session_end::requested_by;
use crate::world::{Ports, World};
use tarsy_core::ids::SessionId;

/// Requests that are looked up at the same time.
const MAX_CONCURRENT: usize = 8;
/// The time limit for one answer of the store or the broker.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Requests that wait to be written into the store. Their runs are stopped already.
const MAX_WAITING: usize = 64;
/// Every worker receives a request. Usually the first one of them has settled the session when the others look.
const MAX_JITTER: Duration = Duration::from_millis(300);

/// Stops the runs whose cancellation is requested. Every third of the lease, it looks up the requests for all runs.
#[derive(Debug)]
pub struct CancelListener<W: World>(pub Arc<Dispatcher<W>>);

impl<W: World> CancelListener<W> {
    /// Listens until `end` is cancelled.
    pub async fn run(self, end: CancellationToken) {
        let (accepted, unwritten) = mpsc::channel(MAX_WAITING);
        let (not_run_here, others) = mpsc::channel(MAX_WAITING);
        let listening = Listening {
            dispatcher: &self.0,
            missed: Notify::new(),
            accepted,
            not_run_here,
        };
        tokio::select! {
            never = listening.receive() => match never {},
            never = listening.look_up() => match never {},
            () = persist(&*self.0.ports.sessions, unwritten) => {}
            () = end_ownerless(&self.0, others) => {}
            () = end.cancelled() => {}
        }
    }
}

struct Listening<'a, W: World> {
    dispatcher: &'a Dispatcher<W>,
    missed: Notify,
    accepted: mpsc::Sender<SessionId>,
    not_run_here: mpsc::Sender<SessionId>,
}

impl<W: World> Listening<'_, W> {
    async fn receive(&self) -> Infallible {
        loop {
            match self.dispatcher.ports.cancel_requests.next().await {
                CancelNotice::Requested(session) => match self.dispatcher.runs.get(session) {
                    Some(run) => self.cancel(&run),
                    None if self.not_run_here.try_send(session).is_err() => {
                        tracing::debug!(session_id = %session, "cancel request left to other workers: too many wait");
                    }
                    None => {}
                },
                CancelNotice::Missed => self.missed.notify_one(),
            }
        }
    }

    /// Looks up the requests for new runs, and those for all runs after a gap and every third of the lease.
    async fn look_up(&self) -> Infallible {
        let mut ticks = tokio::time::interval(self.dispatcher.lease() / 3);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut known = BTreeSet::new();
        loop {
            let all = tokio::select! {
                () = self.dispatcher.runs.added() => false,
                () = self.missed.notified() => true,
                _ = ticks.tick() => true,
            };
            let runs = self.dispatcher.runs.all();
            let now: BTreeSet<_> = runs
                .iter()
                .map(|run| (run.lease.session_id, run.lease.epoch))
                .collect();
            let unchecked = runs.into_iter().filter(|run| {
                (all || !known.contains(&(run.lease.session_id, run.lease.epoch)))
                    && run.control.stop_reason().is_none()
            });
            stream::iter(unchecked)
                .for_each_concurrent(MAX_CONCURRENT, |run| async move { self.check(&run).await })
                .await;
            known = now;
        }
    }

    async fn check(&self, run: &RunHandle<W::Delivery>) {
        let session_id = run.lease.session_id;
        let requests = &self.dispatcher.ports.cancel_requests;
        let request = requests.cancel_requested(session_id);
        match tokio::time::timeout(ANSWER_TIMEOUT, request).await {
            Ok(Ok(true)) => self.cancel(run),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => {
                tracing::debug!(%session_id, "cancel requests not looked up: {error}")
            }
            Err(_) => {
                tracing::debug!(%session_id, "cancel requests not looked up: no answer from the broker")
            }
        }
    }

    /// Stops the run before the request is stored, because stopping waits for no service.
    fn cancel(&self, run: &RunHandle<W::Delivery>) {
        if run.control.stop_reason().is_some() {
            return;
        }
        let session_id = run.lease.session_id;
        run.control
            .span()
            .in_scope(|| tracing::info!(%session_id, "session cancelled on request"));
        run.control.cancel();
        if self.accepted.try_send(session_id).is_err() {
            tracing::debug!(%session_id, "cancel request not stored: too many wait");
        }
    }
}

/// Writes requests into the store, so that they outlive this worker and no alert joins the session any more. A request
/// that is not stored stays on the stream.
async fn persist<S: Sessions>(sessions: &S, mut unwritten: mpsc::Receiver<SessionId>) {
    while let Some(session_id) = unwritten.recv().await {
        match tokio::time::timeout(ANSWER_TIMEOUT, sessions.cancel(session_id, None)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%session_id, "cancel request not stored: {error}"),
            Err(_) => {
                tracing::debug!(%session_id, "cancel request not stored: no answer from the store")
            }
        }
    }
}

/// Ends requested sessions that no worker has, and publishes their last event.
async fn end_ownerless<W: World>(dispatcher: &Dispatcher<W>, requests: mpsc::Receiver<SessionId>) {
    let requests = stream::unfold(requests, |mut requests| async {
        Some((requests.recv().await?, requests))
    });
    requests
        .for_each_concurrent(MAX_CONCURRENT, |session_id| async move {
            tokio::time::sleep(MAX_JITTER.mul_f64(fastrand::f64())).await; // the jitter itself
            if let Err(error) = end_if_ownerless(dispatcher, session_id).await {
                tracing::debug!(%session_id, "cancelled session not settled yet: {error}");
            }
        })
        .await;
}

async fn end_if_ownerless<W: World>(
    dispatcher: &Dispatcher<W>,
    session: SessionId,
) -> Result<(), SettleError> {
    let Dispatcher {
        ports,
        runs,
        settler,
        ..
    } = dispatcher;
    match settle_known(ports, session).await? {
        Some(Settled::NotOver) if runs.get(session).is_none() => {}
        Some(Settled::NotOver | Settled::Done(_)) | None => return Ok(()),
    }
    let by = requested_by(ports, session).await;
    if ports.sessions.cancel(session, by).await? == CancelOutcome::Cancelled {
        metrics::counter!("tarsy_sessions_finished_total", "status" => RunStatus::Cancelled.as_str()).increment(1);
        tracing::info!(session_id = %session, "session without an owner cancelled on request");
        if !settler.holds(session) {
            settle(ports, session).await?;
        }
    }
    Ok(())
}

/// `None` for an alert that no worker has seen.
async fn settle_known<W: World>(
    ports: &Ports<W>,
    session: SessionId,
) -> Result<Option<Settled>, SettleError> {
    match settle(ports, session).await {
        Ok(settled) => Ok(Some(settled)),
        Err(SettleError::Store(StoreError::Conflict(_))) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
