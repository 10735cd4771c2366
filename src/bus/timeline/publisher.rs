//! Publishes one session's events: reads how far its subject has come and publishes the row after it, from the table.
//!
//! Several publishers of one session may run at once, in one process or many: the rows never change and the expected
//! sequence of the subject lets one of them through. It orders publishers and fences nobody; a refusal only means
//! "look again". Messages carry no `Nats-Msg-Id`: after a purge the id would still count as a duplicate.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::divergence::{Key, is_in_table, sealed};
use super::seal::Seal;
use super::stream_get::last_on;
use super::wire::{MAX_EVENT_BYTES, encode, fit};
use crate::bus::connection::Nats;
use crate::bus::names::{TIMELINE, timeline_subject};
use crate::engine::ports::{Outbox, StoreError};
use crate::investigation::ids::SessionId;
use crate::investigation::timeline::TimelineEvent;

const PAGE: u32 = 64;
const ACK_TIMEOUT: Duration = Duration::from_secs(5);
/// Headers of an event, under the server's `max_payload`.
const HEADER_BYTES: usize = 1024;

/// Why a session's events are not all published now.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stuck {
    #[error("{0}")]
    Store(StoreError),
    #[error("{0}")]
    Broker(String),
    #[error("the table's event after number {after} has number {found}")]
    Gap { after: u32, found: u32 },
    #[error("event {0} on the stream is not the one in the table: the database has lost commits")]
    Diverged(u32),
}

/// How far a subject has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tail {
    session_seq: u32,
    stream_sequence: u64,
    /// The event; `None` for a subject without any.
    key: Option<Key>,
}

/// The publisher of one session.
#[derive(Debug)]
pub(super) struct Publisher<O> {
    nats: Nats,
    outbox: Arc<O>,
    session: SessionId,
    subject: String,
    tail: Option<Tail>,
    /// No event will be added: what the store and the stream disagree about was dealt with before.
    ended: bool,
    seal: OnceCell<Seal>,
}

impl<O: Outbox> Publisher<O> {
    pub(super) fn new(nats: &Nats, outbox: Arc<O>, session: SessionId) -> Self {
        let subject = timeline_subject(session);
        Self { nats: nats.clone(), outbox, session, subject, tail: None, ended: false, seal: OnceCell::new() }
    }

    /// The publisher of a session that is over.
    pub(super) fn of_an_end(self) -> Self {
        Self { ended: true, ..self }
    }

    /// The number of the last event that this publisher saw on the stream; `None` when it has to look first.
    pub(super) fn reached(&self) -> Option<u32> {
        self.tail.as_ref().map(|tail| tail.session_seq)
    }

    /// Publishes every row that the table has; returns the number of the last event on the stream.
    ///
    /// After an error or when dropped, the next call looks at the subject again.
    pub(super) async fn catch_up(&mut self) -> Result<u32, Stuck> {
        loop {
            let tail = match self.tail.take() {
                Some(tail) => tail,
                None => {
                    let mut link = self.nats.watch_connection();
                    tokio::select! {
                        tail = self.read_tail() => tail?,
                        Ok(()) = link.changed() => return Err(connection_changed()),
                    }
                }
            };
            let rows = self.rows_behind(&tail).await?;
            if rows.is_empty() {
                let reached = tail.session_seq;
                self.tail = Some(tail);
                return Ok(reached);
            }
            self.tail = self.publish_page(tail, rows).await?;
        }
    }

    /// The rows after the last published one, which has to be there still: a database that has lost commits gives its
    /// number to another event.
    async fn rows_behind(&self, tail: &Tail) -> Result<Vec<TimelineEvent>, Stuck> {
        let from = tail.session_seq.saturating_sub(1);
        let mut rows = self.outbox.events(self.session, from, PAGE).await.map_err(Stuck::Store)?;
        let Some(key) = &tail.key else { return Ok(rows) };
        let same = rows.first().map(Key::of).as_ref() == Some(key);
        if !same && !self.ended {
            return Err(Stuck::Diverged(tail.session_seq));
        }
        if !same {
            tracing::error!(
                session_id = %self.session,
                session_seq = tail.session_seq,
                "the last event on the stream is not the one in the database, and the session is over in both"
            );
        }
        rows.retain(|row| row.session_seq > tail.session_seq);
        Ok(rows)
    }

    /// One at a time; `None` when somebody else was faster.
    async fn publish_page(&self, mut tail: Tail, rows: Vec<TimelineEvent>) -> Result<Option<Tail>, Stuck> {
        for row in rows {
            let session_seq = row.session_seq;
            if session_seq != tail.session_seq + 1 {
                return Err(Stuck::Gap { after: tail.session_seq, found: session_seq });
            }
            let key = Some(Key::of(&row));
            match self.publish(row, tail.stream_sequence).await? {
                Some(stream_sequence) => tail = Tail { session_seq, stream_sequence, key },
                None => return Ok(None),
            }
        }
        Ok(Some(tail))
    }

    async fn publish(&self, row: TimelineEvent, expected: u64) -> Result<Option<u64>, Stuck> {
        let payload = encode(&fit(row, self.max_event_bytes()));
        let message = PublishMessage::build()
            .headers(self.seal().await?.headers(&payload))
            .payload(payload.into())
            .expected_stream(TIMELINE)
            .expected_last_subject_sequence(expected);
        let mut link = self.nats.watch_connection();
        let begun = Instant::now();
        let publish = self.nats.jetstream().send_publish(self.subject.clone(), message);
        let outcome = tokio::select! {
            outcome = tokio::time::timeout(ACK_TIMEOUT, async { publish.await?.await }) => outcome,
            // The answer was lost with the connection: there is nothing to wait for.
            Ok(()) = link.changed() => return Err(connection_changed()),
        };
        match outcome {
            Ok(Ok(ack)) => {
                metrics::counter!("tarsy_events_published_total").increment(1);
                metrics::histogram!("tarsy_event_publish_duration_seconds").record(begun.elapsed().as_secs_f64());
                Ok(Some(ack.sequence))
            }
            Ok(Err(error)) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(None),
            Ok(Err(error)) => Err(Stuck::Broker(error.to_string())),
            Err(_) => Err(Stuck::Broker("a publish was not acknowledged".to_owned())),
        }
    }

    /// Asks the stream's leader.
    async fn read_tail(&self) -> Result<Tail, Stuck> {
        let broker = |error: &dyn std::error::Error| Stuck::Broker(error.to_string());
        let last = last_on(&self.nats, TIMELINE, &self.subject).await.map_err(|error| broker(&error))?;
        let Some(message) = last else { return Ok(Tail::default()) };
        let found = serde_json::from_slice(&message.payload).ok();
        let at = |event: Option<&TimelineEvent>| Tail {
            session_seq: event.map_or(0, |event| event.session_seq),
            stream_sequence: message.sequence,
            key: event.map(Key::of),
        };
        if let Some(found) = &found
            && (self.seal().await?.is_on(&message.payload, Some(&message.headers))
                || is_in_table(&*self.outbox, found).await.map_err(Stuck::Store)?)
        {
            return Ok(at(Some(found)));
        }
        metrics::counter!("tarsy_forged_events_total").increment(1);
        tracing::error!(session_id = %self.session, "timeline message ignored: no worker has published it");
        let sealed = sealed(&self.nats, self.seal().await?, (self.subject.clone(), message.sequence)).await;
        Ok(at(sealed.map_err(|error| broker(&error))?.values().next_back()))
    }

    /// The seal of this installation, read once.
    async fn seal(&self) -> Result<&Seal, Stuck> {
        let seal = self.seal.get_or_try_init(|| async { Ok(Seal::new(&self.outbox.event_key().await?)) });
        seal.await.map_err(Stuck::Store)
    }

    fn max_event_bytes(&self) -> usize {
        MAX_EVENT_BYTES.min(self.nats.client().max_payload().saturating_sub(HEADER_BYTES))
    }
}

fn connection_changed() -> Stuck {
    Stuck::Broker("the connection changed".to_owned())
}
