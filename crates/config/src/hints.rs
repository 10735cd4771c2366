//! Warnings for a valid configuration: settings with easily overlooked costs, routes that an earlier route covers,
//! approvals that more people can give than a reader expects, and checks that only another program can do.

use super::sections::servers::ServerScope;
use super::sections::servers::transport::McpTransport;
use super::{Backend, Config};

/// One line for each setting whose cost is easily overlooked: its key, then the cost. Then a line about the providers.
pub fn hints(config: &Config) -> Vec<String> {
    let mut hints = costs(config);
    hints.extend(covered_routes(config));
    hints.extend(config.approvals.warnings());
    let real = config
        .llm_providers
        .iter()
        .filter(|(_, llm)| llm.backend() != Backend::Scripted);
    let real = real
        .map(|(name, _)| name.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    hints.push(if real.is_empty() {
        "llm_providers: no model is called: a recording knows the alerts of tarsy drill --list, and any other one fails; \
         tarsy config example openai --into FILE adds a model, and tarsy config example --list names others"
            .to_owned()
    } else {
        format!("llm_providers: the LLM service has the keys of {real}; tarsy doctor asks it whether each can be called")
    });
    hints
}

fn covered_routes(config: &Config) -> Vec<String> {
    let covered = config.routes.covered().into_iter();
    let hints = covered.map(|(route, by)| {
        format!(
            "routes.{}: no alert reaches it: {}, which is before it, matches all of its alerts",
            route.name, by.name
        )
    });
    hints.collect()
}

fn costs(config: &Config) -> Vec<String> {
    let own = config
        .mcp_servers
        .iter()
        .filter(|(_, server)| server.scope == ServerScope::Session);
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
