//! The agents of a stage with their settings: replicas, and the synthesis after several agents. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tarsy_config::{AgentChain, Config, Settings, Stage, StageAgent, Synthesis, builtin};
use tarsy_core::plan::{Limits, Strategy};
use tarsy_core::vocabulary::provider::GOOGLE;

/// The agents of a stage in order, each with a unique name: the second of two `sre` is `sre-2`.
pub(super) fn agents_of(stage: &Stage) -> Vec<(String, &StageAgent)> {
    let replicas = usize::try_from(stage.replicas.max(1)).unwrap_or(1);
    let agents: Vec<&StageAgent> = stage
        .agents
        .iter()
        .flat_map(|agent| std::iter::repeat_n(agent, replicas))
        .collect();
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for agent in &agents {
        *counts.entry(&agent.name).or_default() += 1;
    }
    let mut taken: BTreeSet<String> = counts
        .iter()
        .filter(|(_, count)| **count == 1)
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let named = agents.into_iter().map(|agent| {
        if counts.get(agent.name.as_str()) == Some(&1) {
            return (agent.name.clone(), agent);
        }
        // Another agent may have the name of a replica.
        let mut numbered = (1_u32..).map(|number| format!("{}-{number}", agent.name));
        let name = numbered
            .find(|name| !taken.contains(name))
            .unwrap_or_default();
        taken.insert(name.clone());
        (name, agent)
    });
    named.collect()
}

/// The settings of an agent. Precedence: agent of the stage, stage, chain, agent, defaults.
pub(super) fn settings(
    config: &Config,
    chain: &AgentChain,
    stage: &Stage,
    agent: &StageAgent,
) -> Settings {
    let own = config.agents.get(&agent.name).map(|agent| &agent.settings);
    let layers = [
        Some(&agent.settings),
        Some(&stage.settings),
        Some(&chain.settings),
        own,
    ];
    let upper = layers
        .into_iter()
        .flatten()
        .fold(Settings::default(), |upper, layer| upper.over(layer));
    upper.over(&config.defaults.settings)
}

/// The agents of all stages of a chain, without replicas, each with its settings.
pub(super) fn agents_with_settings<'a>(
    config: &Config,
    chain: &'a AgentChain,
) -> impl Iterator<Item = (&'a StageAgent, Settings)> {
    chain.stages.iter().flat_map(move |stage| {
        let agents = stage.agents.iter();
        agents.map(move |agent| (agent, settings(config, chain, stage, agent)))
    })
}

/// An agent of a chain, or a sub-agent of one, with its settings.
pub(super) struct ChainAgent<'a> {
    pub(super) name: &'a str,
    pub(super) settings: Settings,
    /// Whether it may call tools that change something. A sub-agent only reads.
    pub(super) may_change: bool,
}

/// The agents of all stages of a chain as [`agents_with_settings`], each before its sub-agents.
pub(super) fn all_agents<'a>(config: &'a Config, chain: &'a AgentChain) -> Vec<ChainAgent<'a>> {
    let mut all = Vec::new();
    for (agent, settings) in agents_with_settings(config, chain) {
        let sub_agents = sub_agents(config, &agent.name, &settings);
        all.push(ChainAgent {
            name: &agent.name,
            settings,
            may_change: true,
        });
        all.extend(sub_agents);
    }
    all
}

/// The sub-agents of an agent of this name with these settings. An agent without tools has none.
pub(super) fn sub_agents<'a>(
    config: &'a Config,
    parent: &str,
    settings: &Settings,
) -> Vec<ChainAgent<'a>> {
    if !strategy(settings).uses_tools() {
        return Vec::new();
    }
    let Some(parent) = config.agents.get(parent) else {
        return Vec::new();
    };
    let sub_agents = parent.agents.iter().filter_map(|name| {
        Some(ChainAgent {
            name,
            settings: sub_agent_settings(config, name, settings)?,
            may_change: false,
        })
    });
    sub_agents.collect()
}

/// The settings of a sub-agent. Precedence: its own, defaults; the model that it does not choose itself, and how that
/// is called, are those of its parent. Chain and stage are about the agents of stages.
fn sub_agent_settings(config: &Config, name: &str, parent: &Settings) -> Option<Settings> {
    let own = &config.agents.get(name)?.settings;
    let of_parent = Settings {
        iteration_strategy: parent.iteration_strategy,
        several_actions: parent.several_actions,
        llm_provider: parent.llm_provider.clone(),
        fallback_providers: parent.fallback_providers.clone(),
        ..Settings::default()
    };
    Some(own.over(&of_parent).over(&config.defaults.settings))
}

pub(super) fn strategy(settings: &Settings) -> Strategy {
    settings
        .iteration_strategy
        .unwrap_or(Strategy::NativeThinking)
}

/// The limits of an agent with these settings.
pub(super) fn limits(settings: &Settings) -> Limits {
    let built_in = Limits::default();
    Limits {
        max_iterations: settings.max_iterations.unwrap_or(built_in.max_iterations),
        iteration_timeout_ms: settings
            .iteration_timeout
            .map_or(built_in.iteration_timeout_ms, |timeout| {
                u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)
            }),
        max_timeouts: settings.max_timeouts.unwrap_or(built_in.max_timeouts),
        max_tool_result_tokens: settings
            .max_tool_result_tokens
            .unwrap_or(built_in.max_tool_result_tokens),
        max_tokens: settings.max_tokens.map_or(built_in.max_tokens, u64::from),
        max_calls: built_in.max_calls,
        max_agents: 0,
    }
}

/// The default of `wrap_up` is the time of an iteration within these bounds.
const MIN_WRAP_UP: Duration = Duration::from_secs(30);
const MAX_WRAP_UP: Duration = Duration::from_secs(300);

/// The time that an agent with these settings keeps for its conclusion, in milliseconds.
pub(super) fn wrap_up_ms(settings: &Settings) -> u64 {
    let iteration = Duration::from_millis(limits(settings).iteration_timeout_ms);
    let default = iteration.clamp(MIN_WRAP_UP, MAX_WRAP_UP);
    let wrap_up = settings.wrap_up.unwrap_or(default);
    u64::try_from(wrap_up.as_millis()).unwrap_or(u64::MAX)
}

/// Whether a synthesis is added after the stage at `index`: the stage has several agents, and the next stage of the
/// chain is not a synthesis already.
pub(super) fn needs_synthesis(config: &Config, chain: &AgentChain, index: usize) -> bool {
    let has_several_agents = chain
        .stages
        .get(index)
        .is_some_and(|stage| agents_of(stage).len() > 1);
    let synthesis_follows =
        chain
            .stages
            .get(index + 1)
            .is_some_and(|next| match agents_of(next).as_slice() {
                [(_, agent)] => strategy(&settings(config, chain, next, agent)).synthesises(),
                _ => false,
            });
    has_several_agents && !synthesis_follows
}

/// The agent that combines the findings of a stage, with its settings: the levels are those of every agent; at each of
/// them `synthesis` takes precedence over the rest.
pub(super) fn synthesis(config: &Config, chain: &AgentChain, stage: &Stage) -> (String, Settings) {
    let synthesis = stage
        .synthesis
        .over(&chain.synthesis)
        .over(&config.defaults.synthesis);
    let name = synthesis
        .agent
        .unwrap_or_else(|| builtin::SYNTHESIS.to_owned());
    let own = config
        .agents
        .get(&name)
        .map(|agent| agent.settings.clone())
        .unwrap_or_default();
    let settings = [
        settings_of(&stage.synthesis),
        without_iteration(&stage.settings),
        settings_of(&chain.synthesis),
        without_iteration(&chain.settings),
        without_iteration(&own),
        settings_of(&config.defaults.synthesis),
        without_iteration(&config.defaults.settings),
    ];
    let mut settings = settings
        .iter()
        .fold(Settings::default(), |upper, layer| upper.over(layer));
    let llm = settings
        .llm_provider
        .as_ref()
        .and_then(|name| config.llm_providers.get(name));
    // Only Gemini thinks natively.
    let fitting = if llm.is_some_and(|llm| llm.provider == GOOGLE.name) {
        Strategy::SynthesisNativeThinking
    } else {
        Strategy::Synthesis
    };
    settings.iteration_strategy.get_or_insert(fitting);
    (name, settings)
}

fn settings_of(synthesis: &Synthesis) -> Settings {
    Settings {
        iteration_strategy: synthesis.iteration_strategy,
        llm_provider: synthesis.llm_provider.clone(),
        ..Settings::default()
    }
}

/// Settings without the strategy of investigating agents, which a synthesis does not use.
fn without_iteration(settings: &Settings) -> Settings {
    let iteration_strategy = settings
        .iteration_strategy
        .filter(|strategy| strategy.synthesises());
    Settings {
        iteration_strategy,
        ..settings.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(chains: &str) -> Config {
        let rest = "
llm_providers:
  small: {provider: openai, model: s}
  large: {provider: google, model: l}
agents: {sre: {}, sre-1: {}, dba: {}, chief: {llm_provider: small, max_timeouts: 9}}
defaults: {chain: a, llm_provider: large}
";
        Config::parse("f", &format!("{rest}agent_chains: {chains}"), &|_| None).unwrap()
    }

    fn names(stage: &str) -> Vec<String> {
        let config = config(&format!("{{a: {{stages: [{{{stage}}}]}}}}"));
        agents_of(&config.agent_chains["a"].stages[0])
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    }

    #[test]
    fn every_agent_of_a_stage_has_a_unique_name() {
        for (stage, expected) in [
            ("agents: [{name: sre}]", vec!["sre"]),
            ("agents: [{name: sre}], replicas: 1", vec!["sre"]),
            (
                "agents: [{name: sre}], replicas: 3",
                vec!["sre-1", "sre-2", "sre-3"],
            ),
            (
                "agents: [{name: sre}, {name: dba}, {name: sre}]",
                vec!["sre-1", "dba", "sre-2"],
            ),
            (
                "agents: [{name: sre}, {name: sre}, {name: sre-1}]",
                vec!["sre-2", "sre-3", "sre-1"],
            ),
        ] {
            assert_eq!(names(stage), expected, "{stage}");
        }
    }

    #[test]
    fn a_synthesis_follows_several_agents_unless_the_chain_has_its_own() {
        let two = "{agents: [{name: sre}, {name: dba}]}";
        let twice = "{agents: [{name: sre}], replicas: 2}";
        let own = "{agents: [{name: dba, iteration_strategy: synthesis}]}";
        let two_own = "{agents: [{name: dba}], replicas: 2, iteration_strategy: synthesis}";
        let one = "{agents: [{name: dba}]}";
        for (stages, expected) in [
            (vec![two], vec![true]),
            (vec![twice, one], vec![true, false]),
            (vec![one, two, own], vec![false, false, false]),
            (vec![two, two_own], vec![true, true]),
        ] {
            let config = config(&format!("{{a: {{stages: [{}]}}}}", stages.join(", ")));
            let needs = (0..stages.len())
                .map(|index| needs_synthesis(&config, &config.agent_chains["a"], index));
            assert_eq!(needs.collect::<Vec<_>>(), expected, "{stages:?}");
        }
    }

    /// Name, provider and strategy of the synthesis, with its time-outs.
    fn resolved(chain: &str) -> (String, String, Strategy, u32) {
        let config = config(&format!("{{a: {chain}}}"));
        let chain = &config.agent_chains["a"];
        let (name, settings) = synthesis(&config, chain, &chain.stages[0]);
        let strategy = settings.iteration_strategy.unwrap();
        (
            name,
            settings.llm_provider.unwrap(),
            strategy,
            settings.max_timeouts.unwrap(),
        )
    }

    #[test]
    fn a_synthesis_is_resolved_level_by_level() {
        let stage = |rest: &str| format!("[{{agents: [{{name: sre}}], replicas: 2{rest}}}]");
        let native = Strategy::SynthesisNativeThinking;
        let plain = Strategy::Synthesis;
        let table = [
            (
                format!("{{stages: {}}}", stage("")),
                ("synthesis", "large", native, 2),
            ),
            // The strategy of the investigating agents is not that of the synthesis.
            (
                format!("{{iteration_strategy: react, stages: {}}}", stage("")),
                ("synthesis", "large", native, 2),
            ),
            (
                format!("{{llm_provider: small, stages: {}}}", stage("")),
                ("synthesis", "small", plain, 2),
            ),
            (
                format!("{{stages: {}}}", stage(", synthesis: {agent: chief}")),
                ("chief", "small", plain, 9),
            ),
            (
                format!(
                    "{{synthesis: {{agent: chief, llm_provider: large}}, stages: {}}}",
                    stage(", max_timeouts: 4")
                ),
                ("chief", "large", native, 4),
            ),
            (
                format!(
                    "{{synthesis: {{llm_provider: large}}, stages: {}}}",
                    stage(", llm_provider: small")
                ),
                ("synthesis", "small", plain, 2),
            ),
            (
                format!(
                    "{{llm_provider: small, stages: {}}}",
                    stage(", synthesis: {llm_provider: large, iteration_strategy: synthesis}")
                ),
                ("synthesis", "large", plain, 2),
            ),
        ];
        for (chain, (name, provider, strategy, timeouts)) in table {
            assert_eq!(
                resolved(&chain),
                (name.to_owned(), provider.to_owned(), strategy, timeouts),
                "{chain}"
            );
        }
    }
}
