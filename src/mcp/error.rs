//! What goes wrong between tarsy and an MCP server.

use std::time::Duration;

/// Why something about MCP did not work. Texts name the server and never hold a secret of its configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that cannot be part of a tool's name.
    #[error("mcp server {name:?}: {fault}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// Two servers with one name.
    #[error("mcp server {0:?} is configured twice")]
    Twice(String),
    /// No server with this name is configured.
    #[error("there is no mcp server {0:?}")]
    Unknown(String),
    /// The program does not start.
    #[error("mcp server {server:?} does not start: {command}: {source}")]
    Spawn {
        /// The server.
        server: String,
        /// The program, without its arguments.
        command: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The program runs but does not complete the handshake.
    #[error("mcp server {server:?} does not speak: {fault}")]
    Handshake {
        /// The server.
        server: String,
        /// What happened instead.
        fault: String,
    },
    /// The server does not answer in time.
    #[error("mcp server {server:?} gave no answer to {what} within {} ms", .within.as_millis())]
    Silent {
        /// The server.
        server: String,
        /// What was asked.
        what: &'static str,
        /// How long it was given.
        within: Duration,
    },
    /// The server answered with an error, or went away.
    #[error("mcp server {server:?}: {what} failed: {fault}")]
    Request {
        /// The server.
        server: String,
        /// What was asked.
        what: &'static str,
        /// What happened instead.
        fault: String,
    },
    /// The evidence server cannot go on.
    #[error("evidence server: {0}")]
    Serve(String),
}
