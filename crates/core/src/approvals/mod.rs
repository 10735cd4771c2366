//! Approvals: a person decides about one exact call before it is sent. The values that a request, a decision and its
//! record share.

mod arguments;
mod decision;
mod hash;
mod origins;
pub mod slack;
mod subject;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::SessionId;

pub use arguments::{MAX_ARGUMENTS_BYTES, is_readable};
pub use decision::{DecisionMessage, FreezeMessage, FreezeWord, MESSAGE_FORM, Voter};
pub use hash::CallHash;
pub use origins::{Origin, Origins, SearchedText};
pub use subject::{PeopleSubject, Sender, Topic};

/// A request for the approval of one call: the number of the event that asks for it names it within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    pub session: SessionId,
    pub event: u32,
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.session, self.event)
    }
}

/// The text is no id of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no request; accepted: <session>/<event>")]
pub struct NoRequestId(pub String);

impl FromStr for RequestId {
    type Err = NoRequestId;

    fn from_str(text: &str) -> Result<Self, NoRequestId> {
        let parts = text.split_once('/');
        let parsed = parts.and_then(|(session, event): (&str, &str)| {
            Some(Self {
                session: SessionId(Uuid::try_parse(session).ok()?),
                event: event.parse().ok()?,
            })
        });
        parsed.ok_or_else(|| NoRequestId(text.to_owned()))
    }
}

/// The decision of a person about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Choice {
    /// Send the call as it was shown.
    Approve,
    /// Do not send it.
    Deny,
    /// Do not send it, nor any later call of the tool in this investigation.
    DenySession,
}

crate::words!(pub Choice, pub ALL);

/// The channel by which a decision has come. The subject of the message says it, so a client of one channel cannot
/// speak for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Channel {
    /// A page, behind the sign-on of the web server.
    Web,
    /// A button of a Slack message.
    Slack,
    /// `tarsy approvals`, with a broker user of its own for each person.
    Cli,
    /// A link for one person.
    Link,
    /// A decision of a drill; only its workers accept it.
    Drill,
}

crate::words!(pub Channel, pub ALL);

impl Channel {
    /// The channel with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|channel| channel.as_str() == word)
    }
}

/// The reason why a vote does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Refusal {
    /// The policy does not accept the channel.
    WrongChannel,
    /// The signature of the channel is missing or wrong.
    BadSignature,
    /// No person is known by this account, and the policy needs a known one.
    UnknownPerson,
    /// The person is in no group of the approvers.
    NoRight,
    /// The groups of the person could not be asked for in time.
    NoGroups,
    /// The person has asked the question whose call this is.
    OwnQuestion,
    /// No approval counts while changes are frozen.
    Frozen,
    /// The session has ended or is being cancelled.
    Ended,
    /// The person has approved it before.
    Again,
    /// The request was decided or closed before.
    Decided,
    /// The time of the request has passed.
    Expired,
    /// The person saw another call.
    OtherCall,
    /// The alert has changed since the person looked.
    Changed,
    /// The decision waited too long before it was recorded.
    Late,
    /// The request has too many votes.
    TooMany,
    /// The store has no such request.
    Unknown,
}

crate::words!(pub Refusal, pub ALL);
