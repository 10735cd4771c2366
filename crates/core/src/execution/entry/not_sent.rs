//! The reason why a tool call was not sent.

use serde::{Deserialize, Serialize};

/// The reason why a call got a result without being sent to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum NotSent {
    /// The arguments are no JSON object, or do not fit the schema of the tool.
    UnfitArguments,
    /// The server could not be reached, or had no room for the call.
    Unavailable,
    /// The time of the iteration, or that of the session for calls, was used up.
    NoTime,
    /// The answer has more calls than one may have, or the agent more sub-agents.
    TooMany,
    /// The same call was made too often.
    Repeated,
    /// The original arguments are masked, and the worker that knew them has stopped.
    Masked,
    /// The agent has no such tool.
    UnknownTool,
    /// A person has not approved it in time, or could not judge it.
    NotApproved,
    /// Operators have frozen all changes.
    Frozen,
    /// The provider has refused the tool.
    #[serde(rename = "refused_by_provider")]
    #[strum(serialize = "refused_by_provider")]
    Refused,
}

crate::words!(pub NotSent);
