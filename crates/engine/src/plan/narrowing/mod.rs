//! Narrows the tools of a chain by the route of the alert and by the header of its publisher. Pure.
//!
//! Both only remove tools: what the configuration does not offer to an agent of the chain stays out of reach.

use super::agent_tools::agent_tools;
use super::callable::callable;
use super::error::PlanError;
use super::route::Route;
use super::stage_agents::all_agents;
use crate::ports::Listing;
use tarsy_config::{AlertRoute, Config, ToolPattern};
use tarsy_core::plan::ToolSpec;

/// The patterns of a route and of a header. A tool has to be named by both, as far as they are given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Narrowing {
    route: Option<Vec<ToolPattern>>,
    header: Option<Vec<ToolPattern>>,
}

impl Narrowing {
    /// `header` has patterns separated by commas; one without any counts as absent.
    ///
    /// # Errors
    /// When the header has a text that is no pattern, or one that names no defined server.
    pub fn new(
        config: &Config,
        route: Option<&AlertRoute>,
        header: Option<&str>,
    ) -> Result<Self, PlanError> {
        let header = header
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(|text| known_pattern(config, text))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            route: route.and_then(|route| route.tools.clone()),
            header: Some(header).filter(|header| !header.is_empty()),
        })
    }

    /// Selects the servers that may have one of the remaining tools.
    pub fn servers(&self, mut servers: Vec<String>) -> Vec<String> {
        servers.retain(|server| self.all(|pattern| pattern.names_server(server)));
        servers
    }

    /// Narrows a list of tools.
    pub fn listing(&self, mut listing: Listing) -> Listing {
        listing.tools.retain(|tool| self.keeps(tool));
        listing
    }

    fn keeps(&self, tool: &ToolSpec) -> bool {
        self.all(|pattern| pattern.names(tool.server(), tool.tool()))
    }

    fn all(&self, names: impl Fn(&ToolPattern) -> bool) -> bool {
        [&self.route, &self.header]
            .into_iter()
            .flatten()
            .all(|patterns| patterns.iter().any(&names))
    }

    /// A typo in the header must not cause an investigation without tools. A server that is unavailable may have the
    /// tool. `listing` has the tools of [`Self::servers`].
    ///
    /// # Errors
    /// When a pattern of the header names no tool that an agent of the chain may call.
    pub fn check(
        &self,
        config: &Config,
        route: &Route<'_>,
        listing: &Listing,
    ) -> Result<(), PlanError> {
        let offered = self.listing(callable(config, listing)).tools;
        for pattern in self.header.iter().flatten() {
            let of_unavailable = listing
                .unavailable
                .iter()
                .any(|server| pattern.names_server(&server.server));
            let of_callable = offered.iter().any(|tool| {
                pattern.names(tool.server(), tool.tool()) && may_be_called(config, route, tool)
            });
            if !of_unavailable && !of_callable {
                return Err(PlanError::UnknownTools {
                    pattern: pattern.to_string(),
                });
            }
        }
        Ok(())
    }
}

/// The pattern that a text of the header is, if it names a defined server.
fn known_pattern(config: &Config, text: &str) -> Result<ToolPattern, PlanError> {
    let mut servers = config.mcp_servers.keys();
    ToolPattern::parse(text)
        .filter(|pattern| servers.any(|name| pattern.names_server(name)))
        .ok_or_else(|| PlanError::UnknownTools {
            pattern: text.to_owned(),
        })
}

/// Whether an agent of the chain, or a sub-agent, may call this tool.
fn may_be_called(config: &Config, route: &Route<'_>, tool: &ToolSpec) -> bool {
    all_agents(config, route.chain).iter().any(|agent| {
        let callable = agent_tools(config, &agent.settings, std::slice::from_ref(tool));
        !callable.tools.is_empty() && (agent.may_change || tool.read_only)
    })
}

#[cfg(test)]
mod tests;
