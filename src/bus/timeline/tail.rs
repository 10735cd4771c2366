//! Timeline events as they are on the stream: of one session or of all.

use std::time::Duration;

use super::reader::Reader;
use super::stream_get::last_on;
use crate::bus::connection::Nats;
use crate::bus::error::Error;
use crate::bus::names::{TIMELINE, timeline_subject};
use crate::investigation::ids::SessionId;
use crate::investigation::timeline::TimelineEvent;

const LAST_TIMEOUT: Duration = Duration::from_secs(2);

/// An ordered, gap-free reader of events, until its first error.
#[derive(Debug)]
pub(super) struct Tail {
    reader: Reader,
}

/// An event and where it is on the stream.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) stream_sequence: u64,
    /// As it was published, for its seal.
    pub(super) message: async_nats::Message,
    /// `None` for a message that is no event.
    pub(super) event: Option<TimelineEvent>,
}

impl Tail {
    /// Reads the events on `subject` (it may hold wildcards) from stream sequence `from` on; from the first for 0.
    pub(super) async fn open(nats: &Nats, subject: String, from: u64) -> Result<Self, Error> {
        Ok(Self { reader: Reader::open(nats, TIMELINE, subject, from).await? })
    }

    /// The next message. After an error the reader is of no more use. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Placed, Error> {
        let read = self.reader.next().await?;
        let stream_sequence = read.stream_sequence;
        let event = serde_json::from_slice(&read.message.payload);
        if let Err(error) = &event {
            let subject = &read.message.subject;
            tracing::warn!(%subject, stream_sequence, %error, "a message on the timeline is no event");
        }
        let event = event.ok();
        Ok(Placed { stream_sequence, message: read.message, event })
    }
}

/// The last event on a session's subject, if there is one.
pub(super) async fn last_event(nats: &Nats, session: SessionId) -> Result<Option<TimelineEvent>, Error> {
    // Whoever asks has a stream to read meanwhile.
    let last = tokio::time::timeout(LAST_TIMEOUT, last_on(nats, TIMELINE, &timeline_subject(session))).await;
    let last = last.map_err(|_| Error::Unavailable("no answer from the stream".to_owned()))??;
    Ok(last.and_then(|message| serde_json::from_slice(&message.payload).ok()))
}
