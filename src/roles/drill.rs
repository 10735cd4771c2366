//! The configuration of a drill: the drill's file with its evidence as the only MCP server and a short lease.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use crate::config::{Config, McpServer, Template};
use crate::drill::{BUILTIN, Drill, builtin};

/// The name of the MCP server that serves the evidence.
pub const SERVER: &str = "drill";
/// Short, so that the second worker takes over soon.
const LEASE: Duration = Duration::from_secs(3);

/// The drill of this name.
///
/// # Errors
/// When there is no such drill.
pub fn find(name: &str) -> anyhow::Result<Drill> {
    let names = BUILTIN.map(|drill| drill.name).join(", ");
    builtin(name).with_context(|| format!("no drill \"{name}\"; there are: {names}"))
}

/// The configuration of every process of the drill; `program` is this binary.
///
/// # Errors
/// When there is no such drill, or its configuration has a fault.
pub fn config(name: &str, program: &Path) -> anyhow::Result<Config> {
    let mut config = Config::parse(&format!("drill {name}"), find(name)?.config, &|_| None)?;
    let server = McpServer {
        command: Template::new(program.display().to_string()),
        args: ["evidence-server", name].map(Template::new).to_vec(),
        env: BTreeMap::new(),
        tool_timeout: Duration::from_secs(30),
        read_only: Vec::new(),
        allow: Vec::new(),
        tools: None,
        deny: Vec::new(),
        trust_hints: true,
    };
    config.mcp_servers.insert(SERVER.to_owned(), server);
    config.worker.lease = LEASE;
    // A repeated drill must open a new session.
    config.dedupe.cooldown = Duration::ZERO;
    Ok(config)
}
