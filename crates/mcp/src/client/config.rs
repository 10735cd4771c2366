//! The configuration of a server: its section, and how it is reached with the values of this process.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use tarsy_config::{McpAddress, McpServer, McpTransport, Worker};
use tarsy_http::outgoing::token::TokenSource;

/// An MCP server: its section of the configuration, with the values that the section refers to.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The first part of its tools' names.
    pub name: String,
    pub transport: Transport,
    /// The connections of single sessions that may exist at the same time, closing ones included.
    pub max_session_connections: u32,
    /// The section as it was read. Its transport names variables, whose values `transport` has.
    pub settings: McpServer,
}

impl ServerConfig {
    /// A server with the settings that it has when a file names only its transport.
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self {
            name: name.into(),
            transport,
            max_session_connections: Worker::default().slots,
            settings: McpServer::new(McpTransport::Http(McpAddress::default())),
        }
    }
}

/// The transport to a server.
#[derive(Clone, Debug)]
pub enum Transport {
    /// A child process of the worker that communicates over its standard streams.
    Stdio(StdioConfig),
    /// A server over streamable HTTP.
    Http(HttpConfig),
}

/// The program of a server over stdio.
#[derive(Clone, Default)]
pub struct StdioConfig {
    pub command: String,
    pub args: Vec<String>,
    /// Added to a few variables without secrets that the worker passes on.
    pub env: BTreeMap<String, String>,
    /// The user that the child runs as; without one the worker's own.
    pub user: Option<User>,
    /// The working directory of the child; without one the worker's own.
    pub directory: Option<PathBuf>,
    /// The most memory in bytes (`RLIMIT_DATA`) that the child may have.
    pub max_memory_bytes: Option<u64>,
    /// The most files that the child may have open.
    pub max_open_files: Option<u64>,
}

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
    /// The name and the home directory, where the system knows them.
    pub account: Option<Account>,
}

/// A named user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    pub home: PathBuf,
}

/// The address of a server over HTTP.
#[derive(Clone, Default)]
pub struct HttpConfig {
    pub url: String,
    /// Sent with each request.
    pub headers: BTreeMap<String, String>,
    /// Sent with each request as a bearer token.
    pub token: Option<TokenSource>,
    /// Certificate authorities in PEM, in addition to those of the system.
    pub ca_file: Option<PathBuf>,
    /// The address of a proxy; without one those of the environment are used.
    pub proxy: Option<String>,
    /// The statuses of HTTP with which the server has run no tool, so that any call is sent once more.
    pub not_run_on: Vec<u16>,
}

impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers and proxy may contain secrets.
        f.debug_struct("HttpConfig")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for StdioConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and environment may contain secrets.
        f.debug_struct("StdioConfig")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}
