//! `Lease`, the right to write to a session, and `StoreError`, the reason why a write did not happen.

use uuid::Uuid;

use tarsy_core::ids::SessionId;

/// The right to write to a session. The store fences every write with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    pub session_id: SessionId,
    /// Grows by one with every claim and release.
    pub epoch: u32,
    /// Random per claim: a restored database cannot give the same right twice.
    pub token: Uuid,
}

/// The reason why a write did not happen or is not known to have happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another worker owns the session: stop, and do not answer the message.
    #[error("lease epoch {held} superseded by {current}")]
    LeaseLost {
        /// The epoch of the refused write.
        held: u32,
        /// The epoch in the store.
        current: u32,
    },
    /// The session is over.
    #[error("session has ended")]
    Ended,
    /// A second writer with the same lease, or a row that this version does not understand.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The store has lost commits of this run that it had confirmed.
    #[error("store has lost commits: {0}")]
    Behind(String),
    /// The store has no decision of people that permits this checkpoint: read the outcomes again.
    #[error("not decided: {0}")]
    Undecided(String),
    /// The store refuses what was to be written, whenever it is sent: a constraint, or more than it can hold.
    #[error("refused: {0}")]
    Refused(String),
    /// The store answered, but did not finish this statement within its time limit: it may do the same each time.
    #[error("statement took too long: {0}")]
    TimedOut(String),
    /// The store gave no answer within its bounds; the outcome is unknown.
    #[error("store is unavailable: {0}")]
    Unavailable(String),
}
