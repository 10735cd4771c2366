//! The review of a chain: a stage after its last one, made from the agents that it reviews. Pure.

use std::sync::Arc;

use super::error::PlanError;
use super::provider_choices::providers;
use super::stage_agents::{agents_of, needs_synthesis, settings, synthesis};
use tarsy_config::{AgentChain, Config, ReviewCondition, Settings};
use tarsy_core::alert::{Alert, Severity};
use tarsy_core::built_in::BuiltInTool;
use tarsy_core::plan::{
    AgentPlan, Limits, ReviewWhen, StagePlan, Strategy, SuccessPolicy, ToolSpec,
};
use tarsy_core::prompt::{Briefing, PromptOptions, review};

/// The name of the agent.
const REVIEWER: &str = "reviewer";
/// Calls before the conclusion, all of one answer: they are for the one fact that tells two explanations apart.
const MAX_CALLS: u32 = 3;

/// The review after `stages`; `None` if the chain has none for this alert.
pub(super) fn stage(
    config: &Config,
    chain: &AgentChain,
    alert: &Alert,
    stages: &[StagePlan],
) -> Result<Option<StagePlan>, PlanError> {
    let reviewed = stages.last().and_then(|stage| {
        let agent = stage.agents.first()?;
        Some((stage, agent))
    });
    let (Some(when), Some((last, agent))) = (when(chain, alert), reviewed) else {
        return Ok(None);
    };
    let agent = reviewer(config, chain, alert, &Reviewed { agent, stages })?;
    Ok(Some(StagePlan {
        name: format!("{} review", last.name),
        success_policy: SuccessPolicy::default(),
        agents: vec![Arc::new(agent)],
        review: Some(when),
    }))
}

/// The condition that is left when the severity of the alert is known.
fn when(chain: &AgentChain, alert: &Alert) -> Option<ReviewWhen> {
    let has = |condition| chain.review.when.contains(&condition);
    let is_critical = alert.severity == Severity::Critical;
    if has(ReviewCondition::Always) || (is_critical && has(ReviewCondition::Critical)) {
        return Some(ReviewWhen::Always);
    }
    has(ReviewCondition::Weak).then_some(ReviewWhen::Weak)
}

/// The last agent of a chain, whose analysis is reviewed, and all stages of the chain.
struct Reviewed<'a> {
    agent: &'a AgentPlan,
    stages: &'a [StagePlan],
}

impl Reviewed<'_> {
    /// The last agent that has tools. A synthesis has none: its review may look where the agents before it did.
    fn looks(&self) -> &AgentPlan {
        let agents = self.stages.iter().flat_map(|stage| &stage.agents).rev();
        let mut with_tools = agents.filter(|agent| !agent.tools.is_empty());
        with_tools.next().map_or(self.agent, |agent| agent)
    }
}

/// The agent of the review: its model calls are one look and the conclusion.
fn reviewer(
    config: &Config,
    chain: &AgentChain,
    alert: &Alert,
    reviewed: &Reviewed<'_>,
) -> Result<AgentPlan, PlanError> {
    let looks = reviewed.looks();
    let mut tools = looks.tools.clone();
    // It looks for what the first one did not see: neither advice nor earlier investigations show that.
    tools.retain(|tool: &ToolSpec| tool.read_only && !BuiltInTool::is_no_source(&tool.name));
    let strategy = if tools.is_empty() {
        Strategy::SingleCall
    } else {
        looks.strategy
    };
    let settings = Settings {
        iteration_strategy: Some(strategy),
        ..settings_of_last(config, chain)
    };
    let settings = match &chain.review.llm_provider {
        // Another provider in its place could be the one that is reviewed.
        Some(provider) => Settings {
            llm_provider: Some(provider.clone()),
            fallback_providers: Some(Vec::new()),
            ..settings
        },
        None => settings,
    };
    let limits = Limits {
        max_iterations: 1,
        max_calls: MAX_CALLS,
        max_agents: 0,
        ..reviewed.agent.limits
    };
    let briefing = Briefing {
        agent: REVIEWER,
        strategy,
        tools: &tools,
        instructions: "",
        max_iterations: limits.max_iterations,
        runbooks: &[],
        fetched: None,
        options: PromptOptions::default(),
        skills: "",
    };
    let texts = review(&briefing, alert);
    Ok(AgentPlan {
        name: REVIEWER.to_owned(),
        strategy,
        limits,
        providers: providers(config, &settings, &tools)?,
        omitted_tools: 0,
        system_prompt: texts.system,
        user_prompt: texts.user,
        conclusion_prompt: texts.conclusion,
        citable: None,
        summaries: None,
        reviews: true,
        several_actions: false,
        skills: Vec::new(),
        past: None,
        sub_agents: Vec::new(),
        presentation: looks.presentation.clone(),
        tools,
        ..reviewed.agent.clone()
    })
}

/// The settings of the last agent of a chain.
fn settings_of_last(config: &Config, chain: &AgentChain) -> Settings {
    let Some(stage) = chain.stages.last() else {
        return Settings::default();
    };
    if needs_synthesis(config, chain, chain.stages.len() - 1) {
        return synthesis(config, chain, stage).1;
    }
    match agents_of(stage).first() {
        Some((_, agent)) => settings(config, chain, stage, agent),
        None => Settings::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::planner::plan;
    use crate::plan::route::choose;
    use crate::plan::skills::Material;
    use crate::ports::Listing;
    use tarsy_core::plan::{FORMAT_VERSION, Plan, REVIEW_VERSION};
    use tarsy_core::testing::{alert, changing_tool, read_only_tool};

    const CONFIG: &str = r#"
llm_providers:
  small: {provider: openai, model: s}
  large: {provider: google, model: l}
  other: {provider: anthropic, model: o}
mcp_servers: {k8s: {command: k, read_only: [logs], allow: [restart]}}
agents: {sre: {mcp_servers: [k8s]}, dba: {iteration_strategy: react}, mute: {mcp_servers: []}}
agent_chains:
  one: {review: REVIEW, fallback_providers: [large], stages: [{name: look, agents: [{name: sre}]}]}
  two: {review: REVIEW, stages: [{name: look, agents: [{name: sre}, {name: dba}]}]}
  mute: {review: REVIEW, stages: [{agents: [{name: mute}]}]}
defaults: {chain: one, llm_provider: small}
"#;

    fn planned(review: &str, chain: &str, severity: Severity) -> Plan {
        let text = CONFIG.replace("REVIEW", review);
        let config = Config::parse("f", &text, &|_| None).unwrap();
        let alert = Alert {
            severity,
            ..alert("Http5xx")
        };
        let route = choose(&config, "Http5xx", Some(chain)).unwrap();
        let listing = Listing {
            tools: vec![
                changing_tool("k8s.logs"),
                changing_tool("k8s.restart"),
                read_only_tool("k8s.get"),
            ],
            unavailable: vec![],
        };
        plan(&config, &route, &alert, &listing, &Material::default()).unwrap()
    }

    fn review_of(plan: &Plan) -> &StagePlan {
        plan.stages.last().unwrap()
    }

    #[test]
    fn the_severity_decides_whether_a_review_waits_for_a_weak_analysis() {
        use Severity::{Critical, Low};
        for (review, severity, expected) in [
            ("true", Low, Some(ReviewWhen::Weak)),
            ("true", Critical, Some(ReviewWhen::Always)),
            ("{when: [critical]}", Low, None),
            ("{when: [critical]}", Critical, Some(ReviewWhen::Always)),
            ("{when: [weak]}", Critical, Some(ReviewWhen::Weak)),
            ("{when: [always]}", Low, Some(ReviewWhen::Always)),
            ("false", Critical, None),
        ] {
            let plan = planned(review, "one", severity);
            assert_eq!(review_of(&plan).review, expected, "{review} {severity:?}");
            let version = if expected.is_some() {
                REVIEW_VERSION
            } else {
                FORMAT_VERSION
            };
            assert_eq!(plan.version, version, "{review} {severity:?}");
        }
    }

    #[test]
    fn a_review_has_the_tools_that_only_read_for_one_look() {
        let plan = planned(
            "{when: [always], llm_provider: other}",
            "one",
            Severity::Low,
        );
        let stage = review_of(&plan);
        let agent = stage.agent(1).unwrap();
        let names: Vec<&str> = agent.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(stage.name, "look review");
        assert_eq!(names, ["k8s.get", "k8s.logs", "tarsy.read_result"]);
        assert_eq!(
            (agent.limits.max_iterations, agent.limits.max_calls),
            (1, 3)
        );
        assert_eq!(
            (agent.strategy, agent.reviews),
            (Strategy::NativeThinking, true)
        );
        let providers: Vec<&str> = agent
            .providers
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(providers, ["other"], "no other one takes its place");
        for part in [
            "Try to refute the\nanalysis",
            "Verdict: stands, weakened or refuted",
            "Not seen:",
        ] {
            assert!(
                agent.system_prompt.contains(part),
                "no {part} in {}",
                agent.system_prompt
            );
        }
        assert!(!agent.system_prompt.contains("{{") && !agent.user_prompt.contains("{{"));

        let usual = planned("{when: [always]}", "one", Severity::Low);
        let providers = review_of(&usual).agent(1).unwrap().providers.iter();
        let providers: Vec<&str> = providers.map(|one| one.name.as_str()).collect();
        assert_eq!(providers, ["small", "large"], "those of the reviewed agent");
    }

    #[test]
    fn a_synthesis_is_reviewed_with_the_tools_of_the_last_agent_before_it() {
        let plan = planned("{when: [always]}", "two", Severity::Low);
        let stage = review_of(&plan);
        let agent = stage.agent(1).unwrap();
        assert_eq!(
            (stage.name.as_str(), plan.stages.len()),
            ("look synthesis review", 3)
        );
        assert_eq!(agent.strategy, Strategy::React);
        assert!(
            agent.system_prompt.contains("Action Input:")
                && agent.tools.iter().all(|tool| tool.read_only)
        );
        let mute = planned("{when: [always]}", "mute", Severity::Low);
        let agent = review_of(&mute).agent(1).unwrap();
        assert_eq!(
            (agent.strategy, agent.tools.len()),
            (Strategy::SingleCall, 0)
        );
        assert!(agent.system_prompt.contains("You have no tools"));
    }

    #[test]
    fn a_plan_with_a_review_is_read_back_and_one_without_has_no_word_of_it() {
        for review in ["true", "false"] {
            let plan = planned(review, "one", Severity::Critical);
            let text = serde_json::to_string(&plan).unwrap();
            assert_eq!(text.contains("\"review"), review == "true", "{text}");
            assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
        }
    }
}
