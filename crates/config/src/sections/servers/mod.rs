//! `mcp_servers`: the servers that offer tools, and the tools that models may call.

mod approve;
mod probe;
mod scope;
pub(crate) mod transport;

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::probe::ToolProbe;
pub use self::scope::ServerScope;
use self::transport::{McpProgram, McpTransport, TransportKeys};
use crate::declared::forms::{As, Secs, tokens};
use crate::declared::texts::Text;
use crate::read::reader::Field;
use crate::write::is_default;
use tarsy_core::read_result;

/// An MCP server: how the worker reaches it, and which of its tools models may call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct McpServer {
    #[serde(flatten)]
    #[schemars(with = "TransportKeys")]
    pub transport: McpTransport,
    /// The systems that it shows, for the model: one line of at most 200 characters. By default none.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub about: String,
    /// The time limit of a call without an answer or a report of progress.
    #[serde(with = "As::<Secs<1, 3_600>>")]
    pub tool_timeout: Duration,
    /// The sessions that share a connection.
    pub scope: ServerScope,
    /// Whether no investigation that uses the server begins while it is unavailable.
    pub required: bool,
    /// The time limit of a call whose server reports progress.
    #[serde(with = "As::<Secs<1, 3_600>>")]
    pub max_tool_timeout: Duration,
    /// Calls of a worker that are in flight at the same time; further ones wait.
    #[schemars(range(min = 1, max = 1_000))]
    pub max_concurrent_calls: u32,
    /// Tools (without the server's name) that count as read-only even if the server does not declare it.
    #[serde(with = "As::<Vec<Text>>")]
    pub read_only: Vec<String>,
    /// Tools that a model may call although they may change something. Each such call is sent at most once.
    #[serde(with = "As::<Vec<Text>>")]
    pub allow: Vec<String>,
    /// Tools whose calls wait for a person, each with its policy.
    #[serde(with = "approve", skip_serializing_if = "is_default")]
    #[schemars(schema_with = "approve::schema")]
    pub approve: BTreeMap<String, Vec<String>>,
    /// If present, only these tools are offered, as far as the other keys permit.
    #[serde(with = "As::<Vec<Text>>", skip_serializing_if = "is_default")]
    pub tools: Option<Vec<String>>,
    /// Tools that are never offered; overrides the other keys.
    #[serde(with = "As::<Vec<Text>>")]
    pub deny: Vec<String>,
    /// Whether a tool counts as read-only if its server declares it.
    pub trust_hints: bool,
    /// A longer result is summarised by a model, in tokens; 0 for no summaries. By default the value of the agent.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(schema_with = "tokens::<0, 1_000_000>")]
    pub summarize_over: Option<u32>,
    /// Whether the headings of its results have facts. By default the value of the agent, as for the next two.
    #[serde(skip_serializing_if = "is_default")]
    pub facts: Option<bool>,
    /// Whether the repeated records of its logs are folded.
    #[serde(skip_serializing_if = "is_default")]
    pub fold: Option<bool>,
    /// Whether its JSON is made compact, with tables in the place of arrays.
    #[serde(skip_serializing_if = "is_default")]
    pub tables: Option<bool>,
    /// The tool that `tarsy doctor` calls; by default a read-only one without required arguments.
    #[serde(skip_serializing_if = "is_default")]
    pub probe: Option<ToolProbe>,
}

impl Default for McpServer {
    fn default() -> Self {
        Self::new(McpTransport::Stdio(McpProgram::default()))
    }
}

impl McpServer {
    /// The time limit of a call without progress, unless the configuration names another one.
    pub const TOOL_TIMEOUT: Duration = Duration::from_secs(60);
    /// The time limit of a call with progress, unless the configuration names another one.
    pub const MAX_TOOL_TIMEOUT: Duration = Duration::from_secs(600);
    /// The calls in flight, unless the configuration names another number: twice those of one session.
    pub const MAX_CONCURRENT_CALLS: u32 = 32;

    /// A server with the settings that it has when a file names only its transport.
    pub fn new(transport: McpTransport) -> Self {
        Self {
            transport,
            about: String::new(),
            scope: ServerScope::Worker,
            required: false,
            tool_timeout: Self::TOOL_TIMEOUT,
            max_tool_timeout: Self::MAX_TOOL_TIMEOUT,
            max_concurrent_calls: Self::MAX_CONCURRENT_CALLS,
            read_only: Vec::new(),
            allow: Vec::new(),
            approve: BTreeMap::new(),
            tools: None,
            deny: Vec::new(),
            trust_hints: true,
            summarize_over: None,
            facts: None,
            fold: None,
            tables: None,
            probe: None,
        }
    }

    pub(crate) fn read(name: &str, field: &Field<'_>) -> Self {
        if name == read_result::SERVER {
            field.fault(format!(
                "{name:?} is the name of the built-in tools; choose another one"
            ));
        } else if let Some(fault) = server_name_fault(name) {
            field.fault(format!(
                "{name:?}: {fault}: the name becomes a part of tool names"
            ));
        }
        field.declared_and_checked(Self::check)
    }

    fn check(&mut self, field: &Field<'_>) {
        self.transport.check(field, self.scope);
        self.check_approve(field);
        if let Some(fault) = about_fault(&self.about) {
            field.at("about").fault(fault.to_owned());
        }
        if !field.has("max_tool_timeout") {
            self.max_tool_timeout = Self::MAX_TOOL_TIMEOUT.max(self.tool_timeout);
        } else if self.max_tool_timeout < self.tool_timeout {
            field.at("max_tool_timeout").fault(
                "less than tool_timeout; accepted: the same or more, because progress extends a call".to_owned(),
            );
        }
    }
}

/// The longest text about a server, in characters.
const MAX_ABOUT_CHARS: usize = 200;

/// The reason why a text cannot be a line of the prompt; `None` when it can.
fn about_fault(about: &str) -> Option<&'static str> {
    if about.chars().any(char::is_control) {
        return Some("must be one line, without control characters");
    }
    let is_long = about.chars().nth(MAX_ABOUT_CHARS).is_some();
    is_long.then_some("has more than 200 characters")
}

/// The longest name of a server: providers accept 64 characters for `server__tool`, and a tool may need some of them
/// for a hash.
const MAX_NAME_BYTES: usize = 40;

/// The reason why a server cannot have this name; `None` when it can. The name becomes a part of the names of its
/// tools.
pub fn server_name_fault(name: &str) -> Option<&'static str> {
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Some("must begin with a letter");
    }
    if name.len() > MAX_NAME_BYTES {
        return Some("must have at most 40 characters");
    }
    if name.contains("__") || name.ends_with('_') {
        return Some("must not contain __ or end with _");
    }
    let is_plain = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    (!is_plain).then_some("may contain only letters, digits, _ and -")
}
