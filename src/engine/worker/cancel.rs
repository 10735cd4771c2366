//! `CancelListener`, which passes requests to cancel sessions on to their runs.
//!
//! The listener receives requests while they are made, and looks them up wherever it could have missed one: the stream
//! keeps the last request of every session. So a request for a session that is still queued is found when the session
//! is opened, and one that was made while the broker was unavailable is found at the next renewal. The listener delays
//! no run.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::sync::{Notify, mpsc};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::shared::Shared;
use crate::engine::ports::{CancelNotice, CancelRequests, Sessions};
use crate::engine::run::registry::RunHandle;
use crate::engine::world::World;
use crate::investigation::ids::SessionId;

/// Requests that are looked up at the same time.
const MAX_CONCURRENT: usize = 8;
/// For one answer of the store or the broker.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Requests that wait to be written into the store. Their runs are stopped already.
const MAX_WAITING: usize = 64;

/// Stops the runs whose cancellation is requested. Every third of the lease, it looks up the requests for all runs.
#[derive(Debug)]
pub struct CancelListener<W: World>(pub Arc<Shared<W>>);

impl<W: World> CancelListener<W> {
    /// Listens until `end` is cancelled.
    pub async fn run(self, end: CancellationToken) {
        let (accepted, unwritten) = mpsc::channel(MAX_WAITING);
        let listening = Listening { shared: &self.0, missed: Notify::new(), accepted };
        tokio::select! {
            never = listening.receive() => match never {},
            never = listening.look_up() => match never {},
            () = persist(&*self.0.ports.sessions, unwritten) => {}
            () = end.cancelled() => {}
        }
    }
}

struct Listening<'a, W: World> {
    shared: &'a Shared<W>,
    missed: Notify,
    accepted: mpsc::Sender<SessionId>,
}

impl<W: World> Listening<'_, W> {
    async fn receive(&self) -> Infallible {
        loop {
            match self.shared.ports.cancel_requests.next().await {
                CancelNotice::Requested(session) => {
                    if let Some(run) = self.shared.runs.get(session) {
                        self.cancel(&run);
                    }
                }
                CancelNotice::Missed => self.missed.notify_one(),
            }
        }
    }

    /// Looks up the requests for new runs, and those for all runs after a gap and every third of the lease.
    async fn look_up(&self) -> Infallible {
        let mut ticks = tokio::time::interval(self.shared.lease() / 3);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut known = BTreeSet::new();
        loop {
            let all = tokio::select! {
                () = self.shared.runs.added() => false,
                () = self.missed.notified() => true,
                _ = ticks.tick() => true,
            };
            let runs = self.shared.runs.all();
            let now: BTreeSet<_> = runs.iter().map(|run| (run.lease.session_id, run.lease.epoch)).collect();
            let unchecked = runs.into_iter().filter(|run| {
                (all || !known.contains(&(run.lease.session_id, run.lease.epoch)))
                    && run.control.stop_reason().is_none()
            });
            let checks = stream::iter(unchecked);
            checks.for_each_concurrent(MAX_CONCURRENT, |run| async move { self.check(&run).await }).await;
            known = now;
        }
    }

    async fn check(&self, run: &RunHandle<W::Delivery>) {
        let session_id = run.lease.session_id;
        let request = self.shared.ports.cancel_requests.cancel_requested(session_id);
        match tokio::time::timeout(ANSWER_TIMEOUT, request).await {
            Ok(Ok(true)) => self.cancel(run),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => tracing::debug!(%session_id, "cancel requests not looked up: {error}"),
            Err(_) => tracing::debug!(%session_id, "cancel requests not looked up: no answer from the broker"),
        }
    }

    /// Stops the run first: that waits for no service.
    fn cancel(&self, run: &RunHandle<W::Delivery>) {
        if run.control.stop_reason().is_some() {
            return;
        }
        let session_id = run.lease.session_id;
        run.control.span().in_scope(|| tracing::info!(%session_id, "session cancelled on request"));
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
        match tokio::time::timeout(ANSWER_TIMEOUT, sessions.cancel(session_id)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%session_id, "cancel request not stored: {error}"),
            Err(_) => tracing::debug!(%session_id, "cancel request not stored: no answer from the store"),
        }
    }
}

#[cfg(test)]
mod tests;
