//! The way out of a running session: implements the port `Feed` over a table of events and `JetStream`.
//!
//! One task per session publishes; the engine, a join and the sweeper only notify it, and no run waits for the broker.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::deltas;
use super::divergence;
use super::publisher::{Publisher, Stuck};
use super::refusals::Refusals;
use crate::bus::connection::Nats;
use crate::bus::dead_letters::publish;
use crate::engine::ports::{BrokerUnavailable, DeadLetter, Divergence, Feed, Outbox};
use crate::investigation::ids::SessionId;
use crate::investigation::timeline::Delta;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(2);
const DELTAS_BUFFER: usize = 1024;

/// Bounds of the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedSettings {
    /// How long `drain` tries.
    pub drain_timeout: Duration,
    /// A publisher without work ends after this time.
    pub idle_timeout: Duration,
    /// A notify for one more session is dropped; its `drain` or the sweeper publishes the events.
    pub max_sessions: usize,
}

impl Default for FeedSettings {
    fn default() -> Self {
        Self { drain_timeout: Duration::from_secs(5), idle_timeout: Duration::from_secs(60), max_sessions: 10_000 }
    }
}

/// Publishes events from `O`, shows deltas, stores dead letters. Clones share their publishers.
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
    sessions: Mutex<HashMap<SessionId, Arc<Running>>>,
    deltas: mpsc::Sender<Delta>,
    refusals: Refusals,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// A publisher's task, as others see it.
#[derive(Debug)]
struct Running {
    notified: Notify,
    stop: CancellationToken,
}

impl<O: Outbox> JetStreamFeed<O> {
    /// A feed from `outbox`. Needs a Tokio runtime.
    pub fn new(nats: &Nats, outbox: Arc<O>, settings: FeedSettings) -> Self {
        let (sender, receiver) = mpsc::channel(DELTAS_BUFFER);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        tasks.spawn(deltas::show(nats.clone(), receiver, stop.clone()));
        let sessions = Mutex::default();
        Self(Arc::new(Inner {
            nats: nats.clone(),
            outbox,
            settings,
            sessions,
            deltas: sender,
            refusals: Refusals::default(),
            tasks,
            stop,
        }))
    }

    /// Ends every task; what is not published yet is published by the next notify anywhere.
    pub async fn close(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Running>>> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes at every notify until it is stopped or idle.
    async fn publish(self, session: SessionId, running: Arc<Running>) {
        let mut publisher = Publisher::new(&self.0.nats, Arc::clone(&self.0.outbox), session);
        loop {
            tokio::select! {
                () = running.stop.cancelled() => return,
                () = self.publish_all(session, &mut publisher) => {}
            }
            tokio::select! {
                () = running.stop.cancelled() => return,
                () = running.notified.notified() => {}
                () = tokio::time::sleep(self.0.settings.idle_timeout) => break,
            }
        }
        self.forget(session, &running);
        // A notify that came before the removal woke nobody.
        tokio::select! {
            () = running.stop.cancelled() => {}
            () = self.publish_all(session, &mut publisher) => {}
        }
    }

    fn forget(&self, session: SessionId, running: &Arc<Running>) {
        let mut sessions = self.sessions();
        if sessions.get(&session).is_some_and(|current| Arc::ptr_eq(current, running)) {
            sessions.remove(&session);
        }
    }

    /// Tries until the table and the stream agree.
    async fn publish_all(&self, session: SessionId, publisher: &mut Publisher<O>) {
        let mut pause = FIRST_PAUSE;
        let mut failed = false;
        loop {
            match self.catch_up(publisher).await {
                Ok(session_seq) if failed => {
                    tracing::info!(session_id = %session, session_seq, "events are published again");
                    return;
                }
                Ok(_) => return,
                Err(error) if failed => tracing::debug!(session_id = %session, %error, "events still wait"),
                Err(error) => tracing::warn!(session_id = %session, %error, "events wait to be published"),
            }
            failed = true;
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(MAX_PAUSE);
        }
    }

    /// Notes whether the stream took what there was.
    async fn catch_up(&self, publisher: &mut Publisher<O>) -> Result<u32, Stuck> {
        let before = publisher.reached();
        let reached = publisher.catch_up().await;
        match &reached {
            Ok(session_seq) if Some(*session_seq) != before => self.0.refusals.none(),
            Err(Stuck::Broker(reason)) => self.0.refusals.note(reason),
            // Nothing was published.
            Ok(_) | Err(Stuck::Store(_) | Stuck::Gap { .. } | Stuck::Diverged(_)) => {}
        }
        reached
    }

    /// Publishes up to `last_seq`; leaves the last trouble in `trouble`.
    async fn reach(&self, session: SessionId, last_seq: u32, trouble: &mut String) {
        let mut publisher = Publisher::new(&self.0.nats, Arc::clone(&self.0.outbox), session).of_an_end();
        let mut pause = FIRST_PAUSE;
        loop {
            *trouble = match self.catch_up(&mut publisher).await {
                Ok(session_seq) if session_seq >= last_seq => return,
                Ok(session_seq) => format!("the table ends at event {session_seq}"),
                Err(error) => error.to_string(),
            };
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(MAX_PAUSE);
        }
    }
}

impl<O: Outbox> Feed for JetStreamFeed<O> {
    fn notify(&self, session: SessionId) {
        let mut sessions = self.sessions();
        if let Some(running) = sessions.get(&session) {
            running.notified.notify_one();
        } else if sessions.len() < self.0.settings.max_sessions && !self.0.stop.is_cancelled() {
            let running = Arc::new(Running { notified: Notify::new(), stop: self.0.stop.child_token() });
            sessions.insert(session, Arc::clone(&running));
            self.0.tasks.spawn(self.clone().publish(session, running));
        } else {
            tracing::debug!(session_id = %session, "a notify was dropped");
        }
    }

    fn delta(&self, delta: Delta) {
        if self.0.nats.connection_state().connected && self.0.deltas.try_send(delta).is_err() {
            tracing::debug!("a delta was dropped");
        }
    }

    async fn divergence(&self, session: SessionId) -> Result<Option<Divergence>, BrokerUnavailable> {
        divergence::divergence(&self.0.nats, &*self.0.outbox, session).await
    }

    async fn drain(&self, session: SessionId, last_seq: u32) -> Result<(), BrokerUnavailable> {
        // The table is complete: from here on this call publishes, from a fresh look at the subject.
        if let Some(running) = self.sessions().remove(&session) {
            running.stop.cancel();
        }
        if last_seq == 0 {
            return Ok(());
        }
        let mut trouble = "no answer".to_owned();
        let limit = self.0.settings.drain_timeout;
        match tokio::time::timeout(limit, self.reach(session, last_seq, &mut trouble)).await {
            Ok(()) => Ok(()),
            Err(_) => Err(BrokerUnavailable(format!(
                "events up to {last_seq} are not all published after {limit:?}: {trouble}"
            ))),
        }
    }

    async fn accepting(&self) -> Result<(), BrokerUnavailable> {
        self.0.refusals.accepting(&self.0.nats).await
    }

    async fn publish_dead_letter(&self, letter: DeadLetter) -> Result<(), BrokerUnavailable> {
        publish::publish_dead_letter(&self.0.nats, letter).await
    }
}
