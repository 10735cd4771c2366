//! The transport to a server of `mcp_servers`: a program (`command`) or an address (`url`).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scope::ServerScope;
use crate::declared::forms::{As, Bytes, entries, form};
use crate::declared::keys_of;
use crate::declared::texts::{HeaderValue, Proxy, Templated, Text, VariableName};
use crate::read::reader::Field;
use crate::read::template::Template;
use crate::write::is_default;

/// Headers that the protocol or the connection sets.
const RESERVED_HEADERS: [&str; 10] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
];

/// Stands for the id of the session in a header of a server with `scope: session`.
pub const SESSION_IN_HEADERS: &str = "{{session}}";

const SSE: &str = "the transport sse of 2024 is not supported; use `type: http` with the address that the server has for \
                   streamable HTTP (often the same with /mcp instead of /sse), or its program with `command`";

/// The transport to a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "TransportKeys", untagged)]
pub enum McpTransport {
    Stdio(McpProgram),
    Http(McpAddress),
}

/// The keys of both transports.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct TransportKeys {
    /// The transport; by default the one that `command` or `url` needs.
    #[serde(rename = "type")]
    kind: Option<TransportType>,
    #[serde(flatten)]
    program: McpProgram,
    #[serde(flatten)]
    address: McpAddress,
}

/// A program that the worker runs as a child process and that communicates over its standard streams.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct McpProgram {
    /// The program.
    #[schemars(schema_with = "form::<Templated>")]
    pub command: Template,
    /// Its arguments.
    #[schemars(schema_with = "form::<Vec<Templated>>")]
    pub args: Vec<Template>,
    /// Variables that are added to the few that the worker passes on.
    #[schemars(schema_with = "entries::<Templated>")]
    pub env: BTreeMap<String, Template>,
    /// The user that runs it: a name, or `uid:gid`. Only a worker of the user root can change the user.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub user: Option<String>,
    /// The working directory.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub directory: Option<String>,
    /// The most memory in bytes that one process of it may have.
    #[serde(
        with = "Bytes::<{ 16 << 20 }, { 1 << 40 }>",
        skip_serializing_if = "is_default"
    )]
    pub max_memory: Option<u64>,
    /// The most files that one process of it may have open.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(min = 16, max = 1_048_576))]
    pub max_open_files: Option<u32>,
}

/// The address of a server over streamable HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct McpAddress {
    /// The address, such as `https://tools.example.com/mcp`.
    #[serde(with = "As::<Text>")]
    pub url: String,
    /// Sent with each request.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(schema_with = "entries::<HeaderValue>")]
    pub headers: BTreeMap<String, Template>,
    /// The variable with the bearer token.
    #[serde(with = "As::<VariableName>", skip_serializing_if = "is_default")]
    pub token_env: Option<String>,
    /// The file with the bearer token. It is read again when the server refuses the token.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub token_file: Option<String>,
    /// Certificate authorities in PEM, in addition to those of the system.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub ca_file: Option<String>,
    /// The address of a proxy; without one those of the environment are used.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(schema_with = "form::<Proxy>")]
    pub proxy: Option<Template>,
    /// The statuses with which the server has run no tool.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(inner(range(min = 400, max = 599)))]
    pub not_run_on: Vec<u16>,
}

/// The words of the key `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum TransportType {
    Stdio,
    Http,
    Sse,
}

impl From<TransportKeys> for McpTransport {
    fn from(keys: TransportKeys) -> Self {
        let is_remote = match keys.kind {
            Some(kind) => kind != TransportType::Stdio,
            None => !keys.address.url.is_empty() && keys.program.command.as_str().is_empty(),
        };
        if is_remote {
            Self::Http(keys.address)
        } else {
            Self::Stdio(keys.program)
        }
    }
}

impl McpTransport {
    pub(super) fn check(&self, field: &Field<'_>, scope: ServerScope) {
        let kind = field.get("type");
        let kind = kind.filter(|field| field.resolved().as_deref() == Some("sse"));
        if let Some(field) = kind {
            field.fault(SSE.to_owned());
        }
        let (foreign, needed, accepted) = match self {
            Self::Http(_) => (keys_of::<McpProgram>(), "url", ADDRESS),
            Self::Stdio(_) => (keys_of::<McpAddress>(), "command", PROGRAM),
        };
        if !field.has(needed) {
            field.missing(needed, accepted);
        }
        for field in foreign.iter().filter_map(|key| field.get(key)) {
            field.fault(format!(
                "not for a server with `{needed}`; a server has either `command` or `url`"
            ));
        }
        if let Self::Http(address) = self {
            check_address(field);
            check_placeholders(&address.headers, field, scope);
        }
    }

    /// The program of a server over stdio.
    pub fn program(&self) -> Option<&McpProgram> {
        match self {
            Self::Stdio(program) => Some(program),
            Self::Http(_) => None,
        }
    }

    /// The address of a server over HTTP.
    pub fn address(&self) -> Option<&McpAddress> {
        match self {
            Self::Stdio(_) => None,
            Self::Http(address) => Some(address),
        }
    }
}

const PROGRAM: &str = "the program that serves MCP on its standard streams, or url";
const ADDRESS: &str = "the address of the server, such as https://tools.example.com/mcp";

/// Reports a text that is no address, a second token, and names of headers that cannot be sent.
fn check_address(field: &Field<'_>) {
    // A fault of its variables is reported already.
    if let Some(url) = field.get("url").filter(|url| url.resolved().is_some()) {
        url.url();
    }
    if let (Some(_), Some(file)) = (field.get("token_env"), field.get("token_file")) {
        file.fault("a second token; accepted: either token_env or token_file".to_owned());
    }
    let headers = field.get("headers").filter(Field::is_map);
    for (name, field) in headers.iter().flat_map(Field::entries) {
        let is_name = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if !is_name {
            field.fault("not the name of a header; accepted: letters, digits, - and _".to_owned());
        } else if RESERVED_HEADERS.contains(&name.to_lowercase().as_str()) {
            field.fault("the protocol sets this header; leave it out".to_owned());
        }
    }
}

/// Reports `{{…}}` that stands for nothing, and `{{session}}` of a server whose connection many sessions share.
fn check_placeholders(headers: &BTreeMap<String, Template>, field: &Field<'_>, scope: ServerScope) {
    let fields = field.get("headers").filter(Field::is_map);
    for (name, field) in fields.iter().flat_map(Field::entries) {
        let text = headers.get(&name).map_or("", Template::as_str);
        let mut named = placeholders(text);
        if named.any(|named| named != SESSION_IN_HEADERS) {
            field.fault(format!(
                "an unknown {{{{…}}}}; accepted: {SESSION_IN_HEADERS}, the id of the session"
            ));
        } else if text.contains(SESSION_IN_HEADERS) && scope == ServerScope::Worker {
            field.fault(format!(
                "{SESSION_IN_HEADERS} needs `scope: session`: all sessions of a worker share this connection"
            ));
        }
    }
}

/// The parts `{{…}}` of a text, with their braces.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let begins = text.match_indices("{{");
    begins.filter_map(|(begin, _)| {
        let rest = text.get(begin..)?;
        rest.get(..rest.find("}}")? + "}}".len())
    })
}
