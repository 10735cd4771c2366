//! Publishes one session's events: reads the last event on its subject and publishes the later rows of the table.
//! Events that this process commits are taken from the session's tail, without a read of the table. The table is read
//! at the start, after a failure, after a gap, and when an event is committed under a number that is published
//! already.
//!
//! Several publishers of one session may run at the same time, in one process or many: the rows never change, and the
//! expected last sequence of the subject lets one of them through. It orders the publishers and fences none; a refused
//! publisher reads the subject again. Messages carry no `Nats-Msg-Id`: after a purge the id would still be a duplicate.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use chrono::Utc;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::divergence::{is_in_table, signed_events};
use super::signature::EventSigner;
use super::wire::{MAX_EVENT_BYTES, decode, encode, truncate};
use crate::connection::Nats;
use crate::error::Error;
use crate::names::{TIMELINE, timeline_subject};
use crate::stream::get::last_on_subject;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::TimelineEvent;
use tarsy_engine::ports::{EventIdentity, Outbox, StoreError, Tail};

const PAGE_ROWS: u32 = 64;
/// The number of recent events that are kept, at least as many as a tail can hold: an event of the tail may have been
/// read from the table meanwhile.
const MAX_RECENT: usize = 64;
const ACK_TIMEOUT: Duration = Duration::from_secs(5);
/// A producer may choose an id long before it publishes the alert, so an older id says nothing about this system.
const MAX_ID_AGE: Duration = Duration::from_hours(24);
/// Room for an event's headers, which count towards the server's `max_payload`.
const HEADER_BYTES: usize = 1024;

/// The reason why some of a session's events are not published yet.
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

/// Rows that are not published yet.
struct UnpublishedRows {
    rows: Vec<TimelineEvent>,
    /// Whether the table had no further ones.
    is_all: bool,
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
    tail: Option<Arc<Tail>>,
    /// The identities of the last published events, by their numbers.
    recent: VecDeque<(u32, u64)>,
    signer: Arc<OnceCell<EventSigner>>,
}

impl<O: Outbox> Publisher<O> {
    /// The publishers of a process share the `signer`.
    pub(super) fn new(
        nats: &Nats,
        outbox: Arc<O>,
        session: SessionId,
        signer: Arc<OnceCell<EventSigner>>,
    ) -> Self {
        Self {
            nats: nats.clone(),
            outbox,
            session,
            subject: timeline_subject(session),
            last: None,
            ended: false,
            tail: None,
            recent: VecDeque::new(),
            signer,
        }
    }

    /// Like [`Publisher::new`], with the events that this process commits from now on.
    pub(super) fn following(self) -> Self {
        Self {
            tail: Some(self.outbox.tail(self.session)),
            ..self
        }
    }

    /// Waits until this process has committed events.
    pub(super) async fn grown(&self) {
        match &self.tail {
            Some(tail) => tail.grown().await,
            None => std::future::pending().await,
        }
    }

    /// The identity of the last event on the stream; `None` if this publisher has to read it first.
    pub(super) fn reached(&self) -> Option<&EventIdentity> {
        self.last.as_ref()?.identity.as_ref()
    }

    /// Publishes what this process has committed. `None`: the table has to be read.
    ///
    /// After an error, or if the future was dropped, the table has to be read as well.
    pub(super) async fn publish_committed(&mut self) -> Result<Option<u32>, CatchUpError> {
        let (Some(mut last), Some(tail)) = (self.last.take(), &self.tail) else {
            return Ok(None);
        };
        let committed = tail.take();
        let mut rows = Vec::with_capacity(committed.committed.len());
        let mut expected = last.session_seq + 1;
        for event in committed.committed {
            if event.session_seq == expected {
                expected += 1;
                rows.push(event);
            } else if !self.is_recent(&event) {
                self.last = Some(last);
                return Ok(None);
            }
        }
        if committed.overflowed {
            self.last = Some(last);
            return Ok(None);
        }
        if !rows.is_empty() {
            match self.publish_page(last, rows).await? {
                Some(reached) => last = reached,
                None => return Ok(None),
            }
        }
        let reached = last.session_seq;
        self.last = Some(last);
        Ok(Some(reached))
    }

    /// Whether this very event was published a moment ago. Another event with its number shows that the database has
    /// lost commits.
    fn is_recent(&self, event: &TimelineEvent) -> bool {
        let mut recent = self.recent.iter();
        let published = recent.find(|(session_seq, _)| *session_seq == event.session_seq);
        published.is_some_and(|(_, identity)| *identity == hash(&EventIdentity::new(event)))
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
            let UnpublishedRows { rows, is_all } = self.unpublished_rows(&last).await?;
            self.last = self.publish_page(last, rows).await?;
            if is_all && let Some(last) = &self.last {
                return Ok(last.session_seq);
            }
        }
    }

    /// The rows after the last published one, which must still be in the table: a database that has lost commits gives
    /// its number to another event.
    async fn unpublished_rows(
        &self,
        last: &LastPublished,
    ) -> Result<UnpublishedRows, CatchUpError> {
        let from = last.session_seq.saturating_sub(1);
        let mut rows = self.outbox.events(self.session, from, PAGE_ROWS).await?;
        // Events that are committed after this read are notified.
        let is_all = u32::try_from(rows.len()).is_ok_and(|count| count < PAGE_ROWS);
        let Some(identity) = &last.identity else {
            return Ok(UnpublishedRows { rows, is_all });
        };
        let same = rows.first().map(EventIdentity::new).as_ref() == Some(identity);
        if !same && !self.ended {
            return Err(CatchUpError::Diverged(last.session_seq));
        }
        if !same {
            tracing::error!(
                session_id = %self.session,
                session_seq = last.session_seq,
                "the last event differs between stream and database: the session has ended in both"
            );
        }
        rows.retain(|row| row.session_seq > last.session_seq);
        Ok(UnpublishedRows { rows, is_all })
    }

    /// Publishes one row after the other; `None` if another publisher was faster.
    async fn publish_page(
        &mut self,
        mut last: LastPublished,
        rows: Vec<TimelineEvent>,
    ) -> Result<Option<LastPublished>, CatchUpError> {
        for row in rows {
            let session_seq = row.session_seq;
            if session_seq != last.session_seq + 1 {
                return Err(CatchUpError::Gap {
                    after: last.session_seq,
                    found: session_seq,
                });
            }
            let identity = EventIdentity::new(&row);
            let Some(stream_sequence) = self.publish(row, last.stream_sequence).await? else {
                return Ok(None);
            };
            if self.recent.len() == MAX_RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back((session_seq, hash(&identity)));
            last = LastPublished {
                session_seq,
                stream_sequence,
                identity: Some(identity),
            };
        }
        Ok(Some(last))
    }

    async fn publish(
        &self,
        row: TimelineEvent,
        expected: u64,
    ) -> Result<Option<u64>, CatchUpError> {
        let is_first = row.session_seq == 1;
        let payload = encode(&truncate(row, self.max_event_bytes()));
        let message = PublishMessage::build()
            .headers(self.signer().await?.sign(&payload))
            .payload(payload.into())
            .expected_stream(TIMELINE)
            .expected_last_subject_sequence(expected);
        let mut link = self.nats.watch_connection();
        let begun = Instant::now();
        let publish = self
            .nats
            .jetstream
            .send_publish(self.subject.clone(), message);
        let outcome = tokio::select! {
            outcome = tokio::time::timeout(ACK_TIMEOUT, async { publish.await?.await }) => outcome,
            // The acknowledgement was lost with the connection.
            Ok(()) = link.changed() => return Err(connection_changed()),
        };
        match outcome {
            Ok(Ok(ack)) => {
                metrics::counter!("tarsy_events_published_total").increment(1);
                metrics::histogram!("tarsy_event_publish_duration_seconds")
                    .record(begun.elapsed().as_secs_f64());
                if is_first && let Some(waited) = self.since_id() {
                    metrics::histogram!("tarsy_time_to_first_event_seconds")
                        .record(waited.as_secs_f64());
                }
                Ok(Some(ack.sequence))
            }
            Ok(Err(error)) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(None),
            Ok(Err(error)) => Err(CatchUpError::Broker(error.to_string())),
            Err(_) => Err(CatchUpError::Broker(
                "a publish was not acknowledged".to_owned(),
            )),
        }
    }

    /// Reads the last event from the stream's leader. A message that no worker has signed is ignored.
    async fn read_last_published(&self) -> Result<LastPublished, CatchUpError> {
        let last = last_on_subject(&self.nats, TIMELINE, &self.subject).await?;
        let Some(message) = last else {
            return Ok(LastPublished::default());
        };
        let found = decode(&self.subject, &message.payload);
        let at = |event: Option<&TimelineEvent>| LastPublished {
            session_seq: event.map_or(0, |event| event.session_seq),
            stream_sequence: message.sequence,
            identity: event.map(EventIdentity::new),
        };
        if let Some(found) = &found
            && (self
                .signer()
                .await?
                .has_signed(&message.payload, Some(&message.headers))
                || is_in_table(&*self.outbox, found).await?)
        {
            return Ok(at(Some(found)));
        }
        metrics::counter!("tarsy_forged_events_total").increment(1);
        tracing::error!(session_id = %self.session, "timeline message ignored: not signed by a worker");
        let signed = signed_events(
            &self.nats,
            self.signer().await?,
            self.subject.clone(),
            message.sequence,
        )
        .await?;
        Ok(at(signed.values().next_back()))
    }

    /// The signer with the key of this installation, which is read once.
    async fn signer(&self) -> Result<&EventSigner, CatchUpError> {
        self.signer
            .get_or_try_init(|| async { Ok(EventSigner::new(&self.outbox.event_key().await?)) })
            .await
    }

    /// The time since that in the session's id, when the stream stored the alert or its producer made the id.
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

fn hash(identity: &EventIdentity) -> u64 {
    let mut hasher = DefaultHasher::new();
    identity.hash(&mut hasher);
    hasher.finish()
}

fn connection_changed() -> CatchUpError {
    CatchUpError::Broker("the connection changed".to_owned())
}
