use std::collections::BTreeMap;

use super::*;
use crate::plan::route::{choose, servers_of};
use tarsy_core::alert::policy::OnResolved;
use tarsy_core::plan::{Limits, PastPlan, PastScope, PresentationPlan, ProviderPlan, Strategy};
use tarsy_core::readable::presentation::Presentation;
use tarsy_core::testing::{alert, changing_tool, read_only_tool};

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

fn provider(
    name: &str,
    provider: &str,
    backend: &str,
    model: &str,
    api_key_env: &str,
) -> ProviderPlan {
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
    let unknown = PlanError::UnknownChain {
        named: "wbe".to_owned(),
        defined: vec!["rest".to_owned(), "web".to_owned()],
    };
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
        max_agents: 0,
    };
    let agent = |name: &str,
                 strategy,
                 instructions,
                 limits: Limits,
                 (provider, tools): (_, Vec<ToolSpec>)| {
        let max_iterations = limits.max_iterations;
        let briefing = Briefing {
            agent: name,
            strategy,
            tools: &tools,
            instructions,
            max_iterations,
            runbooks: &[],
            fetched: None,
            options: PromptOptions::default(),
            skills: "",
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
            checks_figures: true,
            wrap_up_ms: 90_000,
            tool_names: ToolNames::AsCalled,
            presentation: PresentationPlan {
                servers: if strategy.uses_tools() {
                    [("k8s".to_owned(), Presentation::ALL)].into()
                } else {
                    BTreeMap::new()
                },
            },
            past: (!strategy.synthesises()).then_some(PastPlan {
                given: 3,
                days: 30,
                scope: PastScope::Chain,
            }),
            ..tarsy_core::testing::agent_plan(strategy, vec![])
        }
    };
    let large = ProviderPlan {
        keep_search_widget: true,
        keeps_tools: true,
        ..provider("large", "google", "google-native", "l", "")
    };
    let small = provider("small", "openai", "genai", "s", "SMALL_KEY");
    let k8s = vec![
        read_only_tool("k8s.get"),
        read_only_tool("k8s.logs"),
        changing_tool("k8s.restart"),
        tarsy_core::past::tool::spec(),
        read_result::spec(),
    ];
    let stage = StagePlan {
        name: "look".to_owned(),
        success_policy: SuccessPolicy::All,
        agents: vec![
            agent(
                "sre",
                Strategy::NativeThinking,
                "Be quick.",
                limits(5, 3, 60_000),
                (large, k8s),
            )
            .into(),
            agent(
                "dba",
                Strategy::SingleCall,
                "",
                limits(4, 3, 70_000),
                (small.clone(), vec![]),
            )
            .into(),
        ],
        review: None,
    };
    let synthesis = agent(
        "synthesis",
        Strategy::Synthesis,
        "",
        limits(4, 3, 70_000),
        (small, vec![]),
    );
    let synthesis = StagePlan {
        name: "look synthesis".to_owned(),
        success_policy: SuccessPolicy::Any,
        agents: vec![synthesis.into()],
        review: None,
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
        plan(
            &config,
            &route,
            &alert,
            &Listing {
                tools: tools.to_vec(),
                unavailable: vec![]
            },
            &Material::default()
        ),
        Ok(expected)
    );
}

#[test]
fn without_a_configuration_file_any_alert_has_a_plan() {
    let config = Config::load(None, &|_| None).unwrap();
    let route = choose(&config, "anything", None).unwrap();
    let plan = plan(
        &config,
        &route,
        &alert("anything"),
        &Listing::default(),
        &Material::default(),
    )
    .unwrap();
    let [stage] = plan.stages.as_slice() else {
        panic!("one stage")
    };
    let names: Vec<&str> = stage
        .agents
        .iter()
        .map(|agent| agent.name.as_str())
        .collect();
    assert_eq!((plan.chain.as_str(), names), ("default", vec!["sre"]));
    assert_eq!(
        stage.agents[0].providers,
        [provider(
            "scripted",
            "scripted",
            "scripted",
            "recording",
            ""
        )]
    );
    assert_eq!(stage.agents[0].limits, Limits::default());
}

#[test]
fn an_undefined_provider_is_an_error() {
    let mut config = config();
    config.llm_providers.remove("small");
    let route = choose(&config, "", Some("rest")).unwrap();
    let expected = PlanError::Undefined {
        kind: "provider",
        name: "small".to_owned(),
    };
    assert_eq!(
        plan(
            &config,
            &route,
            &alert(""),
            &Listing::default(),
            &Material::default()
        ),
        Err(expected)
    );
}

#[test]
fn every_agent_has_the_fallback_providers_of_its_nearest_layer_without_its_own() {
    let text = CONFIG
        .replace(
            "[Http5xx]\n",
            "[Http5xx]\n    fallback_providers: [large, small]\n",
        )
        .replace(
            "{name: dba, iter",
            "{name: dba, fallback_providers: [], iter",
        );
    let config = Config::parse("f", &text, &|_| None).unwrap();
    let route = choose(&config, "Http5xx", None).unwrap();
    let plan = plan(
        &config,
        &route,
        &alert("Http5xx"),
        &Listing::default(),
        &Material::default(),
    )
    .unwrap();
    let agents = plan.stages.iter().flat_map(|stage| &stage.agents);
    let mut planned = Vec::new();
    for agent in agents {
        let names: Vec<&str> = agent
            .providers
            .iter()
            .map(|provider| provider.name.as_str())
            .collect();
        planned.push(format!("{}: {}", agent.name, names.join(", ")));
    }
    assert_eq!(
        planned,
        ["sre: large, small", "dba: small", "synthesis: small, large"]
    );
}

/// The only agent of a plan with these keys of the provider, the server and the agent.
fn planned(provider: &str, server: &str, agent: &str) -> AgentPlan {
    let text = format!(
        "llm_providers: {{small: {{provider: openai, model: s{provider}}}}}\n\
         mcp_servers: {{k8s: {{command: k{server}}}}}\n\
         agents: {{sre: {{{agent}}}}}\n\
         agent_chains: {{x: {{default: true, stages: [{{agents: [{{name: sre}}]}}]}}}}"
    );
    let config = Config::parse("f", &text, &|_| None).unwrap();
    let route = choose(&config, "", None).unwrap();
    let listing = Listing {
        tools: vec![read_only_tool("k8s.get"), read_only_tool("k8s.top")],
        unavailable: vec![],
    };
    let plan = plan(&config, &route, &alert("x"), &listing, &Material::default()).unwrap();
    AgentPlan::clone(&plan.stages[0].agents[0])
}

#[test]
fn the_prompts_follow_the_keys_of_provider_server_and_agent() {
    let plain = planned("", "", "");
    assert!(!plain.several_actions && plain.tool_names == ToolNames::AsCalled);
    let example = planned(", example: true", "", "");
    assert!(example.system_prompt.contains("One complete answer"));
    assert!(!plain.system_prompt.contains("One complete answer"));
    let about = planned("", ", about: the cluster of prod", "");
    assert!(
        about
            .system_prompt
            .contains("- k8s: the cluster of prod (2 tools)\n"),
        "{}",
        about.system_prompt
    );
    let several = planned("", "", "iteration_strategy: react, several_actions: true");
    assert!(several.several_actions && several.system_prompt.contains("Actions that only read"));
    let native = planned("", "", "several_actions: true");
    assert_eq!(native, plain);
}

#[test]
fn a_plan_with_a_tool_that_needs_approval_has_the_version_of_approvals() {
    let listing = Listing {
        tools: vec![changing_tool("k8s.restart"), read_only_tool("k8s.get")],
        ..Listing::default()
    };
    let planned = |text: &str| {
        let config = Config::parse("f", text, &|_| None).unwrap();
        let route = choose(&config, "Http5xx", None).unwrap();
        let alert = alert("Http5xx");
        plan(&config, &route, &alert, &listing, &Material::default()).unwrap()
    };
    let allowed = planned(CONFIG);
    assert_eq!(allowed.version, FORMAT_VERSION);
    let approved = CONFIG.replace("allow: [restart]", "approve: [restart]");
    let approved = planned(&format!(
        "{approved}approvals: {{policies: {{default: {{approvers: [sre]}}}}}}\n"
    ));
    assert_eq!(approved.version, APPROVALS_VERSION);
    let tool = approved.stages[0].agents[0].tool("k8s.restart").unwrap();
    let policy = tool.approval.as_ref().map(|rule| rule.policy.as_str());
    assert_eq!((tool.read_only, policy), (false, Some("default")));
}
