//! Follows all sessions from now on, for a screen that shows them all; without history and without deltas.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::event_reader::EventReader;
use crate::connection::{Nats, REQUEST_TIMEOUT};
use crate::error::Error;
use crate::names::{ALL_TIMELINES, TIMELINE};
use crate::stream::get::stream_info;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::TimelineEvent;

const MAX_QUEUED_EVENTS: usize = 256;
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// Sessions whose last event number is remembered; the oldest sessions are forgotten first.
const MAX_SESSIONS: usize = 10_000;

/// A running follower of every session. Dropping it ends it.
#[derive(Debug)]
pub struct AllFollower {
    events: mpsc::Receiver<TimelineEvent>,
    _task: JoinSet<()>,
}

impl AllFollower {
    /// Begins to follow: every event that is published after this has returned is emitted once, in the order of the
    /// stream, even if the server restarts. A stream that was lost and created again is read from its beginning,
    /// without the events that were emitted before.
    ///
    /// # Errors
    ///
    /// When the stream cannot be read.
    pub async fn start(nats: &Nats) -> Result<Self, Error> {
        let position = StreamPosition::now(nats).await?;
        let (sender, events) = mpsc::channel(MAX_QUEUED_EVENTS);
        let follow = FollowTask {
            nats: nats.clone(),
            position,
            emitted: EmittedEvents::default(),
            events: sender,
        };
        let mut task = JoinSet::new();
        task.spawn(async move {
            let (Ok(()) | Err(Dropped)) = follow.run().await;
        });
        Ok(Self {
            events,
            _task: task,
        })
    }

    /// The next event. Cancel safe.
    pub async fn next(&mut self) -> Option<TimelineEvent> {
        self.events.recv().await
    }
}

/// The follower was dropped.
struct Dropped;

struct FollowTask {
    nats: Nats,
    position: StreamPosition,
    emitted: EmittedEvents,
    events: mpsc::Sender<TimelineEvent>,
}

impl FollowTask {
    async fn run(mut self) -> Result<(), Dropped> {
        loop {
            match self.open().await {
                Ok(reader) => self.read(reader).await?,
                Err(error) => tracing::debug!(%error, "timeline unavailable: retrying"),
            }
            tokio::select! {
                () = self.events.closed() => return Err(Dropped),
                () = tokio::time::sleep(RETRY_DELAY) => {}
            }
        }
    }

    /// Opens a reader after the last message. The stream is checked afterwards: a consumer does not outlive its stream,
    /// so if the stream is still the same, the reader is at the right position.
    async fn open(&mut self) -> Result<EventReader, Error> {
        loop {
            let reader = EventReader::open(
                &self.nats,
                ALL_TIMELINES.to_owned(),
                self.position.last_sequence + 1,
            )
            .await?;
            let now = StreamPosition::now(&self.nats).await?;
            if now.created_ns != self.position.created_ns {
                tracing::warn!("timeline stream was created again: reading from its beginning");
                self.position = StreamPosition {
                    last_sequence: 0,
                    ..now
                };
            } else if now.last_sequence < self.position.last_sequence {
                tracing::warn!(
                    from = now.last_sequence + 1,
                    "timeline stream has lost its last events"
                );
                self.position = now;
            } else {
                return Ok(reader);
            }
        }
    }

    /// Emits events until the stream is lost.
    async fn read(&mut self, mut reader: EventReader) -> Result<(), Dropped> {
        loop {
            let streamed = tokio::select! {
                () = self.events.closed() => return Err(Dropped),
                streamed = reader.next() => streamed,
            };
            let streamed = match streamed {
                Ok(streamed) => streamed,
                Err(error) => {
                    tracing::debug!(%error, "timeline reader interrupted: reopening");
                    return Ok(());
                }
            };
            self.position.last_sequence = streamed.stream_sequence;
            if let Some(event) = streamed.event
                && self.emitted.is_new(&event)
            {
                self.events.send(event).await.map_err(|_| Dropped)?;
            }
        }
    }
}

/// A position on a stream, which its creation time identifies.
#[derive(Clone, Copy, Debug)]
struct StreamPosition {
    created_ns: i128,
    /// The sequence of the last message.
    last_sequence: u64,
}

impl StreamPosition {
    async fn now(nats: &Nats) -> Result<Self, Error> {
        let info = stream_info(nats, TIMELINE, REQUEST_TIMEOUT).await?;
        Ok(Self {
            created_ns: info.created.unix_timestamp_nanos(),
            last_sequence: info.state.last_sequence,
        })
    }
}

/// The last event number of each session: a stream that was lost is filled again from every session's first event.
#[derive(Debug, Default)]
struct EmittedEvents(BTreeMap<SessionId, u32>);

impl EmittedEvents {
    fn is_new(&mut self, event: &TimelineEvent) -> bool {
        let last = self.0.entry(event.session_id).or_default();
        if event.session_seq <= *last {
            return false;
        }
        *last = event.session_seq;
        if self.0.len() > MAX_SESSIONS {
            // Ids are ordered by time.
            self.0.pop_first();
        }
        true
    }
}
