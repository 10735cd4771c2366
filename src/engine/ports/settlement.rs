//! Settlement: what an ended session still owes, and the outbox, the table of events that the publisher reads.

use super::dead_letter::DeadLetter;
use super::journal::StoreError;
use crate::investigation::ids::SessionId;
use crate::investigation::timeline::TimelineEvent;

/// How far a session or alert is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettlementStatus {
    /// No event will follow.
    pub over: bool,
    /// Settled before.
    pub settled: bool,
    /// Number of the last event, 0 for none.
    pub last_seq: u32,
    /// The dead letter that has to be stored before it is settled, with the alert to put into it.
    pub owes: Option<DeadLetter>,
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
