//! Finds the uses of a provider in a configuration. Pure.

use tarsy_config::{Config, Settings, Synthesis};

/// The places that name a provider, such as `default`, `agent sre` or `chain k8s, synthesis`; none for a provider that
/// is only defined.
pub fn uses(config: &Config, provider: &str) -> Vec<String> {
    let mut places = Places {
        provider,
        found: Vec::new(),
    };
    places.settings("default", &config.defaults.settings);
    places.synthesis("default", &config.defaults.synthesis);
    for (name, agent) in &config.agents {
        places.settings(&format!("agent {name}"), &agent.settings);
    }
    for (name, chain) in &config.agent_chains {
        let place = format!("chain {name}");
        places.settings(&place, &chain.settings);
        places.synthesis(&place, &chain.synthesis);
        for stage in &chain.stages {
            let place = format!("{place}, stage {}", stage.name);
            places.settings(&place, &stage.settings);
            places.synthesis(&place, &stage.synthesis);
            for agent in &stage.agents {
                places.settings(&format!("{place}, agent {}", agent.name), &agent.settings);
            }
        }
    }
    places.found
}

struct Places<'a> {
    provider: &'a str,
    found: Vec<String>,
}

impl Places<'_> {
    fn settings(&mut self, place: &str, settings: &Settings) {
        if settings.llm_provider.as_deref() == Some(self.provider) {
            self.found.push(place.to_owned());
        }
        let fallbacks = settings.fallback_providers.iter().flatten();
        if fallbacks.into_iter().any(|name| name == self.provider) {
            self.found.push(format!("{place}, fallback"));
        }
        if settings.summarize_with.as_deref() == Some(self.provider) {
            self.found.push(format!("{place}, summaries"));
        }
    }

    fn synthesis(&mut self, place: &str, synthesis: &Synthesis) {
        if synthesis.llm_provider.as_deref() == Some(self.provider) {
            self.found.push(format!("{place}, synthesis"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_that_names_a_provider_is_found() {
        let text = "\
llm_providers:
  a: {provider: openai, model: m}
  b: {provider: openai, model: m}
  c: {provider: openai, model: m}
  d: {provider: openai, model: m}
agents:
  sre: {llm_provider: b, fallback_providers: [c]}
agent_chains:
  k8s:
    llm_provider: b
    synthesis: {llm_provider: b}
    stages:
      - name: look
        llm_provider: b
        synthesis: {llm_provider: b}
        agents: [{name: sre, llm_provider: b}, {name: sre, llm_provider: a}]
defaults:
  llm_provider: a
  synthesis: {llm_provider: b}
";
        let config = Config::parse("f", text, &|_| None).unwrap();
        assert_eq!(
            uses(&config, "a"),
            ["default", "chain k8s, stage look, agent sre"]
        );
        assert_eq!(
            uses(&config, "b"),
            [
                "default, synthesis",
                "agent sre",
                "chain k8s",
                "chain k8s, synthesis",
                "chain k8s, stage look",
                "chain k8s, stage look, synthesis",
                "chain k8s, stage look, agent sre",
            ]
        );
        assert_eq!(uses(&config, "c"), ["agent sre, fallback"]);
        assert_eq!(uses(&config, "d"), Vec::<String>::new());
    }
}
