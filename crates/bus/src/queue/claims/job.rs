//! Turns a message of the queue into a job. An invalid message becomes a job with a refusal; it is never dropped.

use std::sync::Arc;

use async_nats::Message;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::{self, Context};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use tokio::sync::OwnedSemaphorePermit;

use crate::headers;
use crate::names::{ALERTS, Priority};
use crate::queue::delivery::JetStreamDelivery;
use tarsy_core::ids::SessionId;
use tarsy_core::intake::headers::chosen_session_id;
use tarsy_engine::ports::{DeadReason, Job, Received, Refusal};

/// A job and the slot that it occupies.
#[derive(Debug)]
pub struct ClaimedJob {
    /// The alert, with its allowed headers, and its delivery.
    pub job: Job<JetStreamDelivery>,
    pub priority: Priority,
    /// The deliveries of this message so far, this one included.
    pub deliveries: u64,
    /// Dropping it frees the slot.
    pub slot: OwnedSemaphorePermit,
}

/// A claimed message that has no slot yet.
#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) job: Job<JetStreamDelivery>,
    pub(super) priority: Priority,
    pub(super) deliveries: u64,
}

impl Claimed {
    /// `None` for a message that no consumer of the queue has delivered.
    pub(super) fn read(context: &Context, message: Message, max_body_bytes: usize) -> Option<Self> {
        let reply = message.reply.clone()?;
        let message = jetstream::Message {
            message,
            context: context.clone(),
        };
        let info = message.info().ok()?;
        let priority = Priority::parse(info.consumer)?;
        let derived_id = derived_id(
            info.stream,
            info.stream_sequence,
            info.published.unix_timestamp_nanos(),
        );
        let headers = headers::allowed(message.headers.as_ref());
        let (alert_id, fault) = match chosen_session_id(&headers) {
            Ok(chosen) => (
                chosen.unwrap_or(derived_id),
                too_large(message.payload.len(), max_body_bytes),
            ),
            Err(invalid) => (derived_id, Some(invalid.into())),
        };
        let keep = message.payload.len() <= max_body_bytes;
        let received = Received {
            alert_id,
            body_sha256: Sha256::digest(&message.payload).into(),
            body: keep.then(|| message.payload.to_vec()),
            headers,
            subject: message.subject.to_string(),
            stream_sequence: info.stream_sequence,
            queued_at: stored_at(info.published.unix_timestamp_nanos()),
        };
        let delivery = JetStreamDelivery {
            client: context.client(),
            reply,
        };
        Some(Self {
            priority,
            deliveries: u64::try_from(info.delivered).unwrap_or_default(),
            job: Job {
                received,
                derived_id,
                fault,
                delivery: Arc::new(delivery),
            },
        })
    }

    pub(super) fn with_slot(self, slot: OwnedSemaphorePermit) -> ClaimedJob {
        ClaimedJob {
            job: self.job,
            priority: self.priority,
            deliveries: self.deliveries,
            slot,
        }
    }
}

/// The session id that the producer has chosen for a message of the queue.
pub(crate) fn chosen_id(message: &StreamMessage) -> Option<SessionId> {
    let chosen = chosen_session_id(&headers::allowed(Some(&message.headers)));
    chosen.ok().flatten()
}

/// The derived session id of a message of the queue.
pub(crate) fn derived_id_of(message: &StreamMessage) -> SessionId {
    let stored_at_ns = message.time.unix_timestamp_nanos();
    derived_id(ALERTS, message.sequence, stored_at_ns)
}

/// The session id of the message at `sequence` of `stream`, from the Unix time at which it was stored.
fn derived_id(stream: &str, sequence: u64, stored_at_ns: i128) -> SessionId {
    SessionId::of_delivery(
        stream,
        sequence,
        u64::try_from(stored_at_ns / 1_000_000).unwrap_or(0),
    )
}

/// The time when the stream stored a message, from the Unix time.
pub(crate) fn stored_at(unix_ns: i128) -> DateTime<Utc> {
    i64::try_from(unix_ns)
        .map(DateTime::from_timestamp_nanos)
        .unwrap_or_default()
}

/// Whether a message that was read from the stream of alerts belongs to this alert.
pub(crate) fn belongs_to(alert: SessionId, message: &StreamMessage) -> bool {
    // If the header names an id that another alert uses, the message belongs to the alert with the derived id.
    chosen_id(message) == Some(alert) || derived_id_of(message) == alert
}

fn too_large(bytes: usize, max_body_bytes: usize) -> Option<Refusal> {
    (bytes > max_body_bytes).then(|| Refusal {
        reason: DeadReason::TooLarge,
        detail: format!("the body has {bytes} bytes, at most {max_body_bytes} are taken"),
    })
}
