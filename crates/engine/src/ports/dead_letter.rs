//! Dead letters: alerts that are given up, each with its reason.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use tarsy_core::ids::SessionId;
use tarsy_core::intake::headers::InvalidSessionId;

/// The reason why an alert was given up. The word is part of the dead letter's subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum DeadReason {
    /// The body is not text.
    Undecodable,
    /// The body has no content.
    Empty,
    /// The body is larger than what is read.
    TooLarge,
    /// The id came before, with another body.
    UsedId,
    /// The header with the id holds no UUIDv7.
    InvalidId,
    /// The header with the chain names an unknown chain.
    UnknownChain,
    /// The header with tools names one that the chain does not offer.
    UnknownTools,
    /// The header with the parent names no investigation that is over.
    InvalidParent,
    /// Too many workers died at the same step of the alert.
    AttemptsExhausted,
}

tarsy_core::words!(pub DeadReason, pub ALL);

/// The reason why an alert is given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: DeadReason,
    /// The fault of this alert, for people.
    pub detail: String,
}

impl Refusal {
    /// The id that the alert's header chose belongs to another alert.
    pub fn used_id(id: SessionId) -> Self {
        Self {
            reason: DeadReason::UsedId,
            detail: format!("id {id} came before, with another body"),
        }
    }
}

impl From<InvalidSessionId> for Refusal {
    fn from(invalid: InvalidSessionId) -> Self {
        Self {
            reason: DeadReason::InvalidId,
            detail: invalid.to_string(),
        }
    }
}

/// An alert that was given up, as it is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    pub alert_id: SessionId,
    pub reason: DeadReason,
    /// The reason, for people.
    pub detail: String,
    /// The body as received; empty when it was too large to be kept.
    pub body: Vec<u8>,
    /// Allow-listed headers.
    pub headers: Value,
    /// The subject of its message.
    pub subject: String,
    /// Its sequence in the stream of alerts.
    pub stream_sequence: u64,
    /// The number of deliveries.
    pub deliveries: u32,
}
