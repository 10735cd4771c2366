//! `VerdictMessage`, the body of a message by which a person judges an analysis.

use serde::{Deserialize, Serialize};

use super::Rating;
use crate::approvals::Voter;

/// A verdict, as its channel publishes it on `tarsy.verdicts.<channel>…`. The subject names the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictMessage {
    /// The form of the message: 1.
    pub v: u32,
    pub verdict: Rating,
    /// The real cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The words about what the person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The person, as the channel knows them; the command line has its person in the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Voter>,
    /// The address from which the channel saw the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The address for the answer, from Slack only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_url: Option<String>,
}
