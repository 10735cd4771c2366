//! The summary of a long tool result.

use serde::{Deserialize, Serialize};

use super::usage::Usage;

/// The summary of a result, or why there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The call with the result.
    pub call_id: String,
    /// The text that replaces the result; empty if there is none.
    #[serde(default)]
    pub content: String,
    /// The reason why there is none, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The tokens of its model call.
    #[serde(default, skip_serializing_if = "is_unused")]
    pub usage: Usage,
}

fn is_unused(usage: &Usage) -> bool {
    *usage == Usage::default()
}
