//! A tool that a provider does not accept.

use serde::{Deserialize, Serialize};

/// A tool that an answer was made without, because the provider had refused the request with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedTool {
    /// The full name, `server.tool`.
    pub tool: String,
    /// The words of the provider, for people.
    pub reason: String,
}
