//! Cancel requests: heard while they are made, and read again wherever one could have been missed.
//!
//! The stream of requests keeps the last one of every session. So a request for a session that is still queued is
//! found when it is opened, and one that came while the broker was unavailable is found at the next renewal. Nothing here
//! holds up a run.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::sync::{Notify, mpsc};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::engine::ports::{Request, Requests, Sessions};
use crate::engine::run::control::Stop;
use crate::engine::run::registry::{Run, Running};
use crate::investigation::ids::SessionId;

/// Requests that are read at the same time.
const AT_ONCE: usize = 8;
/// For one answer of the store or the broker.
const BOUND: Duration = Duration::from_secs(5);
/// Requests that wait to be written into the store; the runs have heard of them already.
const MAX_WAITING: usize = 64;

/// Hears and reads requests until `end` is cancelled. Every third of the lease those of all runs are read again.
pub async fn hear_requests<R: Requests, S: Sessions, D: Send + Sync + 'static>(
    requests: Arc<R>,
    sessions: Arc<S>,
    running: Arc<Running<D>>,
    (lease, end): (Duration, CancellationToken),
) {
    let (heard, waiting) = mpsc::channel(MAX_WAITING);
    let ears = Ears { requests: &*requests, running: &running, missed: Notify::new(), heard };
    tokio::select! {
        never = ears.listen() => match never {},
        never = ears.read(lease / 3) => match never {},
        () = persist(&*sessions, waiting) => {}
        () = end.cancelled() => {}
    }
}

struct Ears<'a, R, D> {
    requests: &'a R,
    running: &'a Running<D>,
    missed: Notify,
    heard: mpsc::Sender<SessionId>,
}

impl<R: Requests, D> Ears<'_, R, D> {
    async fn listen(&self) -> Infallible {
        loop {
            match self.requests.next().await {
                Request::Cancel(session) => {
                    if let Some(run) = self.running.get(session) {
                        self.cancel(&run);
                    }
                }
                Request::Missed => self.missed.notify_one(),
            }
        }
    }

    async fn read(&self, period: Duration) -> Infallible {
        let mut ticks = tokio::time::interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut known = BTreeSet::new();
        loop {
            let again = tokio::select! {
                () = self.running.entered() => false,
                () = self.missed.notified() => true,
                _ = ticks.tick() => true,
            };
            let runs = self.running.all();
            let now: BTreeSet<_> = runs.iter().map(|run| (run.lease.session_id, run.lease.epoch)).collect();
            let unread = runs.into_iter().filter(|run| {
                (again || !known.contains(&(run.lease.session_id, run.lease.epoch)))
                    && run.control.stop_reason().is_none()
            });
            stream::iter(unread).for_each_concurrent(AT_ONCE, |run| async move { self.read_one(&run).await }).await;
            known = now;
        }
    }

    async fn read_one(&self, run: &Run<D>) {
        let session_id = run.lease.session_id;
        match tokio::time::timeout(BOUND, self.requests.cancel_requested(session_id)).await {
            Ok(Ok(true)) => self.cancel(run),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => tracing::debug!(%session_id, "requests are read later: {error}"),
            Err(_) => tracing::debug!(%session_id, "requests are read later: no answer"),
        }
    }

    /// The run first: it waits for nobody.
    fn cancel(&self, run: &Run<D>) {
        if run.control.stop_reason().is_some() {
            return;
        }
        let session_id = run.lease.session_id;
        tracing::info!(%session_id, "session is cancelled on request");
        run.control.stop(Stop::Cancelled);
        if self.heard.try_send(session_id).is_err() {
            tracing::debug!(%session_id, "the request stays on the stream only");
        }
    }
}

/// Writes requests into the store, so that they outlive this worker and nothing joins the session any more.
async fn persist<S: Sessions>(sessions: &S, mut waiting: mpsc::Receiver<SessionId>) {
    while let Some(session_id) = waiting.recv().await {
        match tokio::time::timeout(BOUND, sessions.cancel(session_id)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%session_id, "the request stays on the stream only: {error}"),
            Err(_) => tracing::debug!(%session_id, "the request stays on the stream only: no answer"),
        }
    }
}

#[cfg(test)]
mod tests;
