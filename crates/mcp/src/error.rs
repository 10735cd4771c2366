//! The errors of MCP servers and their connections.

use std::time::Duration;

/// An error of an MCP server. The texts name the server and contain no secret of its configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name cannot be part of a tool's name.
    #[error("mcp server {name:?}: {fault}")]
    Name { name: String, fault: &'static str },
    /// Two servers have the same name.
    #[error("mcp server {0:?} is configured twice")]
    Duplicate(String),
    /// No server with this name is configured.
    #[error("there is no mcp server {0:?}")]
    Unknown(String),
    /// The program cannot be started.
    #[error("mcp server {server:?} does not start: {command}: {source}")]
    Spawn {
        server: String,
        /// Without arguments.
        command: String,
        source: std::io::Error,
    },
    /// The program runs but does not complete the handshake.
    #[error("mcp server {server:?}: protocol error: {fault}")]
    Handshake { server: String, fault: String },
    /// A call was not sent, because too many others were in flight for all of its time.
    #[error("mcp server {server:?} is busy: {calls} calls in flight")]
    Busy { server: String, calls: u32 },
    /// The server does not answer in time.
    #[error("mcp server {server:?}: no answer to {request} within {} ms", .within.as_millis())]
    NoAnswer {
        server: String,
        request: &'static str,
        within: Duration,
    },
    /// The server answered with an error, or its connection ended.
    #[error("mcp server {server:?}: {request} failed: {fault}")]
    Request {
        server: String,
        request: &'static str,
        fault: String,
    },
    /// The evidence server failed.
    #[error("evidence server: {0}")]
    Serve(String),
}

impl Error {
    /// The server does not complete the handshake in time.
    pub(super) fn no_handshake(server: String, within: Duration) -> Self {
        Self::NoAnswer {
            server,
            request: "the handshake",
            within,
        }
    }
}
