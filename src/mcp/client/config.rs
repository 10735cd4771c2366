//! The configuration of a server: how it is reached, and which of its tools a model may call.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::config::McpServer;

/// The configuration of an MCP server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The first part of its tools' names.
    pub name: String,
    pub transport: Transport,
    /// The time limit of a call without an answer or a report of progress.
    pub tool_timeout: Duration,
    /// The time limit of a call whose server reports progress.
    pub max_tool_timeout: Duration,
    /// Calls that are in flight at the same time; further ones wait.
    pub max_concurrent_calls: u32,
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

impl ServerConfig {
    /// A server with the settings that it has when a file names only its transport.
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self {
            name: name.into(),
            transport,
            tool_timeout: McpServer::TOOL_TIMEOUT,
            max_tool_timeout: McpServer::MAX_TOOL_TIMEOUT,
            max_concurrent_calls: McpServer::MAX_CONCURRENT_CALLS,
            read_only: Vec::new(),
            allowed: Vec::new(),
            tools: None,
            deny: Vec::new(),
            trust_hints: true,
        }
    }
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum Transport {
    /// A child process of the worker that communicates over its standard streams.
    Stdio(StdioConfig),
}

/// The program of a server over stdio.
#[derive(Clone, Default)]
pub struct StdioConfig {
    pub command: String,
    pub args: Vec<String>,
    /// Added to a few variables without secrets that the worker passes on.
    pub env: BTreeMap<String, String>,
}

impl fmt::Debug for StdioConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and environment may contain secrets.
        f.debug_struct("StdioConfig").field("command", &self.command).finish_non_exhaustive()
    }
}
