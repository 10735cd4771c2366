//! `DecisionMessage` and `FreezeMessage`, the bodies of messages by which people decide.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{CallHash, Choice};

/// The form of these messages, in their field `v`.
pub const MESSAGE_FORM: u32 = 1;

/// A decision, as its channel publishes it on `tarsy.decisions.<channel>…`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionMessage {
    /// The form of the message: [`MESSAGE_FORM`].
    pub v: u32,
    /// The request, `<session>/<event>`.
    pub request: String,
    /// The hash of the call that the person saw.
    pub call: CallHash,
    /// The number of the last update of the alert that the person saw.
    #[serde(default)]
    pub seen_updates: u32,
    /// The decision.
    pub verdict: Choice,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The person, as the channel knows them; the command line has its person in the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Voter>,
    /// The address from which the channel saw the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The address at Slack for the answer to the person who pressed a button.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_url: Option<String>,
}

/// The begin or the end of a freeze of all changes, on `tarsy.decisions.<channel>….freeze`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreezeMessage {
    /// The form of the message: [`MESSAGE_FORM`].
    pub v: u32,
    pub freeze: FreezeWord,
    /// The end of the freeze; without it a person has to end it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The person, as the web server knows them; the command line has its person in the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Voter>,
    /// The address from which the channel saw the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// The change that a [`FreezeMessage`] asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FreezeWord {
    Begin,
    End,
}

/// A person, as a channel knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Voter {
    pub name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}
