//! Narrows the tools of a chain by the route of the alert and by the header of its publisher. Pure.
//!
//! Both only remove tools: what the configuration does not offer to an agent of the chain stays out of reach.

use super::agent_tools::agent_tools;
use super::error::PlanError;
use super::planner::callable;
use super::route::Route;
use super::stage_agents::settings;
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
        let texts = header
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .filter(|text| !text.is_empty());
        let read = |text: &str| {
            let pattern = ToolPattern::parse(text);
            let is_known = |pattern: &ToolPattern| {
                config
                    .mcp_servers
                    .keys()
                    .any(|name| pattern.names_server(name))
            };
            pattern
                .filter(is_known)
                .ok_or_else(|| PlanError::UnknownTools {
                    pattern: text.to_owned(),
                })
        };
        let header: Vec<ToolPattern> = texts.map(read).collect::<Result<_, PlanError>>()?;
        let route = route.and_then(|route| route.tools.clone());
        Ok(Self {
            route,
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
        let may_call = |tool: &ToolSpec| {
            let agents = route
                .chain
                .stages
                .iter()
                .flat_map(|stage| stage.agents.iter().map(move |agent| (stage, agent)));
            agents.into_iter().any(|(stage, agent)| {
                let settings = settings(config, route.chain, stage, agent);
                !agent_tools(config, &settings, std::slice::from_ref(tool))
                    .tools
                    .is_empty()
            })
        };
        for pattern in self.header.iter().flatten() {
            let of_unavailable = listing
                .unavailable
                .iter()
                .any(|server| pattern.names_server(&server.server));
            let named = |tool: &&ToolSpec| pattern.names(tool.server(), tool.tool());
            if !of_unavailable && !offered.iter().filter(named).any(may_call) {
                return Err(PlanError::UnknownTools {
                    pattern: pattern.to_string(),
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
