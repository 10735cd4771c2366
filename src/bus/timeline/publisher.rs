//! Publishes one session's events: reads the last event on its subject and publishes the rows of the table after it.
//!
//! Several publishers of one session may run at the same time, in one process or many: the rows never change, and the
//! expected last sequence of the subject lets one of them through. It orders the publishers and fences none; a refused
//! publisher reads the subject again. Messages carry no `Nats-Msg-Id`: after a purge the id would still be a duplicate.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use chrono::Utc;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::divergence::{EventIdentity, is_in_table, signed_events};
use super::signature::EventSigner;
use super::wire::{MAX_EVENT_BYTES, decode, encode, truncate};
use crate::bus::connection::Nats;
use crate::bus::error::Error;
use crate::bus::names::{TIMELINE, timeline_subject};
use crate::bus::stream::get::last_on_subject;
use crate::engine::ports::{Outbox, StoreError};
use crate::investigation::ids::SessionId;
use crate::investigation::timeline::TimelineEvent;

const PAGE_ROWS: u32 = 64;
const ACK_TIMEOUT: Duration = Duration::from_secs(5);
/// A producer may choose an id long before it publishes the alert, so an older id says nothing about this system.
const MAX_ID_AGE: Duration = Duration::from_hours(24);
/// Room for an event's headers, which count towards the server's `max_payload`.
const HEADER_BYTES: usize = 1024;

/// Why some of a session's events are not published yet.
#[derive(Debug, thiserror::Error)]
pub(super) enum CatchUpError {
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Broker(String),
    #[error("the table's event after number {after} has number {found}")]
    Gap { after: u32, found: u32 },
    #[error("event {0} on the stream is not the one in the table: the database has lost commits")]
    Diverged(u32),
}

impl From<Error> for CatchUpError {
    fn from(error: Error) -> Self {
        Self::Broker(error.to_string())
    }
}

/// The last event on a subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct LastPublished {
    session_seq: u32,
    stream_sequence: u64,
    /// `None` for a subject without events.
    identity: Option<EventIdentity>,
}

/// The publisher of one session.
#[derive(Debug)]
pub(super) struct Publisher<O> {
    nats: Nats,
    outbox: Arc<O>,
    session: SessionId,
    subject: String,
    last: Option<LastPublished>,
    /// No further event will be added, so a difference between store and stream does not stop the publisher.
    pub(super) ended: bool,
    signer: OnceCell<EventSigner>,
}

impl<O: Outbox> Publisher<O> {
    pub(super) fn new(nats: &Nats, outbox: Arc<O>, session: SessionId) -> Self {
        let subject = timeline_subject(session);
        Self { nats: nats.clone(), outbox, session, subject, last: None, ended: false, signer: OnceCell::new() }
    }

    /// The number of the last event on the stream; `None` if this publisher has to read it first.
    pub(super) fn reached(&self) -> Option<u32> {
        self.last.as_ref().map(|last| last.session_seq)
    }

    /// Publishes every row that the table has; returns the number of the last event on the stream.
    ///
    /// After an error, or if the future was dropped, the next call reads the subject again.
    pub(super) async fn catch_up(&mut self) -> Result<u32, CatchUpError> {
        loop {
            let last = match self.last.take() {
                Some(last) => last,
                None => {
                    let mut link = self.nats.watch_connection();
                    tokio::select! {
                        last = self.read_last_published() => last?,
                        Ok(()) = link.changed() => return Err(connection_changed()),
                    }
                }
            };
            let rows = self.rows_behind(&last).await?;
            if rows.is_empty() {
                let reached = last.session_seq;
                self.last = Some(last);
                return Ok(reached);
            }
            self.last = self.publish_page(last, rows).await?;
        }
    }

    /// The rows after the last published one, which must still be in the table: a database that has lost commits gives
    /// its number to another event.
    async fn rows_behind(&self, last: &LastPublished) -> Result<Vec<TimelineEvent>, CatchUpError> {
        let from = last.session_seq.saturating_sub(1);
        let mut rows = self.outbox.events(self.session, from, PAGE_ROWS).await?;
        let Some(identity) = &last.identity else { return Ok(rows) };
        let same = rows.first().map(EventIdentity::of).as_ref() == Some(identity);
        if !same && !self.ended {
            return Err(CatchUpError::Diverged(last.session_seq));
        }
        if !same {
            tracing::error!(
                session_id = %self.session,
                session_seq = last.session_seq,
                "last event differs between stream and database: the session has ended in both"
            );
        }
        rows.retain(|row| row.session_seq > last.session_seq);
        Ok(rows)
    }

    /// Publishes one row after the other; `None` if another publisher was faster.
    async fn publish_page(
        &self,
        mut last: LastPublished,
        rows: Vec<TimelineEvent>,
    ) -> Result<Option<LastPublished>, CatchUpError> {
        for row in rows {
            let session_seq = row.session_seq;
            if session_seq != last.session_seq + 1 {
                return Err(CatchUpError::Gap { after: last.session_seq, found: session_seq });
            }
            let identity = Some(EventIdentity::of(&row));
            match self.publish(row, last.stream_sequence).await? {
                Some(stream_sequence) => last = LastPublished { session_seq, stream_sequence, identity },
                None => return Ok(None),
            }
        }
        Ok(Some(last))
    }

    async fn publish(&self, row: TimelineEvent, expected: u64) -> Result<Option<u64>, CatchUpError> {
        let is_first = row.session_seq == 1;
        let payload = encode(&truncate(row, self.max_event_bytes()));
        let message = PublishMessage::build()
            .headers(self.signer().await?.sign(&payload))
            .payload(payload.into())
            .expected_stream(TIMELINE)
            .expected_last_subject_sequence(expected);
        let mut link = self.nats.watch_connection();
        let begun = Instant::now();
        let publish = self.nats.jetstream.send_publish(self.subject.clone(), message);
        let outcome = tokio::select! {
            outcome = tokio::time::timeout(ACK_TIMEOUT, async { publish.await?.await }) => outcome,
            // The acknowledgement was lost with the connection.
            Ok(()) = link.changed() => return Err(connection_changed()),
        };
        match outcome {
            Ok(Ok(ack)) => {
                metrics::counter!("tarsy_events_published_total").increment(1);
                metrics::histogram!("tarsy_event_publish_duration_seconds").record(begun.elapsed().as_secs_f64());
                if is_first && let Some(waited) = self.since_id() {
                    metrics::histogram!("tarsy_time_to_first_event_seconds").record(waited.as_secs_f64());
                }
                Ok(Some(ack.sequence))
            }
            Ok(Err(error)) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(None),
            Ok(Err(error)) => Err(CatchUpError::Broker(error.to_string())),
            Err(_) => Err(CatchUpError::Broker("a publish was not acknowledged".to_owned())),
        }
    }

    /// Reads the last event from the stream's leader. A message that no worker has signed is ignored.
    async fn read_last_published(&self) -> Result<LastPublished, CatchUpError> {
        let last = last_on_subject(&self.nats, TIMELINE, &self.subject).await?;
        let Some(message) = last else { return Ok(LastPublished::default()) };
        let found = decode(&self.subject, &message.payload);
        let at = |event: Option<&TimelineEvent>| LastPublished {
            session_seq: event.map_or(0, |event| event.session_seq),
            stream_sequence: message.sequence,
            identity: event.map(EventIdentity::of),
        };
        if let Some(found) = &found
            && (self.signer().await?.has_signed(&message.payload, Some(&message.headers))
                || is_in_table(&*self.outbox, found).await?)
        {
            return Ok(at(Some(found)));
        }
        metrics::counter!("tarsy_forged_events_total").increment(1);
        tracing::error!(session_id = %self.session, "timeline message ignored: not signed by a worker");
        let signed = signed_events(&self.nats, self.signer().await?, self.subject.clone(), message.sequence).await?;
        Ok(at(signed.values().next_back()))
    }

    /// The signer with the key of this installation, which is read once.
    async fn signer(&self) -> Result<&EventSigner, CatchUpError> {
        self.signer.get_or_try_init(|| async { Ok(EventSigner::new(&self.outbox.event_key().await?)) }).await
    }

    /// The time since the one in the session's id: at it the stream stored the alert, or its producer made the id.
    /// `None` for an id that is older than [`MAX_ID_AGE`]. Clocks that differ give no negative time.
    fn since_id(&self) -> Option<Duration> {
        let (seconds, nanos) = self.session.0.get_timestamp()?.to_unix();
        let now = Duration::from_micros(u64::try_from(Utc::now().timestamp_micros()).ok()?);
        let waited = now.saturating_sub(Duration::new(seconds, nanos));
        (waited < MAX_ID_AGE).then_some(waited)
    }

    fn max_event_bytes(&self) -> usize {
        MAX_EVENT_BYTES.min(self.nats.client.max_payload().saturating_sub(HEADER_BYTES))
    }
}

fn connection_changed() -> CatchUpError {
    CatchUpError::Broker("the connection changed".to_owned())
}
