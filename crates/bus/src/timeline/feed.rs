//! Publishes the events of sessions from the outbox to `JetStream`: implements the port `Feed`.
//!
//! One task per session publishes; the engine, a join and the sweeper only notify it, and no run waits for the broker.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, OnceCell, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::deltas;
use super::divergence;
use super::publisher::{CatchUpError, Publisher};
use super::signature::EventSigner;
use super::stream_health::StreamHealth;
use crate::connection::Nats;
use crate::dead_letters::publish;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::Delta;
use tarsy_engine::backoff::Backoff;
use tarsy_engine::ports::{BrokerUnavailable, DeadLetter, Divergence, EventIdentity, Feed, Outbox};
use tarsy_engine::trace;

/// The longest time that the last event may take from a write of this process to the stream before the table is read
/// for it.
const TAIL_TIMEOUT: Duration = Duration::from_millis(100);
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(50),
    max: Duration::from_secs(2),
};
/// Deltas that wait to be published; further ones are dropped.
const MAX_QUEUED_DELTAS: usize = 1024;

/// The limits of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedSettings {
    /// The time that `drain` retries.
    pub drain_timeout: Duration,
    /// A publisher ends when it had nothing to publish for this long and no renewal has asked about its session.
    pub idle_timeout: Duration,
    /// The number of sessions that have a publisher. The events of a further one are published by its `drain` or by
    /// the sweeper.
    pub max_sessions: usize,
}

impl Default for FeedSettings {
    fn default() -> Self {
        Self {
            drain_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(60),
            max_sessions: 40_000,
        }
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
    signer: Arc<OnceCell<EventSigner>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// The handle of a publisher's task.
#[derive(Debug)]
struct PublisherTask {
    notified: Notify,
    stop: CancellationToken,
    progress: watch::Sender<Progress>,
    /// Whether a renewal has asked about the session since this was read last.
    is_held: AtomicBool,
}

/// A session's publisher, and when it was started.
enum Started {
    /// The publisher reads the table first.
    Now(Arc<PublisherTask>),
    Before(Arc<PublisherTask>),
}

/// The progress of a publisher.
#[derive(Debug)]
enum Progress {
    Unknown,
    /// The stream has this event and all before it.
    Reached(EventIdentity),
    Failing,
}

impl Progress {
    fn has_reached(&self, session_seq: u32) -> bool {
        matches!(self, Self::Reached(last) if last.session_seq >= session_seq)
    }
}

/// The source of the events that a publisher sends next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Table,
    Tail,
}

impl<O: Outbox> JetStreamFeed<O> {
    /// Needs a Tokio runtime.
    pub fn new(nats: &Nats, outbox: Arc<O>, settings: FeedSettings) -> Self {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_DELTAS);
        let tasks = TaskTracker::new();
        let stop = CancellationToken::new();
        tasks.spawn(deltas::publish_deltas(nats.clone(), receiver, stop.clone()));
        Self(Arc::new(Inner {
            nats: nats.clone(),
            outbox,
            settings,
            sessions: Mutex::default(),
            deltas: sender,
            stream_health: StreamHealth::default(),
            signer: Arc::default(),
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

    /// Publishes after every notification, until it is stopped or idle.
    async fn publish(self, session: SessionId, task: Arc<PublisherTask>) {
        let mut publisher = self.publisher(session).following();
        let mut source = Source::Table;
        loop {
            let publishing = self.publish_all(session, &mut publisher, source, &task.progress);
            if task.stop.run_until_cancelled(publishing).await.is_none() {
                return;
            }
            source = tokio::select! {
                () = task.stop.cancelled() => return,
                () = task.notified.notified() => Source::Table,
                () = publisher.grown() => Source::Tail,
                () = tokio::time::sleep(self.0.settings.idle_timeout) => {
                    if !task.is_held.swap(false, Ordering::Relaxed) {
                        break;
                    }
                    Source::Tail
                }
            };
        }
        self.forget(session, &task);
        // A notification that came before the removal was lost.
        let publishing = self.publish_all(session, &mut publisher, Source::Table, &task.progress);
        task.stop.run_until_cancelled(publishing).await;
    }

    fn publisher(&self, session: SessionId) -> Publisher<O> {
        Publisher::new(
            &self.0.nats,
            Arc::clone(&self.0.outbox),
            session,
            Arc::clone(&self.0.signer),
        )
    }

    /// The session's publisher, started on first use; `None` at the limit of publishers or after the feed was closed.
    fn started(&self, session: SessionId) -> Option<Started> {
        let mut sessions = self.0.sessions.lock();
        if let Some(task) = sessions.get(&session) {
            return Some(Started::Before(Arc::clone(task)));
        }
        if sessions.len() >= self.0.settings.max_sessions || self.0.stop.is_cancelled() {
            tracing::debug!(session_id = %session, "notification dropped: publisher limit reached");
            return None;
        }
        let task = Arc::new(PublisherTask {
            notified: Notify::new(),
            stop: self.0.stop.child_token(),
            progress: watch::Sender::new(Progress::Unknown),
            is_held: AtomicBool::new(false),
        });
        sessions.insert(session, Arc::clone(&task));
        let publishing = self
            .clone()
            .publish(session, Arc::clone(&task))
            .instrument(trace::beside(session));
        self.0.tasks.spawn(publishing);
        Some(Started::Now(task))
    }

    fn forget(&self, session: SessionId, task: &Arc<PublisherTask>) {
        let mut sessions = self.0.sessions.lock();
        let current = sessions.get(&session);
        // A later publisher of the session may have taken its place.
        if current.is_some_and(|current| Arc::ptr_eq(current, task)) {
            sessions.remove(&session);
        }
    }

    /// Retries until the stream has every event of the source.
    async fn publish_all(
        &self,
        session: SessionId,
        publisher: &mut Publisher<O>,
        mut source: Source,
        progress: &watch::Sender<Progress>,
    ) {
        let mut failures = 0;
        loop {
            // Boxed: a publisher waits most of the time.
            match Box::pin(self.catch_up(publisher, source)).await {
                Ok(session_seq) => {
                    if failures > 0 {
                        tracing::info!(session_id = %session, session_seq, "publishing resumed");
                    }
                    let reached = publisher.reached().cloned();
                    progress.send_replace(reached.map_or(Progress::Unknown, Progress::Reached));
                    return;
                }
                Err(error) if failures > 0 => {
                    tracing::debug!(session_id = %session, %error, "publishing still failing")
                }
                Err(error) => {
                    tracing::warn!(session_id = %session, %error, "publishing failed: retrying")
                }
            }
            progress.send_replace(Progress::Failing);
            source = Source::Table;
            tokio::time::sleep(BACKOFF.delay(failures)).await;
            failures += 1;
        }
    }

    /// Publishes all that the source has, and records whether the stream accepted it.
    async fn catch_up(
        &self,
        publisher: &mut Publisher<O>,
        source: Source,
    ) -> Result<u32, CatchUpError> {
        let before = publisher.reached().map(|last| last.session_seq);
        let published = match source {
            Source::Tail => publisher.publish_committed().await,
            Source::Table => Ok(None),
        };
        let reached = match published {
            Ok(Some(session_seq)) => Ok(session_seq),
            Ok(None) => publisher.catch_up().await,
            Err(error) => Err(error),
        };
        if reached.is_err() {
            metrics::counter!("tarsy_event_publish_failures_total").increment(1);
        }
        match &reached {
            Ok(session_seq) if Some(*session_seq) != before => self.0.stream_health.accepted(),
            Err(CatchUpError::Broker(reason)) => self.0.stream_health.refused(reason),
            // The stream was not asked to accept anything.
            Ok(_)
            | Err(CatchUpError::Store(_) | CatchUpError::Gap { .. } | CatchUpError::Diverged(_)) => {
            }
        }
        reached
    }

    /// Publishes up to `last_seq`; writes the last failure to `failure`.
    async fn publish_up_to(&self, session: SessionId, last_seq: u32, failure: &mut String) {
        let mut publisher = self.publisher(session);
        publisher.ended = true;
        let mut failures = 0;
        loop {
            *failure = match self.catch_up(&mut publisher, Source::Table).await {
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
        if let Some(Started::Before(task)) = self.started(session) {
            task.notified.notify_one();
        }
    }

    fn notify_up_to(&self, session: SessionId, last_seq: u32) {
        let Some(started) = self.started(session) else {
            return;
        };
        let (Started::Now(task) | Started::Before(task)) = &started;
        task.is_held.store(true, Ordering::Relaxed);
        if matches!(started, Started::Before(_)) && !task.progress.borrow().has_reached(last_seq) {
            task.notified.notify_one();
        }
    }

    fn committed(&self, session: SessionId) {
        // A new publisher reads the table; one that runs is notified by the tail.
        self.started(session);
    }

    async fn has_published(&self, session: SessionId, last: &EventIdentity) -> bool {
        let Some(task) = self.0.sessions.lock().get(&session).cloned() else {
            return false;
        };
        let mut progress = task.progress.subscribe();
        let is_final = |progress: &Progress| match progress {
            Progress::Reached(_) => progress.has_reached(last.session_seq),
            Progress::Failing => true,
            Progress::Unknown => false,
        };
        let committed_here = tokio::time::timeout(TAIL_TIMEOUT, progress.wait_for(is_final));
        if committed_here.await.is_err() {
            // Another process has written the event.
            task.notified.notify_one();
        }
        let limit = self.0.settings.drain_timeout;
        let is_last = match tokio::time::timeout(limit, progress.wait_for(is_final)).await {
            Ok(Ok(progress)) => matches!(&*progress, Progress::Reached(reached) if reached == last),
            Ok(Err(_)) | Err(_) => false,
        };
        if is_last {
            task.stop.cancel();
            self.forget(session, &task);
        }
        is_last
    }

    fn delta(&self, delta: Delta) {
        if self.0.nats.connection_state().connected && self.0.deltas.try_send(delta).is_err() {
            tracing::debug!("delta dropped: queue full");
        }
    }

    async fn is_new(&self, session: SessionId) -> bool {
        divergence::is_new(&self.0.nats, session).await
    }

    async fn divergence(
        &self,
        session: SessionId,
    ) -> Result<Option<Divergence>, BrokerUnavailable> {
        divergence::divergence(&self.0.nats, &*self.0.outbox, session).await
    }

    async fn drain(&self, session: SessionId, last_seq: u32) -> Result<(), BrokerUnavailable> {
        // The table is complete. From here on this call publishes, and reads the end of the subject anew.
        if let Some(task) = self.0.sessions.lock().remove(&session) {
            task.stop.cancel();
        }
        if last_seq == 0 {
            return Ok(());
        }
        let mut failure = "no answer".to_owned();
        let limit = self.0.settings.drain_timeout;
        match tokio::time::timeout(limit, self.publish_up_to(session, last_seq, &mut failure)).await
        {
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
