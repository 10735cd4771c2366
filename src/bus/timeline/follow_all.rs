//! Follows every session from now on: for a screen that shows them all. There is no history and there are no deltas.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::tail::{Placed, Tail};
use crate::bus::connection::{Nats, REQUEST_TIMEOUT};
use crate::bus::error::Error;
use crate::bus::names::{ALL_TIMELINES, TIMELINE};
use crate::investigation::ids::SessionId;
use crate::investigation::timeline::TimelineEvent;

const BUFFER: usize = 256;
const PAUSE: Duration = Duration::from_millis(200);
/// Sessions whose last number is remembered; the oldest ones are forgotten first.
const MAX_SESSIONS: usize = 10_000;

/// A running follower of every session. Dropping it ends it.
#[derive(Debug)]
pub struct AllFollower {
    events: mpsc::Receiver<TimelineEvent>,
    _task: JoinSet<()>,
}

impl AllFollower {
    /// Begins to follow: every event that is published after this has returned is shown, each once, in the order of the
    /// stream, also when the server restarts. A stream that was lost and created again is read from its beginning,
    /// without the events that were shown before.
    ///
    /// # Errors
    ///
    /// When the stream cannot be read now.
    pub async fn start(nats: &Nats) -> Result<Self, Error> {
        let place = Place::now(nats).await?;
        let (sender, events) = mpsc::channel(BUFFER);
        let follow = Follow { nats: nats.clone(), place, shown: Shown::default(), events: sender };
        let mut task = JoinSet::new();
        task.spawn(async move {
            let Over = follow.run().await;
        });
        Ok(Self { events, _task: task })
    }

    /// The next event. Cancel safe.
    pub async fn next(&mut self) -> Option<TimelineEvent> {
        self.events.recv().await
    }
}

/// Nobody looks any more.
struct Over;

struct Follow {
    nats: Nats,
    place: Place,
    shown: Shown,
    events: mpsc::Sender<TimelineEvent>,
}

impl Follow {
    async fn run(mut self) -> Over {
        loop {
            match self.open().await {
                Ok(tail) => {
                    if let Err(over) = self.read(tail).await {
                        return over;
                    }
                }
                Err(error) => tracing::debug!(%error, "the timeline cannot be read now"),
            }
            tokio::select! {
                () = self.events.closed() => return Over,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    /// A reader behind the last message. Its stream is looked at afterwards: a consumer does not outlive its stream, so
    /// if that is still the known one, the reader is at the right place.
    async fn open(&mut self) -> Result<Tail, Error> {
        loop {
            let tail = Tail::open(&self.nats, ALL_TIMELINES.to_owned(), self.place.behind + 1).await?;
            let now = Place::now(&self.nats).await?;
            if now.created_ns != self.place.created_ns {
                tracing::warn!("the timeline was created anew and is read from its beginning");
                self.place = Place { behind: 0, ..now };
            } else if now.behind < self.place.behind {
                tracing::warn!(from = now.behind + 1, "the timeline has lost its last events");
                self.place = now;
            } else {
                return Ok(tail);
            }
        }
    }

    /// Shows what comes until the stream is lost.
    async fn read(&mut self, mut tail: Tail) -> Result<(), Over> {
        loop {
            let placed = tokio::select! {
                () = self.events.closed() => return Err(Over),
                placed = tail.next() => placed,
            };
            let Placed { stream_sequence, event, .. } = match placed {
                Ok(placed) => placed,
                Err(error) => {
                    tracing::debug!(%error, "the timeline was interrupted");
                    return Ok(());
                }
            };
            self.place.behind = stream_sequence;
            if let Some(event) = event
                && self.shown.is_new(&event)
            {
                self.events.send(event).await.map_err(|_| Over)?;
            }
        }
    }
}

/// A place on the stream, and which stream that is.
#[derive(Clone, Copy, Debug)]
struct Place {
    created_ns: i128,
    /// The sequence of the last message.
    behind: u64,
}

impl Place {
    async fn now(nats: &Nats) -> Result<Self, Error> {
        let info = tokio::time::timeout(REQUEST_TIMEOUT, nats.jetstream().get_stream(TIMELINE)).await;
        let info = info.map_err(|_| Error::Unavailable(format!("{TIMELINE} gave no answer")))?;
        let stream = info.map_err(|error| Error::Unavailable(format!("{TIMELINE}: {error}")))?;
        let info = stream.cached_info();
        Ok(Self { created_ns: info.created.unix_timestamp_nanos(), behind: info.state.last_sequence })
    }
}

/// The last number of each session: a stream that was lost is filled again from every session's first event.
#[derive(Debug, Default)]
struct Shown(BTreeMap<SessionId, u32>);

impl Shown {
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
