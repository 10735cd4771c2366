//! The port `People`, for what people decide: requests for approvals, freezes of changes, and verdicts about analyses.
//!
//! A decision is a message to the workers, as everything that people send here. A worker judges the rights of its
//! person once more, by its own configuration, and records it; then the database shows it.

use uuid::Uuid;

use super::{Refusal, Unavailable};
use tarsy_core::approvals::{CallHash, Choice, RequestId, Voter};
use tarsy_core::ids::SessionId;
use tarsy_reports::{ApprovalDetail, ApprovalFilter, ApprovalRow, FreezeReport, VoteReport};

/// Reads requests for approvals, and sends what people decide.
pub trait People: Send + Sync + 'static {
    /// The requests of a list.
    fn approvals(
        &self,
        filter: ApprovalFilter,
    ) -> impl Future<Output = Result<Vec<ApprovalRow>, Unavailable>> + Send;

    /// Everything that a person sees before they decide; `None` if there is no such request.
    fn approval(
        &self,
        request: RequestId,
    ) -> impl Future<Output = Result<Option<ApprovalDetail>, Unavailable>> + Send;

    /// The freeze of all changes that lasts now.
    fn freeze_now(&self) -> impl Future<Output = Result<Option<FreezeReport>, Unavailable>> + Send;

    /// The line of every page about people, some seconds old; the default while it cannot be read, and where no person
    /// takes part.
    fn notice(&self) -> impl Future<Output = Notice> + Send;

    /// The decisions that a person may send about a request, as far as this server's configuration says.
    fn may_decide(&self, person: &Voter, request: &ApprovalDetail) -> MayDecide;

    /// Whether a person may freeze all changes, and end a freeze.
    fn may_freeze(&self, person: &Voter) -> bool;

    /// Sends a decision, and waits a moment for its vote.
    fn decide(&self, decision: Decision) -> impl Future<Output = Result<Cast, Refusal>> + Send;

    /// Sends a verdict about the analysis of a session that has ended, and waits a moment for its record.
    fn judge(&self, judgement: Judgement)
    -> impl Future<Output = Result<Recorded, Refusal>> + Send;

    /// Begins or ends a freeze of all changes, and waits a moment for it.
    fn freeze(&self, freeze: Freeze) -> impl Future<Output = Result<Recorded, Refusal>> + Send;
}

/// The line of every page about people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    /// The number of open requests, 0 also while they cannot be read; `None` where no person takes part.
    pub open: Option<usize>,
    /// The freeze that lasts now.
    pub freeze: Option<FreezeReport>,
}

/// The most open requests that are counted for a page.
pub const MAX_COUNTED: u32 = 100;

/// The decisions that a person may send about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayDecide {
    /// None: the form does not exist for them.
    Nothing,
    /// They asked the question whose call it is, and its policy wants another person to approve.
    Deny,
    Everything,
}

/// A decision of a person about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub request: RequestId,
    /// Chosen when the form was made: the same decision with the same nonce is one vote.
    pub nonce: SessionId,
    /// The call that the person saw.
    pub call: CallHash,
    /// The last update of the alert that the person saw.
    pub seen_updates: u32,
    pub choice: Choice,
    pub comment: Option<String>,
    pub by: Voter,
    /// The address from which this server saw the person.
    pub from: Option<String>,
}

/// A vote that was sent, or may have been.
#[derive(Clone, Debug, PartialEq)]
pub struct Cast {
    pub vote: Uuid,
    pub recorded: Result<VoteReport, NoRecord>,
}

/// The reason why the record of a message is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRecord {
    /// No worker has recorded it yet.
    NotYet,
    /// The broker has not confirmed it in time, and no worker has recorded it yet: it may be stored.
    Unconfirmed,
    /// The database could not be read.
    Unread,
}

/// The longest comment of a decision, in characters.
pub const MAX_COMMENT: usize = 2_000;
/// The lengths of a freeze that a person may choose, in hours.
pub const HOURS: [u32; 4] = [1, 4, 24, 72];
/// The longest reason of a freeze, in characters.
pub const MAX_REASON: usize = 500;

/// The words of a verdict about an analysis.
pub const JUDGEMENTS: [&str; 3] = ["right", "partly", "wrong"];
/// The longest text of a verdict, in characters.
pub const MAX_JUDGED: usize = 2_000;

/// A verdict of a person about an analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub session: SessionId,
    /// The number of verdicts that the page showed: the same words on the same page are one verdict.
    pub seen: u32,
    /// One of [`JUDGEMENTS`].
    pub verdict: &'static str,
    /// The real cause, in the words of the person.
    pub cause: Option<String>,
    /// The words about what the person did.
    pub action: Option<String>,
    pub by: Voter,
    /// The address from which this server saw the person.
    pub from: Option<String>,
}

/// The beginning or the end of a freeze of all changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// Chosen when the form was made.
    pub nonce: SessionId,
    pub change: FreezeChange,
    pub by: Voter,
    /// The address from which this server saw the person.
    pub from: Option<String>,
}

/// The change that a person wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FreezeChange {
    Begin {
        /// `None`: until a person ends it.
        hours: Option<u32>,
        reason: Option<String>,
    },
    End,
}

/// Whether a worker has recorded what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    Yes,
    No(NoRecord),
}
