//! Follows one session: its history, then what happens, without a gap and without a repetition, to its end.
//!
//! Three sources are merged by the event's number: the table (where there is one), the stream, and live deltas. After a
//! reconnect, at a gap and after 5 s of silence the table is asked again, so a lost stream delays a watcher and nothing more.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Subscriber;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::cursor::Cursor;
use super::seal::Seal;
use super::tail::{Placed, Tail, last_event};
use crate::bus::connection::Nats;
use crate::bus::names::{live_subject, timeline_subject};
use crate::engine::ports::Outbox;
use crate::investigation::ids::SessionId;
use crate::investigation::timeline::{Delta, TimelineEvent};

const SILENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(200);
const BUFFER: usize = 256;
const PAGE: u32 = 256;

/// Something of the session that is followed.
#[derive(Clone, Debug, PartialEq)]
pub enum TimelineUpdate {
    /// The next event.
    Event(TimelineEvent),
    /// A piece of an answer that no event holds yet.
    Delta(Delta),
}

/// A running follower. Dropping it ends it.
#[derive(Debug)]
pub struct Follower {
    items: mpsc::Receiver<TimelineUpdate>,
    _task: JoinSet<()>,
}

impl Follower {
    /// Follows `session` from the event after `after` (0: from the first).
    pub fn start<H: Outbox>(nats: &Nats, session: SessionId, after: u32, history: Option<Arc<H>>) -> Self {
        let (sender, items) = mpsc::channel(BUFFER);
        let follow = Follow {
            nats: nats.clone(),
            session,
            history,
            cursor: Cursor::new(after),
            items: sender,
            behind: 0,
            seal: None,
        };
        let mut task = JoinSet::new();
        task.spawn(async move {
            // Both ends of it are an end: of the session, or of the interest in it.
            let (Ok(()) | Err(Over)) = follow.run().await;
        });
        Self { items, _task: task }
    }

    /// What comes next; `None` after the end event. Waits as long as it takes. Cancel safe.
    pub async fn next(&mut self) -> Option<TimelineUpdate> {
        self.items.recv().await
    }
}

/// Nothing more is to be shown.
struct Over;

struct Follow<H> {
    nats: Nats,
    session: SessionId,
    history: Option<Arc<H>>,
    cursor: Cursor,
    items: mpsc::Sender<TimelineUpdate>,
    /// The stream sequence of the last message.
    behind: u64,
    /// Of this installation, once it was read.
    seal: Option<Seal>,
}

impl<H: Outbox> Follow<H> {
    async fn run(mut self) -> Result<(), Over> {
        // Before the history: what is shown while it is read must not be lost.
        let mut live = self.live().await?;
        let mut looked_at_last = self.cursor.last();
        self.over_already().await?;
        loop {
            self.read_history().await?;
            match Tail::open(&self.nats, timeline_subject(self.session), self.from()).await {
                Ok(tail) => self.read_stream(tail, &mut live, &mut looked_at_last).await?,
                Err(error) => {
                    tracing::debug!(session_id = %self.session, %error, "the timeline cannot be read now");
                    self.behind = 0;
                }
            }
            self.pause().await?;
        }
    }

    /// Shows what comes until the stream is lost or something is missing.
    async fn read_stream(&mut self, mut tail: Tail, live: &mut Subscriber, looked: &mut u32) -> Result<(), Over> {
        let mut silence = Instant::now() + SILENCE;
        loop {
            tokio::select! {
                () = self.items.closed() => return Err(Over),
                placed = tail.next() => match placed {
                    Ok(Placed { stream_sequence, message, event }) => {
                        self.behind = stream_sequence;
                        if !self.is_ours(&message).await {
                            self.read_history().await?;
                        } else if let Some(event) = event {
                            let had_gap = self.cursor.has_gap();
                            self.show(event).await?;
                            silence = Instant::now() + SILENCE;
                            if self.cursor.has_gap() && !had_gap {
                                self.read_history().await?;
                            }
                        }
                    }
                    Err(error) => {
                        tracing::debug!(session_id = %self.session, %error, "the timeline was interrupted");
                        return Ok(());
                    }
                },
                Some(message) = live.next() => {
                    if let Ok(delta) = serde_json::from_slice(&message.payload) {
                        self.show_delta(delta).await?;
                    }
                }
                () = tokio::time::sleep_until(silence) => {
                    silence = Instant::now() + SILENCE;
                    self.read_history().await?;
                    if self.is_behind(looked).await? {
                        self.behind = 0;
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Whether a message may be shown as it is. Without a table there is no key to tell, and while the table cannot be read,
    /// neither.
    async fn is_ours(&mut self, message: &async_nats::Message) -> bool {
        let Some(history) = self.history.clone() else { return true };
        if self.seal.is_none() {
            self.seal = history.event_key().await.ok().map(|key| Seal::new(&key));
        }
        self.seal.as_ref().is_none_or(|seal| seal.is_on(&message.payload, message.headers.as_ref()))
    }

    /// After a silence: whether the stream has events that were not read, because it was lost and filled again.
    ///
    /// A gap that was there at the last look, too, and that no table can fill, is given up.
    async fn is_behind(&mut self, looked: &mut u32) -> Result<bool, Over> {
        let last = self.cursor.last();
        if self.cursor.has_gap() && self.history.is_none() && *looked == last {
            tracing::warn!(session_id = %self.session, after = last, "events are missing on the stream");
            for event in self.cursor.skip_gap() {
                self.pass_on(event).await?;
            }
        }
        *looked = last;
        let on_stream = last_event(&self.nats, self.session).await.ok().flatten();
        Ok(self.cursor.has_gap() || on_stream.is_some_and(|event| event.session_seq > self.cursor.last()))
    }

    /// Shows what the table has after the last event. Without a table, or while it is unavailable, the stream has to do.
    async fn read_history(&mut self) -> Result<(), Over> {
        let Some(history) = self.history.clone() else { return Ok(()) };
        loop {
            let rows = match history.events(self.session, self.cursor.last(), PAGE).await {
                Ok(rows) => rows,
                Err(error) => {
                    tracing::debug!(session_id = %self.session, %error, "the history cannot be read now");
                    return Ok(());
                }
            };
            if rows.is_empty() {
                return Ok(());
            }
            for row in rows {
                self.show(row).await?;
            }
        }
    }

    /// A watcher that begins behind the end would wait for ever.
    async fn over_already(&self) -> Result<(), Over> {
        let after = self.cursor.last();
        if after == 0 {
            return Ok(());
        }
        let last = match &self.history {
            Some(history) => {
                history.events(self.session, after - 1, 1).await.ok().and_then(|rows| rows.into_iter().next())
            }
            None => last_event(&self.nats, self.session).await.ok().flatten(),
        };
        match last {
            Some(event) if event.session_seq <= after && event.event_type.is_end() => Err(Over),
            Some(_) | None => Ok(()),
        }
    }

    async fn live(&self) -> Result<Subscriber, Over> {
        loop {
            match self.nats.client().subscribe(live_subject(self.session)).await {
                Ok(subscriber) => return Ok(subscriber),
                Err(error) => tracing::debug!(session_id = %self.session, %error, "no deltas now"),
            }
            self.pause().await?;
        }
    }

    async fn pause(&self) -> Result<(), Over> {
        tokio::select! {
            () = self.items.closed() => Err(Over),
            () = tokio::time::sleep(PAUSE) => Ok(()),
        }
    }

    fn from(&self) -> u64 {
        if self.behind == 0 { 0 } else { self.behind + 1 }
    }

    async fn show(&mut self, event: TimelineEvent) -> Result<(), Over> {
        for event in self.cursor.event(event) {
            self.pass_on(event).await?;
        }
        Ok(())
    }

    async fn pass_on(&self, event: TimelineEvent) -> Result<(), Over> {
        let is_end = event.event_type.is_end();
        self.items.send(TimelineUpdate::Event(event)).await.map_err(|_| Over)?;
        if is_end { Err(Over) } else { Ok(()) }
    }

    async fn show_delta(&mut self, delta: Delta) -> Result<(), Over> {
        match self.cursor.delta(delta) {
            Some(delta) => self.items.send(TimelineUpdate::Delta(delta)).await.map_err(|_| Over),
            None => Ok(()),
        }
    }
}
