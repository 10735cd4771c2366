//! Reads the messages of the queue without consuming them, for people.

use async_nats::jetstream::message::StreamMessage;
use sha2::{Digest, Sha256};

use super::claims::{chosen_id, derived_id_of, stored_at};
use crate::connection::Nats;
use crate::error::Error;
use crate::headers;
use crate::names::{ALERTS, MessageKind, Priority};
use crate::stream::get::first_from;
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::Received;

/// A message that the queue has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedMessage {
    /// The message as a worker would receive it. Its texts are not masked.
    pub received: Received,
    pub priority: Priority,
    pub kind: MessageKind,
}

/// The result of a search in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The messages that match, in no order.
    pub found: Vec<QueuedMessage>,
    /// Every message was examined; otherwise the queue has more of them than a search reads.
    pub is_complete: bool,
}

impl Nats {
    /// Reads at most `limit` messages of a priority that no worker has claimed, the oldest first.
    ///
    /// # Errors
    ///
    /// When the stream or the priority's consumer cannot be read.
    pub async fn unclaimed(
        &self,
        priority: Priority,
        limit: usize,
    ) -> Result<Vec<QueuedMessage>, Error> {
        let from = self.consumer_of(priority).await?.delivered.stream_sequence + 1;
        let mut found = Vec::new();
        for filter in priority.filters() {
            let mut next = from;
            for _ in 0..limit {
                let Some(message) = first_from(self, ALERTS, &filter, next).await? else {
                    break;
                };
                next = message.sequence + 1;
                found.push(QueuedMessage::new(message, priority));
            }
        }
        found.sort_by_key(|message: &QueuedMessage| message.received.stream_sequence);
        found.truncate(limit);
        Ok(found)
    }

    /// The messages of the queue, claimed or not, whose alert `matches`. Reads at most `limit` messages of each
    /// priority and form of subject.
    ///
    /// # Errors
    ///
    /// When the stream cannot be read.
    pub async fn search_queue(
        &self,
        matches: impl Fn(SessionId) -> bool,
        limit: usize,
    ) -> Result<Search, Error> {
        let mut search = Search {
            found: Vec::new(),
            is_complete: true,
        };
        for priority in Priority::ALL {
            for filter in priority.filters() {
                let mut next = 1;
                let mut count = 0;
                while let Some(message) = first_from(self, ALERTS, &filter, next).await? {
                    if count == limit {
                        search.is_complete = false;
                        break;
                    }
                    next = message.sequence + 1;
                    count += 1;
                    if matches(alert_id(&message)) {
                        search.found.push(QueuedMessage::new(message, priority));
                    }
                }
            }
        }
        Ok(search)
    }
}

/// The id that a worker gives to the alert. If another alert has used it, the worker takes the derived one.
fn alert_id(message: &StreamMessage) -> SessionId {
    chosen_id(message).unwrap_or_else(|| derived_id_of(message))
}

impl QueuedMessage {
    fn new(message: StreamMessage, priority: Priority) -> Self {
        Self {
            priority,
            kind: MessageKind::of_subject(&message.subject),
            received: Received {
                alert_id: alert_id(&message),
                body_sha256: Sha256::digest(&message.payload).into(),
                headers: headers::allowed(Some(&message.headers)),
                subject: message.subject.to_string(),
                stream_sequence: message.sequence,
                queued_at: stored_at(message.time.unix_timestamp_nanos()),
                body: Some(message.payload.to_vec()),
            },
        }
    }
}
