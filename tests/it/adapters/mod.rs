//! The adapters on real servers: the broker, the database, the LLM service and MCP servers.

mod bus;
pub(crate) mod store;
mod llm;
mod mcp;
mod runbooks;
