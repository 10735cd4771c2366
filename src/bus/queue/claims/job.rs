//! From a message to a job: whatever is wrong with the message is marked, never dropped.

use async_nats::Message;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::{self, Context};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::OwnedSemaphorePermit;

use crate::bus::headers::{self, SESSION_ID};
use crate::bus::names::{ALERTS, Priority};
use crate::bus::queue::delivery::JobDelivery;
use crate::engine::ports::{DeadReason, Received};
use crate::investigation::ids::SessionId;

/// A claimed alert.
#[derive(Debug)]
pub struct Job {
    /// What the store is told first. Its headers are the allowed ones.
    pub received: Received,
    /// The id derived from the delivery. A dead letter of a used id goes under it.
    pub derived_id: SessionId,
    /// Why it cannot be investigated, as far as the message alone tells: to be stored, then given up.
    pub fault: Option<Fault>,
    /// The queue it came from.
    pub priority: Priority,
    /// To be answered.
    pub delivery: JobDelivery,
    /// Free again when the job is dropped.
    pub slot: OwnedSemaphorePermit,
}

/// What is wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Of the dead letter.
    pub reason: DeadReason,
    /// For people.
    pub detail: String,
}

/// A message of the queue before it has a slot.
#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) received: Received,
    pub(super) derived_id: SessionId,
    pub(super) fault: Option<Fault>,
    pub(super) priority: Priority,
    pub(super) delivery: JobDelivery,
}

impl Claimed {
    /// `None` for a message that did not come from one of the queue's consumers.
    pub(super) fn read(context: &Context, message: Message, max_alert_bytes: usize) -> Option<Self> {
        let reply = message.reply.clone()?;
        let message = jetstream::Message { message, context: context.clone() };
        let info = message.info().ok()?;
        let priority = Priority::parse(info.consumer)?;
        let derived_id = derived_id(info.stream, info.stream_sequence, info.published.unix_timestamp_nanos());
        let stream_sequence = info.stream_sequence;

        let headers = headers::allowed(message.headers.as_ref());
        let (alert_id, fault) = match chosen_id(&headers) {
            Ok(chosen) => (chosen.unwrap_or(derived_id), too_large(message.payload.len(), max_alert_bytes)),
            Err(fault) => (derived_id, Some(fault)),
        };
        let keep = message.payload.len() <= max_alert_bytes;
        let received = Received {
            alert_id,
            body_sha256: Sha256::digest(&message.payload).into(),
            body: keep.then(|| message.payload.to_vec()),
            headers,
            subject: message.subject.to_string(),
            stream_sequence,
        };
        let delivery = JobDelivery::new(context.client(), reply);
        Some(Self { received, derived_id, fault, priority, delivery })
    }

    pub(super) fn into_job(self, slot: OwnedSemaphorePermit) -> Job {
        let Self { received, derived_id, fault, priority, delivery } = self;
        Job { received, derived_id, fault, priority, delivery, slot }
    }
}

/// The id of the message at `sequence` of `stream`, stored at this Unix time.
fn derived_id(stream: &str, sequence: u64, stored_at_ns: i128) -> SessionId {
    SessionId::of_delivery(stream, sequence, u64::try_from(stored_at_ns / 1_000_000).unwrap_or(0))
}

/// Whether a message of the queue, read from the stream itself, is this alert's.
pub(in crate::bus) fn is_of(alert: SessionId, message: &StreamMessage) -> bool {
    // A message under a used id is the alert that is derived from it; its header names the other one.
    let chosen = chosen_id(&headers::allowed(Some(&message.headers))).ok().flatten();
    chosen == Some(alert) || derived_id(ALERTS, message.sequence, message.time.unix_timestamp_nanos()) == alert
}

fn chosen_id(headers: &Value) -> Result<Option<SessionId>, Fault> {
    let Some(text) = headers.get(SESSION_ID).and_then(Value::as_str) else {
        return Ok(None);
    };
    SessionId::parse(text).map(Some).ok_or_else(|| Fault {
        reason: DeadReason::InvalidId,
        detail: format!("{SESSION_ID} holds no UUIDv7: {}", text.chars().take(100).collect::<String>()),
    })
}

fn too_large(bytes: usize, max_alert_bytes: usize) -> Option<Fault> {
    (bytes > max_alert_bytes).then(|| Fault {
        reason: DeadReason::TooLarge,
        detail: format!("the body has {bytes} bytes, at most {max_alert_bytes} are taken"),
    })
}
