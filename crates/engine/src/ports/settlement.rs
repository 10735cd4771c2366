//! Settlement: the unpublished events of an ended session, and the outbox, the table that the publisher reads.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::dead_letter::DeadLetter;
use super::lease::StoreError;
use super::tail::Tail;
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::timeline::{EventType, TimelineEvent};

/// The settlement of a session or alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettlementStatus {
    /// No event will follow.
    pub over: bool,
    /// Settled before.
    pub settled: bool,
    /// Number of the last event, 0 for none.
    pub last_seq: u32,
    /// The last event of an ended session; `None` for an alert without a session.
    pub last_event: Option<EventIdentity>,
    /// The headers and the subject of the alert's message, as the store has them.
    pub message: StoredMessage,
    /// The dead letter that has to be stored before it is settled, with the alert to put into it.
    pub owes: Option<DeadLetter>,
}

/// The headers and the subject of an alert's message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredMessage {
    pub headers: Value,
    pub subject: String,
}

/// The identity of an event, on the stream and in the table. Its text is not part of it, because the wire form is
/// truncated, nor are the names that the store joins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventIdentity {
    pub session_seq: u32,
    pub execution_id: Option<ExecutionId>,
    pub sequence_number: Option<u32>,
    pub event_type: EventType,
    pub created_at: DateTime<Utc>,
}

impl EventIdentity {
    /// The identity of this event.
    pub fn new(event: &TimelineEvent) -> Self {
        Self {
            session_seq: event.session_seq,
            execution_id: event.execution_id,
            sequence_number: event.sequence_number,
            event_type: event.event_type.clone(),
            created_at: event.created_at,
        }
    }
}

/// The timeline table, as the publisher and watchers read it.
pub trait Outbox: Send + Sync + 'static {
    /// Events after `after`, in order, at most `limit`.
    fn events(
        &self,
        session: SessionId,
        after: u32,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<TimelineEvent>, StoreError>> + Send;

    /// The events of the session that this process commits from now on. They are the rows of the table.
    fn tail(&self, session: SessionId) -> Arc<Tail>;

    /// The secret that distinguishes published events from forged ones.
    fn event_key(&self) -> impl Future<Output = Result<EventKey, StoreError>> + Send;
}

/// A secret of the installation; its `Debug` form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct EventKey(pub Vec<u8>);

impl std::fmt::Debug for EventKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventKey")
    }
}
