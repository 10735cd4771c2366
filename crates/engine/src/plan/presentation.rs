//! The plan of presentation: how the results of each server of an agent are presented. Pure.

use tarsy_config::{Config, Settings};
use tarsy_core::plan::PresentationPlan;
use tarsy_core::readable::presentation::Presentation;

/// The plan of the results of these servers. The keys of a server take precedence over those of the agent.
pub(super) fn plan(config: &Config, settings: &Settings, servers: &[String]) -> PresentationPlan {
    let known = servers
        .iter()
        .filter_map(|name| Some((name.clone(), config.mcp_servers.get(name)?)));
    let servers = known.map(|(name, server)| {
        let presentation = Presentation {
            facts: server.facts.or(settings.facts).unwrap_or_default(),
            fold: server.fold.or(settings.fold).unwrap_or_default(),
            tables: server.tables.or(settings.tables).unwrap_or_default(),
        };
        (name, presentation)
    });
    PresentationPlan {
        servers: servers.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_decides_over_the_agent_and_no_layer_over_the_defaults() {
        let presented = |agent: &str, server: &str| {
            let text = format!(
                "mcp_servers: {{k8s: {{command: k{server}}}}}\nllm_providers: {{a: {{provider: scripted}}}}\nagents: {{sre: {{{agent}}}}}"
            );
            let config = Config::parse("f", &text, &|_| None).unwrap();
            let settings = config.agents["sre"]
                .settings
                .over(&config.defaults.settings);
            plan(&config, &settings, &["k8s".to_owned()]).for_tool("k8s.get")
        };
        assert_eq!(presented("", ""), Presentation::ALL);
        let folds_nothing = Presentation {
            fold: false,
            ..Presentation::ALL
        };
        assert_eq!(presented("fold: false", ""), folds_nothing);
        assert_eq!(presented("", ", fold: false"), folds_nothing);
        assert_eq!(presented("fold: false", ", fold: true"), Presentation::ALL);
        let off = ", fold: false, facts: false, tables: false";
        assert_eq!(presented("", off), Presentation::default());
    }
}
