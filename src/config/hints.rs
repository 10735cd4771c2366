//! What a configuration without faults costs, where that is easily overlooked.

use super::Config;
use super::sections::servers::ServerScope;
use super::sections::servers::transport::McpTransport;

/// One line for each setting whose cost is easily overlooked: its key, then the cost.
pub fn hints(config: &Config) -> Vec<String> {
    let own = config.mcp_servers.iter().filter(|(_, server)| server.scope == ServerScope::Session);
    let slots = config.worker.slots;
    own.map(|(name, server)| {
        let what = match server.transport {
            McpTransport::Stdio(_) => "programs",
            McpTransport::Http(_) => "sessions at the server",
        };
        format!(
            "mcp_servers.{name}.scope: session makes up to {} {what} for each worker: one for each of its {slots} slots \
             (worker.slots), and one that lists the tools",
            u64::from(slots) + 1
        )
    })
    .collect()
}
