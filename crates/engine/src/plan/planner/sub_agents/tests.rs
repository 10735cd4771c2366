use tarsy_config::Config;
use tarsy_core::plan::{
    FORMAT_VERSION, Plan, REVIEW_VERSION, SUB_AGENTS_VERSION, StagePlan, Strategy,
};
use tarsy_core::testing::{alert, changing_tool, read_only_tool};

use crate::plan::planner::plan;
use crate::plan::provider_choices::provider_choices;
use crate::plan::route::{choose, servers_of};
use crate::plan::skills::Material;
use crate::ports::{Listing, Unavailable};
use tarsy_core::plan::AgentPlan;

const CONFIG: &str = r#"
llm_providers:
  small: {provider: openai, model: s}
  large: {provider: google, model: l}
mcp_servers:
  k8s: {command: k, read_only: [top], allow: [restart]}
  loki: {command: l}
  db: {command: d}
agents:
  lead: {agents: [logs, base], max_agents: 3, mcp_servers: [k8s]}
  chief: {agents: [logs], mcp_servers: []}
  logs: {description: Finds what a log shows, mcp_servers: [loki, k8s], tools: ['loki.*', 'k8s.top'], max_iterations: 6, past: {given: 1}}
  base: {description: Looks at databases, mcp_servers: [db], llm_provider: small, instructions: Only the replica., required_skills: [], iteration_strategy: native-thinking}
agent_chains:
  one: {llm_provider: large, max_iterations: 4, stages: [{name: look, agents: [{name: lead}]}]}
  text: {iteration_strategy: react, stages: [{agents: [{name: lead}]}]}
  words: {iteration_strategy: synthesis, stages: [{agents: [{name: lead}]}]}
  bare: {stages: [{agents: [{name: chief}]}]}
  plain: {stages: [{agents: [{name: base}]}]}
  review: {review: {when: [always]}, stages: [{agents: [{name: lead}]}]}
defaults: {chain: one, llm_provider: small}
"#;

fn listing() -> Listing {
    Listing {
        tools: vec![
            changing_tool("k8s.restart"),
            changing_tool("k8s.top"),
            read_only_tool("k8s.get"),
            read_only_tool("loki.query"),
            changing_tool("loki.delete"),
            read_only_tool("db.locks"),
        ],
        unavailable: vec![],
    }
}

fn planned_with(chain: &str, listing: &Listing) -> Plan {
    let config = Config::parse("f", CONFIG, &|_| None).unwrap();
    let route = choose(&config, "Http5xx", Some(chain)).unwrap();
    plan(
        &config,
        &route,
        &alert("Http5xx"),
        listing,
        &Material::default(),
    )
    .unwrap()
}

fn planned(chain: &str) -> Plan {
    planned_with(chain, &listing())
}

fn first(plan: &Plan) -> &AgentPlan {
    plan.stages[0].agents[0].as_ref()
}

fn tools(plan: &AgentPlan) -> Vec<&str> {
    plan.tools.iter().map(|tool| tool.name.as_str()).collect()
}

#[test]
fn a_plan_has_the_plans_of_sub_agents_with_the_tools_that_only_read() {
    let plan = planned("one");
    let lead = first(&plan);
    assert_eq!(
        (plan.version, lead.limits.max_agents),
        (SUB_AGENTS_VERSION, 3)
    );
    assert_eq!(
        tools(lead),
        [
            "k8s.get",
            "k8s.restart",
            "k8s.top",
            "tarsy.dispatch_agent",
            "tarsy.past_investigations",
            "tarsy.read_result"
        ]
    );
    let [logs, base] = lead.sub_agents.as_slice() else {
        panic!("{:?}", lead.sub_agents);
    };
    assert_eq!(
        (logs.name.as_str(), logs.description.as_str()),
        ("logs", "Finds what a log shows")
    );
    assert_eq!(
        tools(&logs.plan),
        [
            "k8s.top",
            "loki.query",
            "tarsy.past_investigations",
            "tarsy.read_result"
        ]
    );
    assert!(logs.plan.tools.iter().all(|tool| tool.read_only));
    assert!(logs.plan.sub_agents.is_empty() && logs.plan.limits.max_agents == 0);
    assert!(logs.plan.system_prompt.starts_with("You are logs, "));
    assert!(logs.plan.system_prompt.contains("\nNot found:"));
    assert!(base.plan.system_prompt.contains("Only the replica."));
    assert!(!base.plan.system_prompt.contains("{{"));
    assert!(
        lead.system_prompt
            .contains("\n- base: Looks at databases\n")
    );
}

#[test]
fn the_model_of_a_sub_agent_is_its_own_or_that_of_its_parent() {
    let plan = planned("one");
    let models: Vec<&str> = plan
        .agents()
        .map(|agent| agent.providers[0].name.as_str())
        .collect();
    assert_eq!(models, ["large", "large", "small"]);
    let limits: Vec<u32> = plan
        .agents()
        .map(|agent| agent.limits.max_iterations)
        .collect();
    assert_eq!(
        limits,
        [4, 6, 20],
        "limits of the chain are those of its agents"
    );
    let text = planned("text");
    let strategies: Vec<Strategy> = text.agents().map(|agent| agent.strategy).collect();
    assert_eq!(
        strategies,
        [Strategy::React, Strategy::React, Strategy::NativeThinking]
    );
    let logs = &text.stages[0].agents[0].sub_agents[0].plan;
    assert!(logs.system_prompt.contains("Action Input:"));
}

#[test]
fn an_agent_without_servers_dispatches_and_one_without_tools_does_not() {
    let plan = planned("bare");
    let lead = first(&plan);
    assert_eq!(
        tools(lead),
        [
            "tarsy.dispatch_agent",
            "tarsy.past_investigations",
            "tarsy.read_result"
        ]
    );
    assert_eq!(lead.limits.max_agents, 8);
    let words = planned("words");
    assert_eq!(
        (words.version, first(&words).sub_agents.len()),
        (FORMAT_VERSION, 0)
    );
}

#[test]
fn a_sub_agent_without_tools_is_left_out_and_its_server_is_named() {
    let listing = Listing {
        tools: vec![read_only_tool("k8s.top"), read_only_tool("loki.query")],
        unavailable: vec![Unavailable {
            server: "db".to_owned(),
            why: "down".to_owned(),
        }],
    };
    let plan = planned_with("one", &listing);
    let names: Vec<&str> = plan.agents().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["lead", "logs"]);
    assert!(
        first(&plan)
            .system_prompt
            .contains("so none of their tools can be called: db.")
    );
}

#[test]
fn what_a_chain_needs_includes_the_servers_and_models_of_sub_agents() {
    let config = Config::parse("f", CONFIG, &|_| None).unwrap();
    let route = choose(&config, "", Some("one")).unwrap();
    assert_eq!(servers_of(&config, &route), ["db", "k8s", "loki"]);
    let choices: Vec<Vec<String>> = provider_choices(&config, &route).into_iter().collect();
    assert_eq!(choices, [["large"], ["small"]]);
    let plain = choose(&config, "", Some("plain")).unwrap();
    assert_eq!(servers_of(&config, &plain), ["db"]);
}

#[test]
fn a_reviewer_has_no_sub_agents() {
    let plan = planned("review");
    let reviewer: &StagePlan = plan.stages.last().unwrap();
    let agent = reviewer.agent(1).unwrap();
    assert!(REVIEW_VERSION < plan.version);
    assert_eq!((agent.sub_agents.len(), agent.limits.max_agents), (0, 0));
    assert!(
        agent
            .tools
            .iter()
            .all(|tool| tool.name != "tarsy.dispatch_agent")
    );
}

#[test]
fn only_a_plan_with_sub_agents_has_words_of_them() {
    for chain in ["one", "plain"] {
        let plan = planned(chain);
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(text.contains("sub_agents"), chain == "one", "{text}");
        assert_eq!(text.contains("max_agents"), chain == "one", "{text}");
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    }
}
