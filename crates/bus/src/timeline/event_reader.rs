//! Reads timeline events from the stream: those of one session or of all.

use std::time::Duration;

use crate::connection::Nats;
use crate::error::{Error, within};
use crate::names::{TIMELINE, timeline_subject};
use crate::stream::get::last_on_subject;
use crate::stream::reader::StreamReader;
use crate::timeline::wire::decode;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::TimelineEvent;

const LAST_EVENT_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads events in order and without a gap, until its first error.
#[derive(Debug)]
pub(super) struct EventReader {
    reader: StreamReader,
}

/// A message of the timeline stream.
#[derive(Debug)]
pub(super) struct StreamedEvent {
    pub(super) stream_sequence: u64,
    /// The message as it was published: its signature covers these bytes.
    pub(super) message: async_nats::Message,
    /// `None` for a message that is not an event.
    pub(super) event: Option<TimelineEvent>,
}

impl EventReader {
    /// Reads the events on `subject`, which may hold wildcards, from stream sequence `from` on; 0 means from the first.
    pub(super) async fn open(nats: &Nats, subject: String, from: u64) -> Result<Self, Error> {
        Ok(Self {
            reader: StreamReader::open(nats, TIMELINE, subject, from).await?,
        })
    }

    /// The next message. After an error the reader cannot be used any more. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<StreamedEvent, Error> {
        let read = self.reader.next().await?;
        let stream_sequence = read.stream_sequence;
        let event = decode(&read.message.subject, &read.message.payload);
        if event.is_none() {
            let subject = &read.message.subject;
            tracing::warn!(%subject, stream_sequence, "timeline message ignored: not an event of this session");
        }
        Ok(StreamedEvent {
            stream_sequence,
            message: read.message,
            event,
        })
    }
}

/// The last event on a session's subject, if there is one.
pub(super) async fn last_event(
    nats: &Nats,
    session: SessionId,
) -> Result<Option<TimelineEvent>, Error> {
    // Short: the caller cannot read the stream meanwhile.
    let subject = timeline_subject(session);
    let last = last_on_subject(nats, TIMELINE, &subject);
    let last = within(LAST_EVENT_TIMEOUT, "no answer from the stream", last).await?;
    Ok(last.and_then(|message| decode(&subject, &message.payload)))
}
