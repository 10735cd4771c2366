//! Follows one session: its past events, then new ones, each once and in order, to its end.
//!
//! Three sources are merged by the event's number: the table (if there is one), the stream, and live deltas. After a
//! reconnect, at a gap and after 5 s without an event the table is read again, so a lost stream only delays a watcher.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Subscriber;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::cursor::Cursor;
use super::event_reader::{EventReader, StreamedEvent, last_event};
use super::signature::EventSigner;
use crate::connection::Nats;
use crate::names::{live_subject, timeline_subject};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{Delta, TimelineEvent};
use tarsy_engine::ports::Outbox;

const HISTORY_INTERVAL: Duration = Duration::from_secs(5);
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// Longer than the election of a leader: the server may be cut off from its cluster.
const CHANGE_SERVER_AFTER: Duration = Duration::from_secs(10);
const MAX_QUEUED_UPDATES: usize = 256;
const PAGE_ROWS: u32 = 256;

/// An update of a session that is followed.
#[derive(Clone, Debug, PartialEq)]
pub enum TimelineUpdate {
    Event(TimelineEvent),
    /// A piece of an answer that is not part of an event yet.
    Delta(Delta),
}

/// A running follower. Dropping it ends it.
#[derive(Debug)]
pub struct Follower {
    updates: mpsc::Receiver<TimelineUpdate>,
    _task: JoinSet<()>,
}

impl Follower {
    /// Follows `session` from the event after `after` (0: from the first).
    pub fn start<H: Outbox>(
        nats: &Nats,
        session: SessionId,
        after: u32,
        history: Option<Arc<H>>,
    ) -> Self {
        let (sender, updates) = mpsc::channel(MAX_QUEUED_UPDATES);
        let follow = FollowTask {
            nats: nats.clone(),
            session,
            history,
            cursor: Cursor::new(after),
            updates: sender,
            next_sequence: 0,
            signer: None,
        };
        let mut task = JoinSet::new();
        task.spawn(async move {
            // The session has ended, or the follower was dropped.
            let (Ok(()) | Err(Finished)) = follow.run().await;
        });
        Self {
            updates,
            _task: task,
        }
    }

    /// The next update; `None` after the end event. Waits without a limit. Cancel safe.
    pub async fn next(&mut self) -> Option<TimelineUpdate> {
        self.updates.recv().await
    }
}

/// The session has ended, or the follower was dropped.
struct Finished;

struct FollowTask<H> {
    nats: Nats,
    session: SessionId,
    history: Option<Arc<H>>,
    cursor: Cursor,
    updates: mpsc::Sender<TimelineUpdate>,
    /// The stream sequence to read from; 0 for the beginning of the stream.
    next_sequence: u64,
    /// The signer with the key of this installation; `None` until the key was read.
    signer: Option<EventSigner>,
}

impl<H: Outbox> FollowTask<H> {
    async fn run(mut self) -> Result<(), Finished> {
        // Subscribed before the history is read, so that no delta is lost meanwhile.
        let mut deltas = self.subscribe_to_deltas().await?;
        let mut last_checked = self.cursor.last();
        self.check_already_ended().await?;
        let mut failing_since = None;
        loop {
            self.read_history().await?;
            let subject = timeline_subject(self.session);
            match EventReader::open(&self.nats, subject, self.next_sequence).await {
                Ok(reader) => {
                    failing_since = None;
                    self.read_stream(reader, &mut deltas, &mut last_checked)
                        .await?;
                }
                Err(error) => {
                    tracing::debug!(session_id = %self.session, %error, "timeline unavailable: retrying");
                    self.next_sequence = 0;
                    let since = *failing_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > CHANGE_SERVER_AFTER {
                        self.nats.change_server().await;
                    }
                }
            }
            self.pause().await?;
        }
    }

    /// Emits events and deltas until the stream is lost, or has events that were not read.
    async fn read_stream(
        &mut self,
        mut reader: EventReader,
        deltas: &mut Subscriber,
        last_checked: &mut u32,
    ) -> Result<(), Finished> {
        let mut next_history = Instant::now() + HISTORY_INTERVAL;
        loop {
            tokio::select! {
                () = self.updates.closed() => return Err(Finished),
                streamed = reader.next() => match streamed {
                    Ok(StreamedEvent { stream_sequence, message, event }) => {
                        self.next_sequence = stream_sequence + 1;
                        if !self.is_signed(&message).await {
                            self.read_history().await?;
                        } else if let Some(event) = event {
                            let had_gap = self.cursor.has_gap();
                            self.emit(event).await?;
                            next_history = Instant::now() + HISTORY_INTERVAL;
                            if self.cursor.has_gap() && !had_gap {
                                self.read_history().await?;
                            }
                        }
                    }
                    Err(error) => {
                        tracing::debug!(session_id = %self.session, %error, "timeline reader interrupted: reopening");
                        return Ok(());
                    }
                },
                Some(message) = deltas.next() => {
                    if let Ok(delta) = serde_json::from_slice(&message.payload) {
                        self.emit_delta(delta).await?;
                    }
                }
                () = tokio::time::sleep_until(next_history) => {
                    next_history = Instant::now() + HISTORY_INTERVAL;
                    self.read_history().await?;
                    if self.is_behind(last_checked).await? {
                        self.next_sequence = 0;
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Whether a worker has signed the message. Without the key, because there is no table or it is unavailable, every
    /// message is accepted.
    async fn is_signed(&mut self, message: &async_nats::Message) -> bool {
        let Some(history) = self.history.clone() else {
            return true;
        };
        if self.signer.is_none()
            && let Ok(key) = history.event_key().await
        {
            self.signer = Some(EventSigner::new(&key));
        }
        self.signer
            .as_ref()
            .is_none_or(|signer| signer.has_signed(&message.payload, message.headers.as_ref()))
    }

    /// Whether the stream has events that were not read, because it was lost and filled again.
    ///
    /// A gap that the previous check has seen, too, and that no table can fill, is skipped.
    async fn is_behind(&mut self, last_checked: &mut u32) -> Result<bool, Finished> {
        let last = self.cursor.last();
        if self.cursor.has_gap() && self.history.is_none() && *last_checked == last {
            tracing::warn!(session_id = %self.session, after = last, "event gap skipped: the stream has lost events");
            for event in self.cursor.skip_gap() {
                self.send(event).await?;
            }
        }
        *last_checked = last;
        let on_stream = last_event(&self.nats, self.session).await.ok().flatten();
        Ok(self.cursor.has_gap()
            || on_stream.is_some_and(|event| event.session_seq > self.cursor.last()))
    }

    /// Emits the events of the table after the last one. Without a table, or while it is unavailable, the events come
    /// only from the stream.
    async fn read_history(&mut self) -> Result<(), Finished> {
        let Some(history) = self.history.clone() else {
            return Ok(());
        };
        loop {
            let after = self.cursor.last();
            let rows = match history.events(self.session, after, PAGE_ROWS).await {
                Ok(rows) => rows,
                Err(error) => {
                    tracing::debug!(session_id = %self.session, %error, "history unavailable");
                    return Ok(());
                }
            };
            if rows.is_empty() {
                return Ok(());
            }
            for row in rows {
                self.emit(row).await?;
            }
        }
    }

    /// A watcher that starts after the end event would wait for ever.
    async fn check_already_ended(&self) -> Result<(), Finished> {
        let after = self.cursor.last();
        if after == 0 {
            return Ok(());
        }
        let last = match &self.history {
            Some(history) => history
                .events(self.session, after - 1, 1)
                .await
                .ok()
                .and_then(|rows| rows.into_iter().next()),
            None => last_event(&self.nats, self.session).await.ok().flatten(),
        };
        let has_ended =
            last.is_some_and(|event| event.session_seq <= after && event.event_type.is_end());
        if has_ended { Err(Finished) } else { Ok(()) }
    }

    async fn subscribe_to_deltas(&self) -> Result<Subscriber, Finished> {
        loop {
            match self.nats.client.subscribe(live_subject(self.session)).await {
                Ok(subscriber) => return Ok(subscriber),
                Err(error) => {
                    tracing::debug!(session_id = %self.session, %error, "live deltas unavailable")
                }
            }
            self.pause().await?;
        }
    }

    async fn pause(&self) -> Result<(), Finished> {
        tokio::select! {
            () = self.updates.closed() => Err(Finished),
            () = tokio::time::sleep(RETRY_DELAY) => Ok(()),
        }
    }

    async fn emit(&mut self, event: TimelineEvent) -> Result<(), Finished> {
        for event in self.cursor.event(event) {
            self.send(event).await?;
        }
        Ok(())
    }

    async fn send(&self, event: TimelineEvent) -> Result<(), Finished> {
        let is_end = event.event_type.is_end();
        self.update(TimelineUpdate::Event(event)).await?;
        if is_end { Err(Finished) } else { Ok(()) }
    }

    async fn emit_delta(&mut self, delta: Delta) -> Result<(), Finished> {
        match self.cursor.delta(delta) {
            Some(delta) => self.update(TimelineUpdate::Delta(delta)).await,
            None => Ok(()),
        }
    }

    async fn update(&self, update: TimelineUpdate) -> Result<(), Finished> {
        self.updates.send(update).await.map_err(|_| Finished)
    }
}
