//! The providers that the agents of a chain may call. Pure.

use std::collections::BTreeSet;

use super::error::{PlanError, undefined};
use super::provider_plan;
use super::route::Route;
use super::stage_agents::{all_agents, needs_synthesis, synthesis};
use tarsy_config::{Config, Settings};
use tarsy_core::plan::{ProviderPlan, ToolSpec};

/// The providers of each agent of the chain, and of each sub-agent, in the order in which they are called: the chain
/// works when one of each works.
pub fn provider_choices(config: &Config, route: &Route<'_>) -> BTreeSet<Vec<String>> {
    let mut choices: BTreeSet<Vec<String>> = all_agents(config, route.chain)
        .iter()
        .map(|agent| provider_names(&agent.settings))
        .collect();
    for (index, stage) in route.chain.stages.iter().enumerate() {
        if needs_synthesis(config, route.chain, index) {
            choices.insert(provider_names(&synthesis(config, route.chain, stage).1));
        }
    }
    choices
}

/// The provider of an agent, then those that take its place.
pub(super) fn provider_names(settings: &Settings) -> Vec<String> {
    let main = settings.llm_provider.as_deref().unwrap_or_default();
    let others = settings
        .fallback_providers
        .iter()
        .flatten()
        .map(String::as_str)
        .filter(|name| *name != main);
    std::iter::once(main)
        .chain(others)
        .map(str::to_owned)
        .collect()
}

/// The provider of the settings, and those that take over from it. A list of a lower layer may name the provider of a
/// higher one: it is left out.
pub(super) fn providers(
    config: &Config,
    settings: &Settings,
    tools: &[ToolSpec],
) -> Result<Vec<ProviderPlan>, PlanError> {
    let mut plans = Vec::new();
    for name in provider_names(settings) {
        let llm = config
            .llm_providers
            .get(&name)
            .ok_or_else(|| undefined("provider", &name))?;
        plans.push(provider_plan::of_agent(&name, llm, settings, tools));
    }
    Ok(plans)
}
