//! Requests for approvals, votes and freezes, as people see them.

use chrono::{DateTime, Utc};
use diesel::prelude::Queryable;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::AlertUpdateReport;
use super::stored::{Stored, StoredOption};
use tarsy_core::alert::Severity;
use tarsy_core::approvals::{CallHash, RequestId};
use tarsy_core::clock::Moment;
use tarsy_core::ids::{ExecutionId, SessionId};

/// A filter for the list of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalFilter {
    /// The largest number of requests.
    pub limit: u32,
    pub requests: Requests,
    /// Selects requests of this session.
    pub session: Option<SessionId>,
    /// Selects requests that were made at this time or later, by the database's clock.
    pub since: Option<Moment>,
}

/// The requests that a list has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Requests {
    /// Those that people can decide now, the oldest first.
    #[default]
    Open,
    /// All, the newest first.
    All,
}

tarsy_core::words!(pub Requests, pub ALL);

/// The progress of a request, by the clock of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum RequestState {
    /// People can decide.
    Open,
    /// People have decided, and the session has not acted on it yet.
    Decided,
    /// Its time has passed, and the session has not acted on it yet.
    Expired,
    /// The session has ended before.
    Ended,
    /// The session has acted on it: `closed_as` is its outcome.
    Closed,
}

tarsy_core::words!(pub RequestState, pub ALL);

/// A request, as a list shows it.
#[derive(Clone, Debug, PartialEq, Queryable, Serialize)]
pub struct ApprovalRow {
    #[diesel(deserialize_as = Stored<SessionId>)]
    pub session_id: SessionId,
    /// The number of the event that asks; with the session it names the request.
    pub event: i32,
    #[diesel(deserialize_as = Stored<RequestState>)]
    pub state: RequestState,
    /// The full name, `server.tool`.
    pub tool: String,
    pub policy: String,
    #[diesel(deserialize_as = Stored<CallHash>)]
    pub call_sha256: CallHash,
    /// The number of different people who have to approve.
    pub quorum: i16,
    /// The number of people who have approved.
    pub votes: i16,
    /// The people whose votes counted; after a denial the one who denied.
    pub decided_by: Vec<String>,
    /// The decision of people: `approved`, `denied` or `denied_session`.
    pub outcome: Option<String>,
    pub outcome_at: Option<DateTime<Utc>>,
    /// The text of the person whose vote decided.
    pub comment: Option<String>,
    pub asked_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    pub closed_at: Option<DateTime<Utc>>,
    /// The outcome in the journal: a word of `ApprovalOutcome`, or `lost` where a loss of commits took it.
    pub closed_as: Option<String>,
    /// The title of the alert.
    pub title: Option<String>,
    #[diesel(deserialize_as = StoredOption<Severity>)]
    pub severity: Option<Severity>,
    pub chain: String,
    /// The number of the last update of the alert: a vote names the one that its person saw.
    pub updates: i32,
}

impl ApprovalRow {
    /// The name of the request.
    pub fn id(&self) -> RequestId {
        RequestId {
            session: self.session_id,
            event: u32::try_from(self.event).unwrap_or_default(),
        }
    }
}

/// Everything that a person sees before they decide.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ApprovalDetail {
    #[serde(flatten)]
    pub row: ApprovalRow,
    #[serde(flatten)]
    pub call: AskedCall,
    pub alert: AskedAlert,
    /// The changes of the alert, in order.
    pub alert_updates: Vec<AlertUpdateReport>,
    /// The results that the answer cites.
    pub evidence: Vec<CitedResult>,
    /// The votes about this request, in order; also those that did not count.
    pub votes_cast: Vec<VoteReport>,
    /// The other requests of the session, in order.
    pub others: Vec<OtherRequest>,
    /// The present freeze of all changes: no approval counts meanwhile.
    pub freeze: Option<FreezeReport>,
    /// The address of the request's page, if `web.public_url` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The call of a request.
#[derive(Clone, Debug, PartialEq, Queryable, Serialize)]
pub struct AskedCall {
    #[diesel(deserialize_as = Stored<ExecutionId>)]
    pub execution_id: ExecutionId,
    /// The agent that calls; absent if its row is gone.
    pub agent: Option<String>,
    pub call_id: String,
    /// As they will be sent, byte for byte.
    pub arguments: String,
    /// The text of the answer that asks, masked: the words of a model.
    pub why: String,
    /// The place of each value of the arguments in the alert and in results.
    pub origins: Value,
    /// The seconds from the decision in which the call may be sent.
    pub valid_for_secs: f64,
    /// The effect of a resolution of the alert: `withdraw` or `keep`.
    pub on_resolved: String,
    /// Whether the person who asked the question may not approve.
    pub other_person: bool,
    /// The channels on which a decision counts.
    pub channels: Vec<String>,
}

/// The alert of the session that asks.
#[derive(Clone, Debug, PartialEq, Queryable, Serialize)]
pub struct AskedAlert {
    pub title: Option<String>,
    #[diesel(deserialize_as = StoredOption<Severity>)]
    pub severity: Option<Severity>,
    pub source: Option<String>,
    /// The alert, cleaned and masked.
    pub body: Option<String>,
    /// Whether its last update says that it is resolved.
    pub is_resolved: bool,
    /// The person who asked, if the session answers a question.
    pub asked_by: Option<String>,
    /// The number of the session's last event.
    pub last_seq: i32,
    /// The session waits for people, without a worker.
    pub is_waiting: bool,
}

/// A result that the answer cites.
#[derive(Clone, Debug, PartialEq, Eq, Queryable, Serialize)]
pub struct CitedResult {
    pub event: i32,
    /// The full name of the tool; absent in old timelines.
    pub tool: Option<String>,
    /// The first 4,000 characters, masked.
    pub content: String,
}

/// Another request of the same session.
#[derive(Clone, Debug, PartialEq, Eq, Queryable, Serialize)]
pub struct OtherRequest {
    pub event: i32,
    #[diesel(deserialize_as = Stored<RequestState>)]
    pub state: RequestState,
    pub tool: String,
    /// Whether it is the same call: tool, schema and arguments.
    pub is_same_call: bool,
    pub outcome: Option<String>,
    pub closed_as: Option<String>,
    /// The outcome of the call itself, if it was sent: `done`, `failed`, or `lost` if it may have changed something
    /// although it has no result.
    pub call_state: Option<String>,
}

/// A vote of a person.
#[derive(Clone, Debug, PartialEq, Queryable, Serialize)]
pub struct VoteReport {
    pub vote_id: Uuid,
    #[diesel(deserialize_as = Stored<SessionId>)]
    pub session_id: SessionId,
    /// The number of the event that asks.
    pub event: i32,
    pub at: DateTime<Utc>,
    pub person: String,
    /// The account at the channel.
    pub account: String,
    pub groups: Vec<String>,
    pub channel: String,
    /// The address from which the channel saw the person.
    pub address: Option<String>,
    /// `approve`, `deny` or `deny_session`.
    pub verdict: String,
    pub comment: Option<String>,
    /// The hash of the call that the person saw.
    #[diesel(deserialize_as = Stored<CallHash>)]
    pub seen_sha256: CallHash,
    /// The last update of the alert that the person saw.
    pub seen_updates: i32,
    /// The reason why it does not count, a word of `Refusal`.
    pub refused: Option<String>,
}

/// A vote with its request, for an audit.
#[derive(Clone, Debug, PartialEq, Queryable, Serialize)]
pub struct ExportedVote {
    #[serde(flatten)]
    pub vote: VoteReport,
    /// The full name of the tool; absent, as all that follows, if the request is gone.
    pub tool: Option<String>,
    pub policy: Option<String>,
    pub arguments: Option<String>,
    pub quorum: Option<i16>,
    pub asked_at: Option<DateTime<Utc>>,
    pub outcome: Option<String>,
    pub closed_at: Option<DateTime<Utc>>,
    pub closed_as: Option<String>,
}

/// A page of an export of votes, in the order of their times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VotePage {
    /// The largest number of votes.
    pub limit: u32,
    /// Selects votes that were recorded at this time or later, by the database's clock.
    pub since: Option<Moment>,
    /// The last vote of the page before.
    pub after: Option<Uuid>,
}

/// A freeze of all changes.
#[derive(Clone, Debug, PartialEq, Eq, Queryable, Serialize)]
pub struct FreezeReport {
    pub freeze_id: Uuid,
    pub at: DateTime<Utc>,
    pub person: String,
    pub reason: Option<String>,
    /// The end that was set at the beginning.
    pub until: Option<DateTime<Utc>>,
    /// The end by a person.
    pub ended_at: Option<DateTime<Utc>>,
    pub ended_by: Option<String>,
}
