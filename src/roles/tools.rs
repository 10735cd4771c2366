//! Starts the MCP servers of a configuration, and lists the tools of one server.

use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio_util::sync::CancellationToken;

use crate::config::{Config, McpServer, McpTransport, process_env};
use crate::investigation::mask::Mask;
use crate::mcp::{Inventory, ServerConfig, Servers, StdioConfig, Transport};

use super::secrets;

const LIST_TIMEOUT: Duration = Duration::from_secs(6);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The configured servers; each process starts at its first use and ends with `end`.
///
/// # Errors
/// When a variable is missing, or the name of a server cannot be part of a tool's name.
pub fn start(config: &Config, mask: Mask, end: &CancellationToken) -> anyhow::Result<Servers> {
    let servers = config.mcp_servers.iter().map(|(name, server)| resolved(name, server));
    Ok(Servers::start(servers.collect::<anyhow::Result<_>>()?, mask, end)?)
}

fn resolved(name: &str, server: &McpServer) -> anyhow::Result<ServerConfig> {
    Ok(ServerConfig {
        name: name.to_owned(),
        transport: transport(&server.transport)?,
        tool_timeout: server.tool_timeout,
        max_tool_timeout: server.max_tool_timeout,
        max_concurrent_calls: server.max_concurrent_calls,
        read_only: server.read_only.clone(),
        allowed: server.allow.clone(),
        tools: server.tools.clone(),
        deny: server.deny.clone(),
        trust_hints: server.trust_hints,
    })
}

fn transport(transport: &McpTransport) -> anyhow::Result<Transport> {
    let McpTransport::Stdio(program) = transport;
    let args = program.args.iter().map(|argument| argument.resolve(&process_env));
    let env = program.env.iter().map(|(key, value)| Ok((key.clone(), value.resolve(&process_env)?)));
    Ok(Transport::Stdio(StdioConfig {
        command: program.command.resolve(&process_env)?,
        args: args.collect::<Result<_, _>>()?,
        env: env.collect::<anyhow::Result<_>>()?,
    }))
}

/// The tools of one server, masked. Starts a process for the list and ends it afterwards.
///
/// # Errors
/// When the server is not configured, does not start, or does not answer in time.
pub async fn list(config: &Config, server: &str) -> anyhow::Result<Inventory> {
    let settings = config.mcp_servers.get(server).with_context(|| format!("there is no MCP server {server:?}"))?;
    let (end, mask) = (CancellationToken::new(), secrets::mask(config, None)?);
    let servers = Servers::start(vec![resolved(server, settings)?], mask.clone(), &end)?;
    let listed = tokio::time::timeout(LIST_TIMEOUT, servers.listed(server)).await;
    // A child process that hangs is killed when it is dropped.
    tokio::time::timeout(CLOSE_TIMEOUT, servers.close()).await.ok();
    match listed {
        Ok(Ok(inventory)) => Ok(inventory),
        Ok(Err(error)) => bail!("{}", mask.apply(&error.to_string())),
        Err(_) => bail!("no list of tools within {} s", LIST_TIMEOUT.as_secs()),
    }
}
