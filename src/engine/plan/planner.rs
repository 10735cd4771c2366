//! The planner: makes the frozen plan of a session from the configuration, the alert and the listed tools. Pure.
//!
//! The caller [chooses](choose) the chain, lists the tools of [its servers](servers_of), and [plans](plan).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::agent_tools::{AgentTools, agent_tools, servers_for};
pub use super::error::PlanError;
use super::error::undefined;
use super::provider_choices::provider_names;
use super::provider_plan;
use super::stage_agents::{agents_of, limits, needs_synthesis, settings, strategy, synthesis};
use super::summaries;
use crate::config::{AgentChain, Config, Settings, Stage};
use crate::engine::ports::{Listing, Unavailable};
use crate::investigation::alert::Alert;
use crate::investigation::missing_tools::{without_servers, without_tools};
use crate::investigation::plan::{
    AgentPlan, AnswerCheck, FORMAT_VERSION, Plan, ProviderPlan, ResultForm, StagePlan, SuccessPolicy, ToolSpec,
};
use crate::investigation::prompt::{Briefing, Prompts, prompts};
use crate::investigation::read_result;
use crate::investigation::runbook::FetchedRunbook;

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
pub fn choose<'a>(config: &'a Config, alert_type: &str, header: Option<&str>) -> Result<Route<'a>, PlanError> {
    let chains = &config.agent_chains;
    if let Some(named) = header.map(str::trim).filter(|named| !named.is_empty()) {
        let found = chains.get_key_value(named).map(|(name, chain)| Route { name, chain });
        return found.ok_or_else(|| PlanError::UnknownChain {
            named: named.to_owned(),
            defined: chains.keys().cloned().collect(),
        });
    }
    let of_type = chains.iter().find(|(_, chain)| chain.alert_types.iter().any(|known| known == alert_type));
    let found = of_type.or_else(|| chains.get_key_value(&config.defaults.chain));
    found.map(|(name, chain)| Route { name, chain }).ok_or_else(|| undefined("chain", &config.defaults.chain))
}

/// The MCP servers whose tools any agent of the chain may call, sorted.
pub fn servers_of(config: &Config, route: &Route<'_>) -> Vec<String> {
    let mut servers = BTreeSet::new();
    for stage in &route.chain.stages {
        for agent in &stage.agents {
            let settings = settings(config, route.chain, stage, agent);
            if strategy(&settings).uses_tools() {
                servers.extend(servers_for(config, &settings));
            }
        }
    }
    servers.into_iter().collect()
}

/// Makes the plan of an investigation. `listing` has the tools that the chain's servers offer now. An agent gets those
/// of its servers that change nothing or are allowed by name; its prompt names the unavailable servers.
///
/// # Errors
/// When the configuration refers to a name that it does not define.
pub fn plan(
    config: &Config,
    route: &Route<'_>,
    alert: &Alert,
    listing: &Listing,
    runbook: Option<&FetchedRunbook>,
) -> Result<Plan, PlanError> {
    let listing = callable(config, listing);
    let mut stages = Vec::with_capacity(route.chain.stages.len());
    for (index, stage) in route.chain.stages.iter().enumerate() {
        let agents = agents_of(stage).into_iter().map(|(name, agent)| {
            let settings = settings(config, route.chain, stage, agent);
            let defined = config.agents.get(&agent.name).ok_or_else(|| undefined("agent", &agent.name))?;
            let (instructions, reader) = (&defined.instructions, read_result::spec());
            let request = AgentRequest { name: &name, instructions, settings: &settings, runbook, reader };
            agent_plan(config, &request, |briefing| prompts(briefing, alert), &listing).map(Arc::new)
        });
        let policy = stage.success_policy.or(route.chain.success_policy).unwrap_or(config.defaults.success_policy);
        let agents = agents.collect::<Result<_, PlanError>>()?;
        stages.push(StagePlan { name: stage.name.clone(), success_policy: policy, agents });
        if needs_synthesis(config, route.chain, index) {
            stages.push(synthesis_stage(config, route.chain, stage, alert)?);
        }
    }
    Ok(Plan {
        version: FORMAT_VERSION,
        chain: route.name.to_owned(),
        route: None,
        stages,
        unavailable_servers: names_of(&listing.unavailable),
        on_resolved: config.dedupe.on_resolved,
    })
}

/// The stage that combines the findings of `stage`. Its agent need not be defined.
fn synthesis_stage(config: &Config, chain: &AgentChain, stage: &Stage, alert: &Alert) -> Result<StagePlan, PlanError> {
    let (name, settings) = synthesis(config, chain, stage);
    let instructions = config.agents.get(&name).map(|agent| agent.instructions.as_str()).unwrap_or_default();
    let reader = read_result::spec();
    let request = AgentRequest { name: &name, instructions, settings: &settings, runbook: None, reader };
    let agent = agent_plan(config, &request, |briefing| prompts(briefing, alert), &Listing::default())?;
    let name = format!("{} synthesis", stage.name);
    Ok(StagePlan { name, success_policy: SuccessPolicy::default(), agents: vec![agent.into()] })
}

/// An agent to make a plan for.
pub(super) struct AgentRequest<'a> {
    pub(super) name: &'a str,
    pub(super) instructions: &'a str,
    pub(super) settings: &'a Settings,
    pub(super) runbook: Option<&'a FetchedRunbook>,
    /// The built-in tool that reads results again.
    pub(super) reader: ToolSpec,
}

/// Makes the plan of one agent; `prompts` writes its prompts.
pub(super) fn agent_plan(
    config: &Config,
    request: &AgentRequest<'_>,
    prompts: impl Fn(&Briefing<'_>) -> Prompts,
    listing: &Listing,
) -> Result<AgentPlan, PlanError> {
    let AgentRequest { name, instructions, settings, runbook, reader } = request;
    let (name, instructions, settings, runbook) = (*name, *instructions, *settings, *runbook);
    let strategy = strategy(settings);
    let servers = if strategy.uses_tools() { servers_for(config, settings) } else { Vec::new() };
    let AgentTools { mut tools, left_out } = agent_tools(config, settings, &listing.tools);
    let mut missing = names_of(&listing.unavailable);
    missing.retain(|server| servers.contains(server));
    let providers = providers(config, settings, &tools)?;
    let summaries = summaries::plan(config, settings, &servers, &providers)?;
    if !tools.is_empty() {
        tools.push(reader.clone());
        tools.sort_by(|one, other| one.name.cmp(&other.name));
    }
    let limits = limits(settings);
    let briefing = Briefing {
        agent: name,
        strategy,
        tools: &tools,
        instructions,
        max_iterations: limits.max_iterations,
        runbooks: &config.runbooks.listed(),
        fetched: runbook,
    };
    let texts = prompts(&briefing);
    Ok(AgentPlan {
        name: name.to_owned(),
        strategy,
        limits,
        providers,
        tools,
        omitted_tools: u32::try_from(left_out.len()).unwrap_or(u32::MAX),
        system_prompt: without_tools(without_servers(texts.system, &missing), &left_out),
        user_prompt: texts.user,
        conclusion_prompt: texts.conclusion,
        result_form: ResultForm::Indented,
        citable: None,
        summaries,
        answer_check: AnswerCheck::Once,
        clock: None,
    })
}

/// The provider of the settings, and those that take over from it. A list of a lower layer may name the provider of a
/// higher one: it is left out.
fn providers(config: &Config, settings: &Settings, tools: &[ToolSpec]) -> Result<Vec<ProviderPlan>, PlanError> {
    let plan = |name: &String| {
        let llm = config.llm_providers.get(name).ok_or_else(|| undefined("provider", name))?;
        Ok(provider_plan::of_agent(name, llm, settings, tools))
    };
    provider_names(settings).iter().map(plan).collect()
}

pub(super) fn names_of(unavailable: &[Unavailable]) -> Vec<String> {
    unavailable.iter().map(|unavailable| unavailable.server.clone()).collect()
}

/// The tools that are read-only, by the server's declaration or by the configuration, and those that the configuration
/// allows; sorted, each name once.
pub(super) fn callable(config: &Config, listing: &Listing) -> Listing {
    let permitted = |tool: &ToolSpec| {
        let server = config.mcp_servers.get(tool.server());
        let is_in = |names: &[String]| names.iter().any(|known| known == tool.tool());
        let read_only = tool.read_only || server.is_some_and(|server| is_in(&server.read_only));
        let allowed = server.is_some_and(|server| is_in(&server.allow));
        (read_only || allowed).then(|| ToolSpec { read_only, ..tool.clone() })
    };
    let mut tools: Vec<ToolSpec> = listing.tools.iter().filter_map(permitted).collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools.dedup_by(|a, b| a.name == b.name);
    Listing { tools, unavailable: listing.unavailable.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::investigation::alert::policy::OnResolved;
    use crate::investigation::plan::{Limits, Strategy};
    use crate::investigation::testing::{alert, changing_tool, read_only_tool};

    const CONFIG: &str = r#"
llm_providers:
  small: {provider: openai, model: s, api_key_env: SMALL_KEY}
  large: {provider: google, model: l, keep_search_widget: true}
mcp_servers:
  k8s: {command: k, read_only: [logs], allow: [restart]}
  prom: {command: p}
agents:
  sre: {mcp_servers: [k8s], max_iterations: 2, max_timeouts: 2, instructions: Be quick.}
  dba: {}
agent_chains:
  web:
    alert_types: [Http5xx]
    max_iterations: 3
    max_timeouts: 3
    stages:
    - name: look
      success_policy: all
      max_iterations: 4
      agents:
      - {name: sre, max_iterations: 5, max_tokens: 60000, llm_provider: large}
      - {name: dba, iteration_strategy: ""}
  rest: {default: true, stages: [{agents: [{name: dba}]}]}
dedupe: {on_resolved: conclude}
defaults: {llm_provider: small, max_iterations: 1, max_timeouts: 1, iteration_timeout: 90s, max_tokens: 70000}
"#;

    fn config() -> Config {
        Config::parse("f", CONFIG, &|_| None).unwrap()
    }

    fn provider(name: &str, provider: &str, backend: &str, model: &str, api_key_env: &str) -> ProviderPlan {
        ProviderPlan {
            name: name.to_owned(),
            provider: provider.to_owned(),
            backend: backend.to_owned(),
            model: model.to_owned(),
            api_key_env: api_key_env.to_owned(),
            base_url: String::new(),
            ..ProviderPlan::default()
        }
    }

    #[test]
    fn the_chain_is_that_of_the_header_then_of_the_type_then_the_default() {
        let config = config();
        let unknown =
            PlanError::UnknownChain { named: "wbe".to_owned(), defined: vec!["rest".to_owned(), "web".to_owned()] };
        let cases = [
            ("Http5xx", None, Ok("web")),
            ("Http5xx", Some("rest"), Ok("rest")),
            ("http5xx", None, Ok("rest")),
            ("other", Some(" "), Ok("rest")),
            ("other", Some("web"), Ok("web")),
            ("Http5xx", Some("wbe"), Err(unknown)),
        ];
        for (alert_type, header, expected) in cases {
            let chosen = choose(&config, alert_type, header).map(|route| route.name);
            assert_eq!(chosen, expected, "{alert_type} {header:?}");
        }
    }

    #[test]
    fn servers_are_those_of_agents_with_tools() {
        let config = config();
        let servers = |header| servers_of(&config, &choose(&config, "", Some(header)).unwrap());
        assert_eq!(servers("web"), ["k8s"]);
        assert_eq!(servers("rest"), ["k8s", "prom"]);
    }

    #[test]
    fn a_plan_freezes_the_settings_of_all_levels() {
        let config = config();
        let route = choose(&config, "Http5xx", None).unwrap();
        let tools = [
            read_only_tool("prom.query"),
            changing_tool("k8s.restart"),
            changing_tool("k8s.logs"),
            changing_tool("k8s.delete"),
            read_only_tool("k8s.get"),
        ];
        let alert = alert("Http5xx");
        let limits = |max_iterations, max_timeouts, max_tokens| Limits {
            max_iterations,
            max_timeouts,
            iteration_timeout_ms: 90_000,
            max_tool_result_tokens: 8_000,
            max_tokens,
            max_calls: 64,
        };
        let agent = |name: &str, strategy, instructions, limits: Limits, (provider, tools): (_, Vec<ToolSpec>)| {
            let max_iterations = limits.max_iterations;
            let briefing = Briefing {
                agent: name,
                strategy,
                tools: &tools,
                instructions,
                max_iterations,
                runbooks: &[],
                fetched: None,
            };
            let texts = prompts(&briefing, &alert);
            AgentPlan {
                name: name.to_owned(),
                strategy,
                limits,
                providers: vec![provider],
                tools,
                system_prompt: texts.system,
                user_prompt: texts.user,
                conclusion_prompt: texts.conclusion,
                answer_check: AnswerCheck::Once,
                ..crate::investigation::testing::agent_plan(strategy, vec![])
            }
        };
        let large = ProviderPlan { keep_search_widget: true, ..provider("large", "google", "google-native", "l", "") };
        let small = provider("small", "openai", "genai", "s", "SMALL_KEY");
        let k8s = vec![
            read_only_tool("k8s.get"),
            read_only_tool("k8s.logs"),
            changing_tool("k8s.restart"),
            read_result::spec(),
        ];
        let stage = StagePlan {
            name: "look".to_owned(),
            success_policy: SuccessPolicy::All,
            agents: vec![
                agent("sre", Strategy::NativeThinking, "Be quick.", limits(5, 3, 60_000), (large, k8s)).into(),
                agent("dba", Strategy::SingleCall, "", limits(4, 3, 70_000), (small.clone(), vec![])).into(),
            ],
        };
        let synthesis = agent("synthesis", Strategy::Synthesis, "", limits(4, 3, 70_000), (small, vec![]));
        let synthesis = StagePlan {
            name: "look synthesis".to_owned(),
            success_policy: SuccessPolicy::Any,
            agents: vec![synthesis.into()],
        };
        let expected = Plan {
            version: FORMAT_VERSION,
            chain: "web".to_owned(),
            route: None,
            stages: vec![stage, synthesis],
            unavailable_servers: vec![],
            on_resolved: OnResolved::Conclude,
        };
        assert_eq!(
            plan(&config, &route, &alert, &Listing { tools: tools.to_vec(), unavailable: vec![] }, None),
            Ok(expected)
        );
    }

    #[test]
    fn without_a_configuration_file_any_alert_has_a_plan() {
        let config = Config::load(None, &|_| None).unwrap();
        let route = choose(&config, "anything", None).unwrap();
        let plan = plan(&config, &route, &alert("anything"), &Listing::default(), None).unwrap();
        let [stage] = plan.stages.as_slice() else { panic!("one stage") };
        let names: Vec<&str> = stage.agents.iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!((plan.chain.as_str(), names), ("default", vec!["sre"]));
        assert_eq!(stage.agents[0].providers, [provider("scripted", "scripted", "scripted", "recording", "")]);
        assert_eq!(stage.agents[0].limits, Limits::default());
    }

    #[test]
    fn an_undefined_provider_is_an_error() {
        let mut config = config();
        config.llm_providers.remove("small");
        let route = choose(&config, "", Some("rest")).unwrap();
        let expected = PlanError::Undefined { kind: "provider", name: "small".to_owned() };
        assert_eq!(plan(&config, &route, &alert(""), &Listing::default(), None), Err(expected));
    }

    #[test]
    fn every_agent_has_the_fallback_providers_of_its_nearest_layer_without_its_own() {
        let text = CONFIG
            .replace("[Http5xx]\n", "[Http5xx]\n    fallback_providers: [large, small]\n")
            .replace("{name: dba, iter", "{name: dba, fallback_providers: [], iter");
        let config = Config::parse("f", &text, &|_| None).unwrap();
        let route = choose(&config, "Http5xx", None).unwrap();
        let plan = plan(&config, &route, &alert("Http5xx"), &Listing::default(), None).unwrap();
        let agents = plan.stages.iter().flat_map(|stage| &stage.agents);
        let names =
            |agent: &AgentPlan| agent.providers.iter().map(|provider| provider.name.clone()).collect::<Vec<_>>();
        let planned: Vec<String> = agents.map(|agent| format!("{}: {}", agent.name, names(agent).join(", "))).collect();
        assert_eq!(planned, ["sre: large, small", "dba: small", "synthesis: small, large"]);
    }
}
