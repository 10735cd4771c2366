//! The plan of summaries: the tool results of an agent that are summarised, and the provider that summarises them.
//! Pure.

use std::collections::BTreeMap;

use super::error::{PlanError, undefined};
use super::provider_plan;
use tarsy_config::{Config, Settings};
use tarsy_core::plan::{ProviderPlan, SummaryPlan};

/// The plan of the summaries, for results of these servers; `None` if the configuration asks for none. `providers` are
/// those of the agent.
pub(super) fn plan(
    config: &Config,
    settings: &Settings,
    servers: &[String],
    providers: &[ProviderPlan],
) -> Result<Option<SummaryPlan>, PlanError> {
    let mut over_tokens = BTreeMap::new();
    for name in servers {
        let Some(server) = config.mcp_servers.get(name) else {
            continue;
        };
        let over = server.summarize_over.or(settings.summarize_over);
        // Zero switches the summaries off.
        if let Some(over) = over.filter(|tokens| *tokens > 0) {
            over_tokens.insert(name.clone(), over);
        }
    }
    let provider = match &settings.summarize_with {
        Some(name) => {
            let llm = config
                .llm_providers
                .get(name)
                .ok_or_else(|| undefined("provider", name))?;
            Some(provider_plan::provider_plan(
                name,
                llm,
                llm.backend(),
                Vec::new(),
            ))
        }
        None => providers.first().map(|own| ProviderPlan {
            native_tools: Vec::new(),
            ..own.clone()
        }),
    };
    if over_tokens.is_empty() {
        return Ok(None);
    }
    Ok(provider.map(|provider| SummaryPlan {
        provider,
        over_tokens,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::planner::plan;
    use crate::plan::route::choose;
    use crate::plan::skills::Material;
    use crate::ports::Listing;
    use tarsy_core::testing::{alert, read_only_tool};

    /// The plan of the summaries of the only agent, with these settings of it and of the server `k8s`.
    fn planned(agent: &str, k8s: &str) -> Option<SummaryPlan> {
        let text = format!(
            "llm_providers:
  large: {{provider: google, model: l, native_tools: {{google_search: true}}, native_tools_mode: combine}}
  cheap: {{provider: openai, model: c, api_key_env: K}}
mcp_servers: {{k8s: {{command: k{k8s}}}, prom: {{command: p}}}}
agents: {{sre: {{{agent}}}}}
defaults: {{llm_provider: large}}
"
        );
        let config = Config::parse("f", &text, &|_| None).unwrap();
        let listing = Listing {
            tools: ["k8s.get", "prom.query"].map(read_only_tool).to_vec(),
            unavailable: vec![],
        };
        let plan = plan(
            &config,
            &choose(&config, "", None).unwrap(),
            &alert(""),
            &listing,
            &Material::default(),
        )
        .unwrap();
        plan.stages[0].agents[0].summaries.clone()
    }

    fn sizes(summaries: &SummaryPlan) -> Vec<(&str, u32)> {
        summaries
            .over_tokens
            .iter()
            .map(|(name, tokens)| (name.as_str(), *tokens))
            .collect()
    }

    #[test]
    fn no_result_is_summarised_unless_the_configuration_asks_for_it() {
        assert_eq!(planned("", ""), None);
        assert_eq!(planned("summarize_with: cheap", ""), None);
        assert_eq!(planned("summarize_over: 0", ""), None);
    }

    #[test]
    fn a_server_has_its_own_size_and_the_agents_provider_summarises() {
        let summaries = planned("summarize_over: 5k tokens", ", summarize_over: 0").unwrap();
        assert_eq!(sizes(&summaries), [("prom", 5_000)]);
        assert_eq!(
            (
                summaries.provider.name.as_str(),
                summaries.provider.native_tools.as_slice()
            ),
            ("large", &[][..])
        );
        let summaries = planned("summarize_with: cheap", ", summarize_over: 2000").unwrap();
        assert_eq!(
            (sizes(&summaries), summaries.provider.name.as_str()),
            (vec![("k8s", 2_000)], "cheap")
        );
    }
}
