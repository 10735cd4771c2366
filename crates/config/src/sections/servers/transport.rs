//! The transport to a server of `mcp_servers`: a program (`command`) or an address (`url`).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::read::reader::{Field, Map};
use crate::read::template::Template;
use crate::write::{bytes, is_default, written};

/// The keys of a server over stdio.
const PROGRAM_KEYS: [&str; 7] = [
    "command",
    "args",
    "env",
    "user",
    "directory",
    "max_memory",
    "max_open_files",
];
/// The keys of a server over HTTP.
const ADDRESS_KEYS: [&str; 7] = [
    "url",
    "headers",
    "token_env",
    "token_file",
    "ca_file",
    "proxy",
    "not_run_on",
];
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

const SSE: &str = "the transport sse of 2024 is not supported; use `type: http` with the address that the server has for \
                   streamable HTTP (often the same with /mcp instead of /sse), or its program with `command`";

/// The transport to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum McpTransport {
    Stdio(McpProgram),
    Http(McpAddress),
}

/// A program that the worker runs as a child process and that communicates over its standard streams.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct McpProgram {
    pub command: Template,
    pub args: Vec<Template>,
    /// Variables that are added to the few that the worker passes on.
    pub env: BTreeMap<String, Template>,
    /// The user that runs it: a name, or `uid:gid`. Only a worker of the user root can change the user.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub user: Option<String>,
    /// The working directory.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub directory: Option<String>,
    /// The most memory in bytes that one process of it may have.
    #[serde(serialize_with = "bytes", skip_serializing_if = "is_default")]
    pub max_memory: Option<u64>,
    /// The most files that one process of it may have open.
    #[serde(skip_serializing_if = "is_default")]
    pub max_open_files: Option<u32>,
}

/// The address of a server over streamable HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct McpAddress {
    #[serde(serialize_with = "written")]
    pub url: String,
    /// Sent with each request.
    #[serde(skip_serializing_if = "is_default")]
    pub headers: BTreeMap<String, Template>,
    /// The variable with the bearer token.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub token_env: Option<String>,
    /// The file with the bearer token. It is read again when the server refuses the token.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub token_file: Option<String>,
    /// Certificate authorities in PEM, in addition to those of the system.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub ca_file: Option<String>,
    /// The address of a proxy; without one those of the environment are used.
    #[serde(skip_serializing_if = "is_default")]
    pub proxy: Option<Template>,
    /// The statuses with which the server has run no tool.
    #[serde(skip_serializing_if = "is_default")]
    pub not_run_on: Vec<u16>,
}

/// The words of the key `type`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Http,
    Sse,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Stdio, Self::Http, Self::Sse];

    fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
        }
    }
}

impl McpTransport {
    pub(super) fn of(map: &mut Map<'_>) -> Self {
        let named = map.get("type");
        let kind = named
            .as_ref()
            .and_then(|field| field.choice(&Kind::ALL, Kind::as_str));
        if let Some(field) = named.filter(|_| kind == Some(Kind::Sse)) {
            field.fault(SSE.to_owned());
        }
        let is_remote = match kind {
            Some(kind) => kind != Kind::Stdio,
            None => map.has("url") && !map.has("command"),
        };
        let (transport, foreign, needed) = if is_remote {
            (Self::Http(McpAddress::of(map)), &PROGRAM_KEYS[..], "url")
        } else {
            (
                Self::Stdio(McpProgram::of(map)),
                &ADDRESS_KEYS[..],
                "command",
            )
        };
        for key in foreign {
            if let Some(field) = map.get(key) {
                field.fault(format!(
                    "not for a server with `{needed}`; a server has either `command` or `url`"
                ));
            }
        }
        transport
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

impl McpProgram {
    fn of(map: &mut Map<'_>) -> Self {
        let command = map.required(
            "command",
            "the program that serves MCP on its standard streams, or url",
        );
        Self {
            command: command
                .and_then(|field| field.template())
                .unwrap_or_default(),
            args: map.list("args", Field::template).unwrap_or_default(),
            env: map
                .get("env")
                .map(|field| templates(&field))
                .unwrap_or_default(),
            user: map.text("user"),
            directory: map.text("directory"),
            max_memory: map.bytes("max_memory", 16 << 20..=1 << 40),
            max_open_files: map.number("max_open_files", 16..=1 << 20),
        }
    }
}

impl McpAddress {
    fn of(map: &mut Map<'_>) -> Self {
        let url = map.required(
            "url",
            "the address of the server, such as https://tools.example.com/mcp",
        );
        let (token_env, token_file) = (map.get("token_env"), map.get("token_file"));
        if let Some(file) = token_file.as_ref().filter(|_| token_env.is_some()) {
            file.fault("a second token; accepted: either token_env or token_file".to_owned());
        }
        Self {
            url: url.and_then(|field| field.url()).unwrap_or_default(),
            headers: map
                .get("headers")
                .map(|field| headers(&field))
                .unwrap_or_default(),
            token_env: token_env.and_then(|field| field.variable_name()),
            token_file: token_file.and_then(|field| field.text()),
            ca_file: map.text("ca_file"),
            proxy: map.get("proxy").and_then(|field| proxy(&field)),
            not_run_on: map.list("not_run_on", status).unwrap_or_default(),
        }
    }
}

fn templates(field: &Field<'_>) -> BTreeMap<String, Template> {
    field
        .entries()
        .into_iter()
        .filter_map(|(name, field)| Some((name, field.template()?)))
        .collect()
}

/// The headers that may be sent. No fault shows a value, which may be a secret.
fn headers(field: &Field<'_>) -> BTreeMap<String, Template> {
    let header = |(name, field): (String, Field<'_>)| {
        let is_name = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if !is_name {
            field.fault("not the name of a header; accepted: letters, digits, - and _".to_owned());
        } else if RESERVED_HEADERS.contains(&name.to_lowercase().as_str()) {
            field.fault("the protocol sets this header; leave it out".to_owned());
        }
        let value = field.text()?;
        if value.chars().any(|c| !(c.is_ascii_graphic() || c == ' ')) {
            field.fault(
                "not the value of a header; accepted: visible ASCII characters and blanks"
                    .to_owned(),
            );
        }
        Some((name, field.template()?))
    };
    field.entries().into_iter().filter_map(header).collect()
}

/// The address of a proxy; its fault shows no value, because it may contain a password.
fn proxy(field: &Field<'_>) -> Option<Template> {
    let address = field.text()?;
    if address.starts_with("http://") || address.starts_with("https://") {
        return field.template();
    }
    field.fault("not the address of a proxy; accepted: http://… or https://…".to_owned());
    None
}

/// A status that is no success.
fn status(field: &Field<'_>) -> Option<u16> {
    field
        .number(400..=599)
        .and_then(|number| u16::try_from(number).ok())
}
