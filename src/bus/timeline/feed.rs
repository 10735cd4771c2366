//! Publishes the events of sessions from the outbox to `JetStream`: implements the port `Feed`.
//!
//! One task per session publishes; the engine, a join and the sweeper only notify it, and no run waits for the broker.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::deltas;
use super::divergence;
use super::publisher::{CatchUpError, Publisher};
use super::stream_health::StreamHealth;
use crate::bus::connection::Nats;
use crate::bus::dead_letters::publish;
use crate::engine::backoff::Backoff;
use crate::engine::ports::{BrokerUnavailable, DeadLetter, Divergence, Feed, Outbox};
use crate::engine::trace;
use crate::investigation::ids::SessionId;
use crate::investigation::timeline::Delta;

const BACKOFF: Backoff = Backoff { first: Duration::from_millis(50), max: Duration::from_secs(2) };
/// Deltas that wait to be published; further ones are dropped.
const MAX_QUEUED_DELTAS: usize = 1024;

/// The limits of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedSettings {
    /// How long `drain` retries.
    pub drain_timeout: Duration,
    /// A publisher ends when it had nothing to publish for this long.
    pub idle_timeout: Duration,
    /// How many sessions have a publisher. The events of a further one are published by its `drain` or by the sweeper.
    pub max_sessions: usize,
}

impl Default for FeedSettings {
    fn default() -> Self {
        Self { drain_timeout: Duration::from_secs(5), idle_timeout: Duration::from_secs(60), max_sessions: 10_000 }
    }
}

/// Publishes events from the outbox `O`, deltas and dead letters. Clones share their publishers.
#[derive(Debug)]
pub struct JetStreamFeed<O>(Arc<Inner<O>>);

impl<O> Clone for JetStreamFeed<O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct Inner<O> {
    nats: Nats,
    outbox: Arc<O>,
    settings: FeedSettings,
    sessions: Mutex<HashMap<SessionId, Arc<PublisherTask>>>,
    deltas: mpsc::Sender<Delta>,
    stream_health: StreamHealth,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// The handle of a publisher's task.
#[derive(Debug)]
struct PublisherTask {
    notified: Notify,
    stop: CancellationToken,
}

impl<O: Outbox> JetStreamFeed<O> {
    /// Needs a Tokio runtime.
    pub fn new(nats: &Nats, outbox: Arc<O>, settings: FeedSettings) -> Self {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_DELTAS);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        tasks.spawn(deltas::publish_deltas(nats.clone(), receiver, stop.clone()));
        let sessions = Mutex::default();
        Self(Arc::new(Inner {
            nats: nats.clone(),
            outbox,
            settings,
            sessions,
            deltas: sender,
            stream_health: StreamHealth::default(),
            tasks,
            stop,
        }))
    }

    /// Ends every task. Unpublished events are published after the next notification, in any process.
    pub async fn close(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<PublisherTask>>> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes after every notification, until it is stopped or idle.
    async fn publish(self, session: SessionId, task: Arc<PublisherTask>) {
        let mut publisher = Publisher::new(&self.0.nats, Arc::clone(&self.0.outbox), session);
        loop {
            if task.stop.run_until_cancelled(self.publish_all(session, &mut publisher)).await.is_none() {
                return;
            }
            tokio::select! {
                () = task.stop.cancelled() => return,
                () = task.notified.notified() => {}
                () = tokio::time::sleep(self.0.settings.idle_timeout) => break,
            }
        }
        self.forget(session, &task);
        // A notification that came before the removal was lost.
        task.stop.run_until_cancelled(self.publish_all(session, &mut publisher)).await;
    }

    fn forget(&self, session: SessionId, task: &Arc<PublisherTask>) {
        let mut sessions = self.sessions();
        if sessions.get(&session).is_some_and(|current| Arc::ptr_eq(current, task)) {
            sessions.remove(&session);
        }
    }

    /// Retries until the stream has every event of the table.
    async fn publish_all(&self, session: SessionId, publisher: &mut Publisher<O>) {
        let mut failures = 0;
        loop {
            match self.catch_up(publisher).await {
                Ok(session_seq) if failures > 0 => {
                    tracing::info!(session_id = %session, session_seq, "publishing resumed");
                    return;
                }
                Ok(_) => return,
                Err(error) if failures > 0 => {
                    tracing::debug!(session_id = %session, %error, "publishing still failing")
                }
                Err(error) => tracing::warn!(session_id = %session, %error, "publishing failed: retrying"),
            }
            tokio::time::sleep(BACKOFF.delay(failures)).await;
            failures += 1;
        }
    }

    /// Publishes all that the table has, and records whether the stream accepted it.
    async fn catch_up(&self, publisher: &mut Publisher<O>) -> Result<u32, CatchUpError> {
        let before = publisher.reached();
        let reached = publisher.catch_up().await;
        if reached.is_err() {
            metrics::counter!("tarsy_event_publish_failures_total").increment(1);
        }
        match &reached {
            Ok(session_seq) if Some(*session_seq) != before => self.0.stream_health.accepted(),
            Err(CatchUpError::Broker(reason)) => self.0.stream_health.refused(reason),
            // The stream was not asked to accept anything.
            Ok(_) | Err(CatchUpError::Store(_) | CatchUpError::Gap { .. } | CatchUpError::Diverged(_)) => {}
        }
        reached
    }

    /// Publishes up to `last_seq`; writes the last failure to `failure`.
    async fn publish_up_to(&self, session: SessionId, last_seq: u32, failure: &mut String) {
        let mut publisher = Publisher::new(&self.0.nats, Arc::clone(&self.0.outbox), session);
        publisher.ended = true;
        let mut failures = 0;
        loop {
            *failure = match self.catch_up(&mut publisher).await {
                Ok(session_seq) if session_seq >= last_seq => return,
                Ok(session_seq) => format!("the table ends at event {session_seq}"),
                Err(error) => error.to_string(),
            };
            tokio::time::sleep(BACKOFF.delay(failures)).await;
            failures += 1;
        }
    }
}

impl<O: Outbox> Feed for JetStreamFeed<O> {
    fn notify(&self, session: SessionId) {
        let mut sessions = self.sessions();
        if let Some(task) = sessions.get(&session) {
            task.notified.notify_one();
        } else if sessions.len() < self.0.settings.max_sessions && !self.0.stop.is_cancelled() {
            let task = Arc::new(PublisherTask { notified: Notify::new(), stop: self.0.stop.child_token() });
            sessions.insert(session, Arc::clone(&task));
            let publishing = self.clone().publish(session, task).instrument(trace::beside(session));
            self.0.tasks.spawn(publishing);
        } else {
            tracing::debug!(session_id = %session, "notification dropped: publisher limit reached");
        }
    }

    fn delta(&self, delta: Delta) {
        if self.0.nats.connection_state().connected && self.0.deltas.try_send(delta).is_err() {
            tracing::debug!("delta dropped: queue full");
        }
    }

    async fn divergence(&self, session: SessionId) -> Result<Option<Divergence>, BrokerUnavailable> {
        divergence::divergence(&self.0.nats, &*self.0.outbox, session).await
    }

    async fn drain(&self, session: SessionId, last_seq: u32) -> Result<(), BrokerUnavailable> {
        // The table is complete. From here on this call publishes, and reads the end of the subject anew.
        if let Some(task) = self.sessions().remove(&session) {
            task.stop.cancel();
        }
        if last_seq == 0 {
            return Ok(());
        }
        let mut failure = "no answer".to_owned();
        let limit = self.0.settings.drain_timeout;
        match tokio::time::timeout(limit, self.publish_up_to(session, last_seq, &mut failure)).await {
            Ok(()) => Ok(()),
            Err(_) => Err(BrokerUnavailable(format!(
                "events up to {last_seq} are not all published after {limit:?}: {failure}"
            ))),
        }
    }

    async fn accepting(&self) -> Result<(), BrokerUnavailable> {
        self.0.stream_health.check(&self.0.nats).await
    }

    async fn publish_dead_letter(&self, letter: DeadLetter) -> Result<(), BrokerUnavailable> {
        publish::publish_dead_letter(&self.0.nats, letter).await
    }
}
