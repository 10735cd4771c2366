//! The plan of a follow-up question: one agent of the investigation's chain, with the present configuration and
//! separate prompts. Pure.

use std::sync::Arc;

use super::agent_tools::servers_for;
use super::callable::callable;
use super::error::{PlanError, undefined};
use super::planner::{AgentRequest, SubAgents, agent_plan, names_of, version};
use super::route::{Route, choose};
use super::skills::Material;
use super::stage_agents::{agents_with_settings, strategy};
use crate::ports::Listing;
use tarsy_config::{Config, Settings};
use tarsy_core::alert::policy::OnResolved;
use tarsy_core::follow_up::{STAGE, Thread, prompts};
use tarsy_core::plan::{AgentPlan, AnswerCheck, PastPlan, Plan, StagePlan, SuccessPolicy};
use tarsy_core::read_result;
use tarsy_core::skills::Skill;

/// The agent that answers: the first one of the chain that may call tools, otherwise its first one.
struct Answerer<'a> {
    name: &'a str,
    settings: Settings,
}

/// Chooses the chain that the header names, otherwise the chain of the investigation if it still exists, otherwise the
/// one of the alert's type, otherwise the default.
///
/// # Errors
/// When the header names a chain that is not defined.
pub fn route<'a>(
    config: &'a Config,
    thread: &Thread,
    header: Option<&str>,
) -> Result<Route<'a>, PlanError> {
    let named = header.map(str::trim).filter(|named| !named.is_empty());
    let previous =
        Some(thread.chain.as_str()).filter(|chain| config.agent_chains.contains_key(*chain));
    choose(config, &thread.alert.alert_type, named.or(previous))
}

/// The MCP servers whose tools the agent may call, sorted.
pub fn servers_of(config: &Config, route: &Route<'_>) -> Vec<String> {
    let mut servers = match answerer(config, route) {
        Some(agent) if strategy(&agent.settings).uses_tools() => {
            servers_for(config, &agent.settings)
        }
        Some(_) | None => Vec::new(),
    };
    servers.sort();
    servers
}

/// A question about an investigation.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub thread: &'a Thread,
    pub question: &'a str,
    /// The present skills.
    pub skills: &'a [Arc<Skill>],
}

/// Makes the plan of a question. `listing` has the tools that the agent's servers offer now.
///
/// # Errors
/// When the configuration refers to a name that it does not define.
pub fn plan(
    config: &Config,
    route: &Route<'_>,
    asked: &Asked<'_>,
    listing: &Listing,
) -> Result<Plan, PlanError> {
    let Answerer { name, settings } =
        answerer(config, route).ok_or_else(|| undefined("chain", route.name))?;
    let defined = config
        .agents
        .get(name)
        .ok_or_else(|| undefined("agent", name))?;
    let mut listing = callable(config, listing);
    // The person who asks is no operator: no tool may change anything, unless the chain allows it to questions. Tools
    // whose calls a person approves count as changing.
    listing
        .tools
        .retain(|tool| tool.read_only || route.chain.questions.changes);
    let request = AgentRequest {
        name,
        instructions: &defined.instructions,
        settings: &settings,
        material: &Material {
            skills: asked.skills,
            ..Material::default()
        },
        reader: read_result::thread_spec(),
        // A question is answered by one agent.
        sub_agents: SubAgents::default(),
    };
    let agent = agent_plan(
        config,
        &request,
        |briefing| prompts(briefing, asked.thread, asked.question),
        &listing,
    )?;
    let agent = AgentPlan {
        citable: Some(asked.thread.citable()),
        answer_check: AnswerCheck::Once,
        checks_figures: false,
        // A question is about one investigation, whose report its first message has.
        past: agent.past.map(|past| PastPlan { given: 0, ..past }),
        ..agent
    };
    let stage = StagePlan {
        name: STAGE.to_owned(),
        success_policy: SuccessPolicy::Any,
        agents: vec![agent.into()],
        review: None,
    };
    let stages = vec![stage];
    Ok(Plan {
        version: version(&stages),
        chain: route.name.to_owned(),
        route: None,
        stages,
        unavailable_servers: names_of(&listing.unavailable),
        on_resolved: OnResolved::default(),
    })
}

fn answerer<'a>(config: &Config, route: &Route<'a>) -> Option<Answerer<'a>> {
    let agents = agents_with_settings(config, route.chain);
    let mut agents = agents.map(|(agent, settings)| Answerer {
        name: &agent.name,
        settings,
    });
    let first = agents.next()?;
    if strategy(&first.settings).uses_tools() {
        return Some(first);
    }
    Some(
        agents
            .find(|agent| strategy(&agent.settings).uses_tools())
            .unwrap_or(first),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_core::chain::RunStatus;
    use tarsy_core::ids::SessionId;
    use tarsy_core::plan::{APPROVALS_VERSION, FORMAT_VERSION, Strategy};
    use tarsy_core::testing::{alert, changing_tool, read_only_tool};

    const CONFIG: &str = r#"
llm_providers:
  small: {provider: openai, model: s, api_key_env: SMALL_KEY}
mcp_servers:
  k8s: {command: k, read_only: [logs]}
  prom: {command: p}
agents:
  reader: {iteration_strategy: ""}
  sre: {mcp_servers: [k8s], max_iterations: 2, instructions: Be quick.}
  writer: {iteration_strategy: react, mcp_servers: [prom]}
agent_chains:
  web:
    alert_types: [Http5xx]
    review: {when: [always]}
    stages:
    - {name: read, agents: [{name: reader}]}
    - {name: look, max_iterations: 7, agents: [{name: sre}, {name: writer}]}
  plain: {default: true, stages: [{agents: [{name: reader}]}]}
defaults: {llm_provider: small}
"#;

    fn asked<'a>(thread: &'a Thread, question: &'a str) -> Asked<'a> {
        Asked {
            thread,
            question,
            skills: &[],
        }
    }

    fn thread(chain: &str) -> Thread {
        Thread {
            root: SessionId::parse("0198b2c4-5d6e-7f80-9a1b-2c3d77d0b3aa").unwrap(),
            status: RunStatus::Completed,
            ended_at: None,
            chain: chain.to_owned(),
            alert: alert("Http5xx"),
            analysis: Some("Cause: c".to_owned()),
            error: None,
            calls: vec![],
            asked: vec![],
            older: 0,
        }
    }

    #[test]
    fn a_question_takes_the_chain_of_its_investigation_while_it_exists() {
        let config = Config::parse("f", CONFIG, &|_| None).unwrap();
        let chosen =
            |chain: &str, header| route(&config, &thread(chain), header).map(|route| route.name);
        assert_eq!(chosen("plain", None), Ok("plain"));
        assert_eq!(chosen("removed since", None), Ok("web"));
        assert_eq!(chosen("web", Some("plain")), Ok("plain"));
        assert!(matches!(
            chosen("web", Some("wbe")),
            Err(PlanError::UnknownChain { .. })
        ));
    }

    #[test]
    fn the_first_agent_with_tools_answers_alone() {
        let config = Config::parse("f", CONFIG, &|_| None).unwrap();
        let thread = thread("web");
        let route = route(&config, &thread, None).unwrap();
        assert_eq!(servers_of(&config, &route), ["k8s"]);
        let tools = vec![
            changing_tool("k8s.logs"),
            changing_tool("k8s.delete"),
            read_only_tool("prom.query"),
        ];
        let listing = Listing {
            tools,
            unavailable: vec![],
        };
        let plan = plan(&config, &route, &asked(&thread, "Is it over?"), &listing).unwrap();
        let [stage] = plan.stages.as_slice() else {
            panic!("one stage")
        };
        let [agent] = stage.agents.as_slice() else {
            panic!("one agent")
        };
        let names: Vec<&str> = agent.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(
            (
                plan.chain.as_str(),
                stage.name.as_str(),
                agent.name.as_str()
            ),
            ("web", "follow-up", "sre")
        );
        assert_eq!(stage.review, None, "no answer to a question is reviewed");
        assert_eq!(
            (agent.strategy, agent.limits.max_iterations, names),
            (
                Strategy::NativeThinking,
                7,
                vec!["k8s.logs", "tarsy.past_investigations", "tarsy.read_result"]
            )
        );
        assert!(
            agent.system_prompt.contains("Be quick.")
                && agent.user_prompt.contains("question\nIs it over?\n")
        );
        assert!(
            !agent.conclusion_prompt.contains("Evidence"),
            "{}",
            agent.conclusion_prompt
        );
    }

    #[test]
    fn a_question_has_the_fallback_providers_of_the_agent_that_answers() {
        let large = "  large: {provider: google, model: l, api_key_env: LARGE_KEY}\n";
        let text = CONFIG
            .replace("mcp_servers:\n", &format!("{large}mcp_servers:\n"))
            .replace(
                "instructions: Be quick.",
                "instructions: Be quick., fallback_providers: [large]",
            );
        let config = Config::parse("f", &text, &|_| None).unwrap();
        let names = |chain: &str| {
            let thread = thread(chain);
            let route = route(&config, &thread, None).unwrap();
            let plan = plan(
                &config,
                &route,
                &asked(&thread, "why?"),
                &Listing::default(),
            )
            .unwrap();
            plan.stages[0].agents[0]
                .providers
                .iter()
                .map(|provider| provider.name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (names("web"), names("plain")),
            (vec!["small".into(), "large".into()], vec!["small".into()])
        );
    }

    #[test]
    fn a_question_gets_changing_tools_only_if_its_chain_allows_it() {
        let changing = ["k8s.logs", "k8s.restart", "k8s.delete"].map(changing_tool);
        let tools: Vec<_> = std::iter::once(read_only_tool("k8s.get"))
            .chain(changing)
            .collect();
        let listing = Listing {
            tools,
            unavailable: vec![],
        };
        let offered = |questions: &str| {
            let text = CONFIG
                .replace("read_only: [logs]", "read_only: [logs], allow: [restart]")
                .replace(
                    "alert_types: [Http5xx]",
                    &format!("alert_types: [Http5xx]\n    questions: {questions}"),
                );
            let config = Config::parse("f", &text, &|_| None).unwrap();
            let thread = thread("web");
            let route = route(&config, &thread, None).unwrap();
            let plan = plan(&config, &route, &asked(&thread, "Restart it!"), &listing).unwrap();
            let agent = &plan.stages[0].agents[0];
            let names: Vec<String> = agent.tools.iter().map(|tool| tool.name.clone()).collect();
            (
                names,
                agent.system_prompt.contains("you cannot change anything"),
            )
        };
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let read_only = names(&[
            "k8s.get",
            "k8s.logs",
            "tarsy.past_investigations",
            "tarsy.read_result",
        ]);
        assert_eq!(offered("{}"), (read_only.clone(), true));
        assert_eq!(offered("{changes: false}"), (read_only, true));
        let all = names(&[
            "k8s.get",
            "k8s.logs",
            "k8s.restart",
            "tarsy.past_investigations",
            "tarsy.read_result",
        ]);
        assert_eq!(offered("{changes: true}"), (all, false));
    }

    #[test]
    fn a_question_gets_tools_that_need_approval_only_if_its_chain_allows_changes() {
        let listing = Listing {
            tools: vec![read_only_tool("k8s.get"), changing_tool("k8s.restart")],
            unavailable: vec![],
        };
        let offered = |changes: &str| {
            let text = CONFIG
                .replace("read_only: [logs]", "approve: [get, restart]")
                .replace(
                    "alert_types: [Http5xx]",
                    &format!("alert_types: [Http5xx]\n    questions: {{changes: {changes}}}"),
                );
            let text =
                format!("{text}approvals: {{policies: {{default: {{approvers: [sre]}}}}}}\n");
            let config = Config::parse("f", &text, &|_| None).unwrap();
            let thread = thread("web");
            let route = route(&config, &thread, None).unwrap();
            let plan = plan(&config, &route, &asked(&thread, "Restart it!"), &listing).unwrap();
            let tools = plan.stages[0].agents[0].tools.iter();
            let waiting = tools.filter(|tool| tool.approval.is_some()).count();
            (plan.version, waiting)
        };
        assert_eq!(offered("false"), (FORMAT_VERSION, 0));
        assert_eq!(offered("true"), (APPROVALS_VERSION, 2));
    }

    #[test]
    fn a_chain_without_tools_answers_from_the_report() {
        let config = Config::parse("f", CONFIG, &|_| None).unwrap();
        let thread = thread("plain");
        let route = route(&config, &thread, None).unwrap();
        assert_eq!(servers_of(&config, &route), Vec::<String>::new());
        let plan = plan(
            &config,
            &route,
            &asked(&thread, "why?"),
            &Listing::default(),
        )
        .unwrap();
        assert_eq!(
            (plan.stages.len(), plan.stages[0].agents[0].strategy),
            (1, Strategy::SingleCall)
        );
    }
}
