//! The MCP client that calls tools, and the MCP server that replays the evidence of a drill.
//!
//! Only this module knows the protocol. It returns tool results as plain text without secrets.

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

mod client;
mod error;
pub mod evidence_server;

pub use client::{
    Account, ArgumentFit, HttpConfig, Inventory, Listed, ServerConfig, Servers, StdioConfig,
    Transport, User, fit_arguments,
};
pub use error::Error;
