//! The sub-agents of an agent: plans of their own, frozen in that of their parent. Pure.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{AgentRequest, Given, agent_plan, with_runbook};
use crate::plan::agent_tools::servers_for;
use crate::plan::error::{PlanError, undefined};
use crate::plan::stage_agents;
use crate::ports::Listing;
use tarsy_config::{Config, Settings};
use tarsy_core::plan::{AgentPlan, AnswerCheck, Strategy, SubAgent, ToolSpec};
use tarsy_core::prompt::sub_agent;
use tarsy_core::read_result;
use tarsy_core::sub_agents::{MAX_AGENTS, section, spec};

/// The sub-agents that an agent may dispatch; by default none.
#[derive(Default)]
pub(in crate::plan) struct SubAgents {
    pub(super) plans: Vec<SubAgent>,
    /// The number of tasks that they may get in all; 0 without any.
    pub(super) max_agents: u32,
    /// The servers whose tools they may call, those that are unavailable included.
    pub(super) servers: BTreeSet<String>,
}

impl SubAgents {
    /// The tool that dispatches them.
    pub(super) fn tool(&self) -> Option<ToolSpec> {
        (!self.plans.is_empty()).then(|| spec(&self.plans))
    }

    /// The section of the system message.
    pub(super) fn section(&self, strategy: Strategy) -> String {
        section(&self.plans, self.max_agents, strategy)
    }
}

/// Makes the plans of the sub-agents of an agent with these settings. One that has no tool now is left out: it could
/// look at nothing.
///
/// # Errors
/// When the configuration refers to a name that it does not define.
pub(super) fn plans(
    config: &Config,
    parent: &str,
    settings: &Settings,
    given: &Given<'_>,
    listing: &Listing,
) -> Result<SubAgents, PlanError> {
    let mut sub_agents = SubAgents::default();
    let mut listing = listing.clone();
    // What a sub-agent does can be done again, and waits for no person.
    listing.tools.retain(|tool| tool.read_only);
    for agent in stage_agents::sub_agents(config, parent, settings) {
        let defined = config
            .agents
            .get(agent.name)
            .ok_or_else(|| undefined("agent", agent.name))?;
        sub_agents
            .servers
            .extend(servers_for(config, &agent.settings));
        let request = AgentRequest {
            name: agent.name,
            instructions: &defined.instructions,
            settings: &agent.settings,
            material: given.material,
            reader: read_result::spec(),
            sub_agents: SubAgents::default(),
        };
        let plan = agent_plan(
            config,
            &request,
            |briefing| with_runbook(sub_agent(briefing, given.alert), given.material),
            &listing,
        )?;
        if plan.tools.is_empty() {
            continue;
        }
        sub_agents.plans.push(SubAgent {
            name: agent.name.to_owned(),
            description: defined.description.clone(),
            // Its answer is no analysis: it has another form, and its parent judges it.
            plan: Arc::new(AgentPlan {
                answer_check: AnswerCheck::Off,
                checks_figures: false,
                ..plan
            }),
        });
    }
    if !sub_agents.plans.is_empty() {
        let parent = config.agents.get(parent);
        let max_agents = parent.and_then(|parent| parent.max_agents);
        sub_agents.max_agents = max_agents.unwrap_or(MAX_AGENTS);
    }
    Ok(sub_agents)
}

#[cfg(test)]
mod tests;
