//! The configuration of a server.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The configuration of an MCP server over stdio.
#[derive(Clone)]
pub struct ServerConfig {
    /// The first part of its tools' names.
    pub name: String,
    pub command: String,
    pub args: Vec<String>,
    /// Added to a few variables without secrets that the worker passes on.
    pub env: BTreeMap<String, String>,
    /// The upper limit of every call's timeout.
    pub tool_timeout: Duration,
    /// Tools that are read-only although the server does not declare it.
    pub read_only: Vec<String>,
    /// Tools that are offered although they may change something.
    pub allowed: Vec<String>,
    /// If set, no other tools are offered.
    pub tools: Option<Vec<String>>,
    /// Tools that are never offered.
    pub deny: Vec<String>,
    /// Whether a tool is read-only when its server declares it.
    pub trust_hints: bool,
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and environment may contain secrets.
        f.debug_struct("ServerConfig").field("name", &self.name).field("command", &self.command).finish_non_exhaustive()
    }
}
