//! MCP: the client that runs tools, and the server that plays a drill's evidence.
//!
//! What leaves this module is flat text without secrets; nobody outside knows the protocol.

mod client;
mod error;
pub mod evidence_server;

pub use client::{Inventory, Listed, ServerConfig, Servers};
pub use error::Error;
