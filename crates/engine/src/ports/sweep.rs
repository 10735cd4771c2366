//! Orphaned rows, as the port `Sessions` returns them to the sweeper, and the limits of a sweep.

use std::time::Duration;

use serde_json::Value;

use tarsy_core::ids::SessionId;

/// The limits of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Time between two sweeps.
    pub interval: Duration,
    /// Rows younger than this are left to their owners.
    pub min_age: Duration,
    /// The limit of rows of each kind.
    pub limit: u32,
}

/// An orphaned row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swept {
    /// A session past its deadline, or cancelled, without a valid lease.
    Overdue(SessionId),
    /// An alert that is undecided, or open without a valid lease: its message may be gone from the stream.
    Idle(IdleAlert),
    /// An ended session that is not settled.
    Unsettled(SessionId),
}

/// An alert that waits for a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleAlert {
    pub alert_id: SessionId,
    /// The alert has no disposition yet.
    pub undecided: bool,
    /// The subject of its message.
    pub subject: String,
    /// Allow-listed headers, as received.
    pub headers: Value,
    /// The body as received; `None` when it was too large to be kept.
    pub body: Option<Vec<u8>>,
    /// The sequence of its message in the stream of alerts.
    pub stream_sequence: u64,
    /// The cause that woke its session; `None` for one that did not wait for people.
    pub woken_by: Option<WakeCause>,
}

/// The cause that ends the wait of a parked session.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WakeCause {
    /// People decided about a call for which it waited.
    Decision,
    /// The time of such a call has passed.
    Expiry,
    /// The alert was resolved, and a call is withdrawn with it.
    Resolved,
}

tarsy_core::words!(pub WakeCause, pub ALL);
