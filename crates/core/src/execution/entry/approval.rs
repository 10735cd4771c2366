//! The facts of an approval: a call that waits for a person, and the end of its waiting.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::approvals::{CallHash, Channel};

/// A call waits for a person. The number of its event names the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequested {
    pub call_id: String,
    /// The name of the policy.
    pub policy: String,
    /// The call as people see it.
    pub call_sha256: CallHash,
    /// The text of the answer that asks for the call, masked and cut.
    pub why: String,
    /// The numbers of the events that the answer cites.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<u32>,
}

/// The end of a request; also the reason why a call is not asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalEnded {
    pub call_id: String,
    pub outcome: ApprovalOutcome,
    /// The people whose votes counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// The text of the person who decided, masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The channel of the vote that decided, if a person has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// The time of the vote that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<DateTime<Utc>>,
    /// Seconds between the request and its end, by the database's clock; 0 for a call without a request.
    #[serde(default)]
    pub waited_secs: u64,
    /// The reason why the call is not asked about, if the outcome is [`ApprovalOutcome::NotAsked`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<AskFault>,
}

impl ApprovalEnded {
    /// The end of a request without votes.
    pub fn new(call_id: impl Into<String>, outcome: ApprovalOutcome) -> Self {
        Self {
            call_id: call_id.into(),
            outcome,
            by: Vec::new(),
            comment: None,
            channel: None,
            decided_at: None,
            waited_secs: 0,
            fault: None,
        }
    }

    /// The fact that a call is not asked about.
    pub fn not_asked(call_id: impl Into<String>, fault: AskFault) -> Self {
        Self {
            fault: Some(fault),
            ..Self::new(call_id, ApprovalOutcome::NotAsked)
        }
    }
}

/// The reason why a call is not asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskFault {
    /// Its arguments are masked: the person would approve the mask, and the original dies with its worker.
    Secret,
    /// A person cannot read the arguments as the tool will.
    Unreadable,
    /// The arguments do not fit the schema; the faults, for the model.
    Unfit(String),
    /// Too many calls wait, or the session is too old; the limit, for the model.
    TooMany(String),
}

/// The outcome of a request. Only `Approved` sends the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ApprovalOutcome {
    Approved,
    Denied,
    /// Denied with every later call of the tool in this session.
    DeniedSession,
    /// The time of the request has passed.
    Expired,
    /// The alert was resolved before.
    Withdrawn,
    /// The approval was too old when the call could be sent.
    Lapsed,
    /// The tool has changed since it was described to the model, or is not offered any more.
    ToolChanged,
    /// Operators have frozen all changes.
    Frozen,
    /// A person could not judge the call, or too many wait.
    NotAsked,
}

crate::words!(pub ApprovalOutcome, pub ALL);
