//! The port `WaitingCalls`: requests for approvals, and the parking of a session that waits for nothing else.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::ports::lease::{Lease, StoreError};
use tarsy_core::approvals::{CallHash, Channel};
use tarsy_core::execution::entry::ApprovalOutcome;
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::plan::WhenResolved;

/// Reads the requests of a session and what people have decided, and parks a session.
pub trait WaitingCalls: Send + Sync + 'static {
    /// The requests that are not closed, with the session's event number, in one snapshot.
    fn outcomes(
        &self,
        session: SessionId,
    ) -> impl Future<Output = Result<Outcomes, StoreError>> + Send;

    /// The number of requests that exist, for the limits of new ones. Of the open requests at most `enough` are
    /// counted.
    fn request_counts(
        &self,
        session: SessionId,
        enough: u32,
    ) -> impl Future<Output = Result<RequestCounts, StoreError>> + Send;

    /// Gives up the lease until the first request expires or a decision wakes the session, unless something has changed
    /// since the snapshot with the event number `seen`.
    fn park(
        &self,
        lease: Lease,
        seen: u32,
    ) -> impl Future<Output = Result<Parking, StoreError>> + Send;
}

/// The outcome of [`WaitingCalls::park`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parking {
    /// The session waits without a worker.
    Parked,
    /// Something has changed: read the outcomes again.
    Changed,
}

/// The open requests of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcomes {
    /// The session's last event number in the snapshot.
    pub event_seq: u32,
    /// The number of the last update of the session's alert in the snapshot.
    pub updates: u32,
    /// Whether operators have frozen all changes.
    pub is_frozen: bool,
    /// In order of their event numbers.
    pub requests: Vec<WaitingCall>,
}

/// A request that the journal has not closed.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitingCall {
    /// The number of its event.
    pub event: u32,
    pub execution_id: ExecutionId,
    pub call_id: String,
    /// The time since the request, by the database's clock.
    pub waited: Duration,
    /// The time until it expires; zero afterwards.
    pub left: Duration,
    /// The decision of people; `None` while they have made none.
    pub decided: Option<Decided>,
}

/// The decision of people about a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// `Approved`, `Denied`, `DeniedSession`, or `Lapsed` for an approval that is too old.
    pub outcome: ApprovalOutcome,
    pub by: Vec<String>,
    /// The text of the person whose vote decided.
    pub comment: Option<String>,
    /// The channel of that vote; `None` for a call that an earlier denial of its tool has decided.
    pub channel: Option<Channel>,
    /// The time at which its channel stored that vote, by the database's clock.
    pub at: DateTime<Utc>,
}

/// Numbers of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// The open requests of all sessions, as far as they were counted. One of a session that has ended counts until it
    /// expires.
    pub open: u32,
    /// All requests of this session.
    pub of_session: u32,
    /// The age of the session.
    pub age: Duration,
}

/// A request that a checkpoint inserts under the number of its event.
#[derive(Clone, Debug, PartialEq)]
pub struct AskedApproval {
    pub call_id: String,
    /// The full name of the tool.
    pub tool: String,
    pub policy: String,
    /// As they will be sent, and as people see them.
    pub arguments: String,
    pub call_sha256: CallHash,
    /// SHA-256 of the tool's schema in the plan.
    pub schema_sha256: [u8; 32],
    pub why: String,
    /// The numbers of the events that the answer cites.
    pub evidence: Vec<u32>,
    /// The places where each value of the arguments occurs.
    pub origins: Value,
    pub quorum: u8,
    pub timeout: Duration,
    pub valid_for: Duration,
    pub on_resolved: WhenResolved,
    pub other_person: bool,
    pub channels: Vec<&'static str>,
}

/// The end of a request in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosedAs {
    Outcome(ApprovalOutcome),
    /// A loss of commits took its end and the start of its call, which may have been sent.
    Lost,
}

impl ClosedAs {
    /// The word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Outcome(outcome) => outcome.as_str(),
            Self::Lost => "lost",
        }
    }
}

/// A request that a checkpoint closes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedApproval {
    pub call_id: String,
    pub closed_as: ClosedAs,
    /// The session's event number in the snapshot on which an end rests that no person made; the checkpoint is refused
    /// ([`StoreError::Undecided`]) if it has changed.
    pub seen: Option<u32>,
}
