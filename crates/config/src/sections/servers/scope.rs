//! `scope` of a server: the sessions that share one connection to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sessions that share a connection to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerScope {
    /// All sessions of a worker share one connection.
    #[default]
    Worker,
    /// Each session has a separate connection, from its first call until the worker ends or releases it.
    Session,
}

impl ServerScope {
    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Session => "session",
        }
    }
}
