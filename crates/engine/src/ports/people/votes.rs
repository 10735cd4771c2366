//! The port `Votes`: what people decide, recorded by whichever worker receives it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::ports::lease::StoreError;
use crate::ports::sweep::IdleAlert;
use tarsy_core::approvals::{CallHash, Channel, Choice, Refusal, RequestId};
use tarsy_core::ids::SessionId;

/// Records votes and freezes.
pub trait Votes: Send + Sync + 'static {
    /// The policy and the asker of a request, for the rights of a voter; `None` for a request that is not stored.
    fn request_facts(
        &self,
        request: RequestId,
    ) -> impl Future<Output = Result<Option<RequestFacts>, StoreError>> + Send;

    /// Records one vote. Sent again, it finds its id and returns the present answer.
    fn record_vote(
        &self,
        vote: Vote,
    ) -> impl Future<Output = Result<VoteRecord, StoreError>> + Send;

    /// Records the sequence of the message by which a woken session is queued again.
    fn record_requeue(
        &self,
        session: SessionId,
        stream_sequence: u64,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Begins or ends a freeze of all changes.
    fn record_freeze(
        &self,
        freeze: FreezeChange,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// The facts of a request on which rights depend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFacts {
    pub policy: String,
    pub quorum: u8,
    /// The channels that the plan permits.
    pub channels: Vec<String>,
    pub other_person: bool,
    /// The person who asked the question, if the session is one (`Tarsy-Asked-By`).
    pub asked_by: Option<String>,
}

/// A vote of a person, as its message and the rights of this worker's configuration have it.
#[derive(Clone, Debug, PartialEq)]
pub struct Vote {
    /// The same for every delivery of its message.
    pub id: Uuid,
    pub request: RequestId,
    /// The person; one person at two channels is one.
    pub person: String,
    /// The account at the channel.
    pub account: String,
    pub groups: Vec<String>,
    pub channel: Channel,
    /// The address from which the channel saw the person.
    pub address: Option<String>,
    pub choice: Choice,
    /// Masked and limited.
    pub comment: Option<String>,
    pub seen: CallHash,
    pub seen_updates: u32,
    /// The reason why the recorder refuses it; the store adds its own.
    pub refused: Option<Refusal>,
    /// The time since the message was stored in its stream.
    pub age: Duration,
}

/// The outcome of recording a vote.
#[derive(Clone, Debug, PartialEq)]
pub struct VoteRecord {
    /// `None` if it counts.
    pub refused: Option<Refusal>,
    /// The same vote was recorded before.
    pub is_repeated: bool,
    /// The outcome of the request, if it is decided now: a word of `ApprovalOutcome`.
    pub outcome: Option<String>,
    /// The alert to queue again, because the decision wakes its session.
    pub wakes: Option<IdleAlert>,
}

/// A freeze of all changes begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreezeChange {
    /// The same for every delivery of its message.
    pub id: Uuid,
    /// The time since the message was sent: a freeze that began later is not ended by it.
    pub age: Duration,
    pub person: String,
    pub change: Freeze,
    /// The reason, for every page.
    pub reason: Option<String>,
}

/// The state that a person wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freeze {
    /// Until this time, or until a person ends it.
    Begin(Option<DateTime<Utc>>),
    End,
}
