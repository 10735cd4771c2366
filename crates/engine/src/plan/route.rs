//! `Route`, the chain of an alert, chosen by its type or by a header. Pure.

use std::collections::BTreeSet;

use super::agent_tools::servers_for;
use super::error::{PlanError, undefined};
use super::stage_agents::{all_agents, strategy};
use tarsy_config::{AgentChain, Config};

/// The chain that will investigate an alert.
#[derive(Clone, Copy, Debug)]
pub struct Route<'a> {
    /// Name of the chain.
    pub name: &'a str,
    pub(super) chain: &'a AgentChain,
}

/// Chooses the chain that the header names, otherwise the one of the alert's type, otherwise the default.
///
/// # Errors
/// When the header names a chain that is not defined.
pub fn choose<'a>(
    config: &'a Config,
    alert_type: &str,
    header: Option<&str>,
) -> Result<Route<'a>, PlanError> {
    let chains = &config.agent_chains;
    let named = header.map(str::trim).filter(|named| !named.is_empty());
    let (name, chain) = if let Some(named) = named {
        chains
            .get_key_value(named)
            .ok_or_else(|| PlanError::UnknownChain {
                named: named.to_owned(),
                defined: chains.keys().cloned().collect(),
            })?
    } else {
        chains
            .iter()
            .find(|(_, chain)| chain.alert_types.iter().any(|known| known == alert_type))
            .or_else(|| chains.get_key_value(&config.defaults.chain))
            .ok_or_else(|| undefined("chain", &config.defaults.chain))?
    };
    Ok(Route { name, chain })
}

/// The MCP servers whose tools any agent of the chain may call, or a sub-agent, sorted.
pub fn servers_of(config: &Config, route: &Route<'_>) -> Vec<String> {
    let mut servers = BTreeSet::new();
    for agent in all_agents(config, route.chain) {
        if strategy(&agent.settings).uses_tools() {
            servers.extend(servers_for(config, &agent.settings));
        }
    }
    servers.into_iter().collect()
}
