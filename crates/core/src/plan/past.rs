//! The plan of earlier investigations: which of them an agent may know.

use serde::{Deserialize, Serialize};

/// The earlier investigations that an agent may know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastPlan {
    /// The largest number of earlier investigations of the same alert in the first message; 0 for none.
    pub given: u32,
    /// The age in days up to which an investigation counts, where a call names none.
    pub days: u32,
    pub scope: PastScope,
}

/// The investigations that the tool finds. Those of the same alert are found in every chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum PastScope {
    /// Those of the session's own chain.
    #[default]
    Chain,
    /// Those of every chain.
    All,
}

crate::words!(pub PastScope, pub ALL);
