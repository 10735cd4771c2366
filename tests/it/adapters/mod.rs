//! The adapters on real servers: the broker, the database, the LLM service, MCP servers and mail servers.

mod bus;
pub(crate) mod store;
mod llm;
mod mcp;
mod runbooks;
mod email;
