//! The planner: makes the frozen plan of a session from the configuration, the alert and the listed tools. Pure.
//!
//! The caller [chooses](super::route::choose) the chain, lists the tools of
//! [its servers](super::route::servers_of), and [plans](plan).

mod sub_agents;

use std::borrow::Cow;
use std::sync::Arc;

pub(super) use self::sub_agents::SubAgents;
use super::agent_tools::{AgentTools, agent_tools, servers_for};
use super::callable::callable;
use super::error::{PlanError, undefined};
use super::past;
use super::presentation;
use super::provider_choices::providers;
use super::review;
use super::route::Route;
use super::skills::{self, Material};
use super::stage_agents::{
    agents_of, limits, needs_synthesis, settings, strategy, synthesis, wrap_up_ms,
};
use super::summaries;
use crate::ports::{Listing, Unavailable};
use tarsy_config::{Config, Settings, Stage};
use tarsy_core::alert::Alert;
use tarsy_core::load_skill;
use tarsy_core::missing_tools::{without_servers, without_tools};
use tarsy_core::plan::{
    APPROVALS_VERSION, AgentPlan, AnswerCheck, FORMAT_VERSION, Limits, Plan, ProviderPlan,
    REVIEW_VERSION, ResultForm, SUB_AGENTS_VERSION, StagePlan, Strategy, SuccessPolicy, ToolNames,
    ToolSpec,
};
use tarsy_core::prompt::{Briefing, PromptOptions, Prompts, ServerAbout, prompts};
use tarsy_core::read_result;
use tarsy_core::skill_sections;
use tarsy_core::skills::SkillRef;
use tarsy_core::tool_names;

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
    material: &Material<'_>,
) -> Result<Plan, PlanError> {
    let listing = callable(config, listing);
    let mut stages = Vec::with_capacity(route.chain.stages.len());
    for (index, stage) in route.chain.stages.iter().enumerate() {
        let agents = agents_of(stage).into_iter().map(|(name, agent)| {
            let settings = settings(config, route.chain, stage, agent);
            let defined = config
                .agents
                .get(&agent.name)
                .ok_or_else(|| undefined("agent", &agent.name))?;
            let given = Given { alert, material };
            let sub_agents = sub_agents::plans(config, &agent.name, &settings, &given, &listing)?;
            let request = AgentRequest {
                name: &name,
                instructions: &defined.instructions,
                settings: &settings,
                material,
                reader: read_result::spec(),
                sub_agents,
            };
            agent_plan(
                config,
                &request,
                |briefing| with_runbook(prompts(briefing, alert), material),
                &listing,
            )
            .map(Arc::new)
        });
        stages.push(StagePlan {
            name: stage.name.clone(),
            success_policy: stage
                .success_policy
                .or(route.chain.success_policy)
                .unwrap_or(config.defaults.success_policy),
            agents: agents.collect::<Result<_, PlanError>>()?,
            review: None,
        });
        if needs_synthesis(config, route.chain, index) {
            stages.push(synthesis_stage(
                config,
                route,
                stage,
                &Given { alert, material },
            )?);
        }
    }
    stages.extend(review::stage(config, route.chain, alert, &stages)?);
    Ok(Plan {
        version: version(&stages),
        chain: route.name.to_owned(),
        route: None,
        stages,
        unavailable_servers: names_of(&listing.unavailable),
        on_resolved: config.dedupe.on_resolved,
    })
}

/// The lowest version that can run these stages.
pub(super) fn version(stages: &[StagePlan]) -> u32 {
    let agents = || stages.iter().flat_map(|stage| &stage.agents);
    let mut tools = agents().flat_map(|agent| &agent.tools);
    if tools.any(|tool| tool.approval.is_some()) {
        APPROVALS_VERSION
    } else if agents().any(|agent| !agent.sub_agents.is_empty()) {
        SUB_AGENTS_VERSION
    } else if stages.iter().any(|stage| stage.review.is_some()) {
        REVIEW_VERSION
    } else {
        FORMAT_VERSION
    }
}

/// Adds the skill that takes the place of the runbook.
pub(super) fn with_runbook(texts: Prompts, material: &Material<'_>) -> Prompts {
    match material.runbook_skill {
        Some(skill) => Prompts {
            user: skill_sections::with_runbook(&texts.user, skill),
            ..texts
        },
        None => texts,
    }
}

/// The alert and the texts that the stages of an investigation share.
pub(super) struct Given<'a> {
    pub(super) alert: &'a Alert,
    pub(super) material: &'a Material<'a>,
}

/// The stage that combines the findings of `stage`. Its agent need not be defined.
fn synthesis_stage(
    config: &Config,
    route: &Route<'_>,
    stage: &Stage,
    given: &Given<'_>,
) -> Result<StagePlan, PlanError> {
    let (name, settings) = synthesis(config, route.chain, stage);
    let instructions = config
        .agents
        .get(&name)
        .map(|agent| agent.instructions.as_str())
        .unwrap_or_default();
    let request = AgentRequest {
        name: &name,
        instructions,
        settings: &settings,
        material: &given.material.without_runbook(),
        reader: read_result::spec(),
        sub_agents: SubAgents::default(),
    };
    let agent = agent_plan(
        config,
        &request,
        |briefing| prompts(briefing, given.alert),
        &Listing::default(),
    )?;
    Ok(StagePlan {
        name: format!("{} synthesis", stage.name),
        success_policy: SuccessPolicy::default(),
        agents: vec![agent.into()],
        review: None,
    })
}

/// An agent to make a plan for.
pub(super) struct AgentRequest<'a> {
    pub(super) name: &'a str,
    pub(super) instructions: &'a str,
    pub(super) settings: &'a Settings,
    pub(super) material: &'a Material<'a>,
    /// The built-in tool that reads results again.
    pub(super) reader: ToolSpec,
    pub(super) sub_agents: SubAgents,
}

/// Makes the plan of one agent; `prompts` writes its prompts.
pub(super) fn agent_plan(
    config: &Config,
    request: &AgentRequest<'_>,
    prompts: impl Fn(&Briefing<'_>) -> Prompts,
    listing: &Listing,
) -> Result<AgentPlan, PlanError> {
    let settings = request.settings;
    let strategy = strategy(settings);
    let servers = if strategy.uses_tools() {
        servers_for(config, settings)
    } else {
        Vec::new()
    };
    let AgentTools {
        mut tools,
        left_out,
    } = agent_tools(config, settings, &listing.tools);
    tools.extend(request.sub_agents.tool());
    let mut missing = names_of(&listing.unavailable);
    missing
        .retain(|server| servers.contains(server) || request.sub_agents.servers.contains(server));
    let providers = providers(config, settings, &tools)?;
    let summaries = summaries::plan(config, settings, &servers, &providers)?;
    let skills = skills::of_agent(settings, request.material, &tools);
    let loadable = skills.loadable.iter();
    let references: Vec<SkillRef> = loadable.map(|skill| skill.reference()).collect();
    // An agent without tools has no results to read again, and looks nothing up.
    if !tools.is_empty() {
        tools.extend(own_tools(request, &references));
        tools.sort_by(|one, other| one.name.cmp(&other.name));
    }
    let limits = Limits {
        max_agents: request.sub_agents.max_agents,
        ..limits(settings)
    };
    let sections = skills.sections(strategy) + &request.sub_agents.section(strategy);
    let abouts = abouts(config, &servers);
    let several_actions = settings.several_actions.unwrap_or(false) && strategy.writes_calls();
    let briefing = Briefing {
        agent: request.name,
        strategy,
        tools: &tools,
        instructions: request.instructions,
        max_iterations: limits.max_iterations,
        runbooks: &config.runbooks.listed(),
        fetched: request.material.runbook,
        skills: &sections,
        options: PromptOptions {
            abouts: &abouts,
            native_tools: providers.first().map_or(&[], |first| &first.native_tools),
            has_example: has_example(config, &providers),
            has_several_actions: several_actions,
        },
    };
    let texts = prompts(&briefing);
    Ok(AgentPlan {
        name: request.name.to_owned(),
        strategy,
        limits,
        providers,
        tools,
        omitted_tools: u32::try_from(left_out.len()).unwrap_or(u32::MAX),
        system_prompt: without_tools(
            without_servers(texts.system, &missing),
            &shown(&left_out, strategy),
        ),
        user_prompt: texts.user,
        conclusion_prompt: texts.conclusion,
        result_form: ResultForm::Indented,
        citable: None,
        summaries,
        answer_check: AnswerCheck::Once,
        checks_figures: settings.check_figures.unwrap_or(true),
        clock: None,
        wrap_up_ms: wrap_up_ms(settings),
        reviews: false,
        presentation: presentation::plan(config, settings, &servers),
        tool_names: ToolNames::AsCalled,
        several_actions,
        skills: references,
        past: past::plan(settings),
        sub_agents: request.sub_agents.plans.clone(),
    })
}

/// The tools of tarsy for an agent with tools, without the one for its sub-agents.
fn own_tools(request: &AgentRequest<'_>, skills: &[SkillRef]) -> Vec<ToolSpec> {
    let mut tools = vec![request.reader.clone()];
    if !skills.is_empty() {
        tools.push(load_skill::spec(skills));
    }
    tools.extend(past::tool(request.settings));
    tools
}

/// The operators' words about these servers.
fn abouts(config: &Config, servers: &[String]) -> Vec<ServerAbout> {
    let described = servers.iter().filter_map(|name| {
        let about = config.mcp_servers.get(name)?.about.trim();
        (!about.is_empty()).then(|| ServerAbout {
            server: name.clone(),
            about: about.to_owned(),
        })
    });
    described.collect()
}

/// Whether the prompts have an example: those that take over have the same prompts as the first provider.
fn has_example(config: &Config, providers: &[ProviderPlan]) -> bool {
    let first = providers
        .first()
        .and_then(|first| config.llm_providers.get(&first.name));
    first.is_some_and(|provider| provider.example)
}

/// The names of tools for a model of this strategy.
fn shown(names: &[String], strategy: Strategy) -> Vec<String> {
    let shown = names.iter().map(|name| tool_names::shown(name, strategy));
    shown.map(Cow::into_owned).collect()
}

pub(super) fn names_of(unavailable: &[Unavailable]) -> Vec<String> {
    unavailable
        .iter()
        .map(|unavailable| unavailable.server.clone())
        .collect()
}

#[cfg(test)]
mod tests;
