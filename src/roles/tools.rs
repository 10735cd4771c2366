//! The MCP servers of a configuration, with everything that has to be masked.

use tokio_util::sync::CancellationToken;

use crate::config::{Config, McpServer, process_env};
use crate::investigation::mask::Mask;
use crate::mcp::{ServerConfig, Servers};

/// Takes the servers over; their processes start with their first use and end with `end`.
///
/// # Errors
/// When a variable is missing or a server's name cannot be part of a tool's name.
pub fn start(config: &Config, end: &CancellationToken) -> anyhow::Result<Servers> {
    let servers = config.mcp_servers.iter().map(|(name, server)| resolved(name, server));
    Ok(Servers::start(servers.collect::<anyhow::Result<_>>()?, mask(config), end)?)
}

/// The built-in patterns, the configured variables and every key of a provider.
pub fn mask(config: &Config) -> Mask {
    let keys = config.llm_providers.values().map(|provider| &provider.api_key_env);
    let variables = config.masking.variables.iter().chain(keys);
    Mask::new(variables.filter_map(|variable| process_env(variable)))
}

fn resolved(name: &str, server: &McpServer) -> anyhow::Result<ServerConfig> {
    let args = server.args.iter().map(|argument| argument.resolve(&process_env));
    let env = server.env.iter().map(|(key, value)| Ok((key.clone(), value.resolve(&process_env)?)));
    Ok(ServerConfig {
        name: name.to_owned(),
        command: server.command.resolve(&process_env)?,
        args: args.collect::<Result<_, _>>()?,
        env: env.collect::<anyhow::Result<_>>()?,
        tool_timeout: server.tool_timeout,
        read_only: server.read_only.clone(),
        allowed: Vec::new(),
    })
}
