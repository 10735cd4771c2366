//! The subject of a message from the loop to the model.

use serde::{Deserialize, Serialize};

/// The subject of a message, if a decision depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// The answer before it has these faults and was not taken yet: the next one counts as it is.
    Answer(Vec<Fault>),
    /// The time that has passed since the message above.
    Waited,
}

/// A fault of a final answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Fault {
    /// Tools are offered, and none was called.
    NotLooked,
    /// The answer names no cause in any form.
    NoCause,
    /// A tool has answered, and cause and evidence cite no result.
    NoSource,
    /// Cause or evidence cite an event that is no result.
    UnknownSource,
    /// Cause or evidence have a number or a time that nothing they cite has.
    Unsupported,
}

crate::words!(pub Fault, pub ALL);
