//! The plan of a session: chain, stages, agents, limits, tools and prompts, frozen when the session is opened.
//!
//! A resume reads the plan, never the configuration, so a rolling deploy cannot change a running investigation.
//! Secrets are names of environment variables, never values.

mod approval;
pub mod option;
mod past;
mod presentation;
mod provider;
mod sub_agent;
mod summary;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::alert::policy::OnResolved;
use super::clock::ClockPlan;
use super::skills::SkillRef;

pub use approval::{ApprovalRule, OnTimeout, WhenResolved};
pub use past::{PastPlan, PastScope};
pub use presentation::PresentationPlan;
pub use provider::{NativeTool, NativeToolsMode, ProviderPlan, Thinking, ThinkingLevel};
pub use sub_agent::SubAgent;
pub use summary::SummaryPlan;

/// The version of the plan and journal format that this program writes, unless the plan needs a newer one.
pub const FORMAT_VERSION: u32 = 5;

/// The version of a plan with a review: an earlier program would take its last stage for a usual one.
pub const REVIEW_VERSION: u32 = 6;

/// The version of a plan with sub-agents: an earlier program knows neither their entries nor their executions.
pub const SUB_AGENTS_VERSION: u32 = 7;

/// The version of a plan with a tool whose calls wait for a person: an earlier program would send them at once.
pub const APPROVALS_VERSION: u32 = 8;

/// The newest version that this program runs. It runs this one and older ones; it releases a session with a newer one.
pub const NEWEST_VERSION: u32 = APPROVALS_VERSION;

/// The plan of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The lowest version that can run the plan, as the worker that opened the session knew it.
    pub version: u32,
    pub chain: String,
    /// The route that matched the alert; absent in older plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// The stages in order; at least one.
    pub stages: Vec<StagePlan>,
    /// MCP servers of the chain that were unavailable when the session was opened: no agent has their tools. A later
    /// alert cannot be covered by the cooldown of such a session (`store/sql/open.sql`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable_servers: Vec<String>,
    /// The effect of a resolved alert on the session; `store/sql/open.sql` reads it, too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_resolved: OnResolved,
}

/// A stage: agents that run at the same time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StagePlan {
    /// Shown on the timeline.
    pub name: String,
    /// The condition for the stage to count as completed.
    pub success_policy: SuccessPolicy,
    /// The agents in order; at least one. An execution shares its agent's part.
    pub agents: Vec<Arc<AgentPlan>>,
    /// The condition for a review to begin; `None` for any other stage. A review is the last stage of its plan, has one
    /// agent, and is optional: one that does not complete leaves the analysis as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewWhen>,
}

/// The condition for a review to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewWhen {
    /// The analysis is not proven, or does not call itself certain.
    Weak,
    Always,
}

impl Plan {
    /// The stage of this number, counted from 1.
    pub fn stage(&self, stage_no: u32) -> Option<&StagePlan> {
        numbered(&self.stages, stage_no)
    }

    /// All agents, each of a stage before its sub-agents.
    pub fn agents(&self) -> impl Iterator<Item = &Arc<AgentPlan>> {
        let of_stages = self.stages.iter().flat_map(|stage| &stage.agents);
        of_stages.flat_map(|agent| {
            let sub_agents = agent.sub_agents.iter().map(|sub_agent| &sub_agent.plan);
            std::iter::once(agent).chain(sub_agents)
        })
    }

    /// Changes each agent: those of stages, and their sub-agents.
    pub fn change_agents(&mut self, change: impl Fn(&mut AgentPlan)) {
        for agent in self.stages.iter_mut().flat_map(|stage| &mut stage.agents) {
            let agent = Arc::make_mut(agent);
            change(agent);
            for sub_agent in &mut agent.sub_agents {
                change(Arc::make_mut(&mut sub_agent.plan));
            }
        }
    }

    /// The plan with this clock for all of its agents.
    #[must_use]
    pub fn with_clock(mut self, clock: ClockPlan) -> Self {
        self.change_agents(|agent| agent.clock = Some(clock));
        self
    }
}

impl StagePlan {
    /// The agent of this number, counted from 1.
    pub fn agent(&self, agent_no: u32) -> Option<&Arc<AgentPlan>> {
        numbered(&self.agents, agent_no)
    }
}

fn numbered<T>(all: &[T], number: u32) -> Option<&T> {
    all.get(usize::try_from(number.checked_sub(1)?).ok()?)
}

/// The condition for a stage with several agents to count as completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum SuccessPolicy {
    /// The stage completes when one agent has completed.
    #[default]
    Any,
    /// Every agent has to complete.
    All,
}

crate::words!(pub SuccessPolicy, pub ALL);

/// The plan of an agent's run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentPlan {
    pub name: String,
    pub strategy: Strategy,
    pub limits: Limits,
    /// Providers in order of preference; never empty.
    pub providers: Vec<ProviderPlan>,
    /// The tools that it may call, as listed when the session was opened.
    pub tools: Vec<ToolSpec>,
    /// The number of tools of its servers that were omitted because there were too many.
    #[serde(default, skip_serializing_if = "is_default")]
    pub omitted_tools: u32,
    pub system_prompt: String,
    /// The first user message, with the alert and its runbook. The findings of the stage before are added when the
    /// stage begins.
    pub user_prompt: String,
    /// The user message that forces a conclusion.
    pub conclusion_prompt: String,
    /// The form of results in prompts; absent in plans older than format 4.
    #[serde(default, skip_serializing_if = "is_default")]
    pub result_form: ResultForm,
    /// The numbers of the events that the answer to a follow-up question may cite: those of the investigation that it
    /// is about. The conversation does not show their results. The answer cites no results of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub citable: Option<Vec<u32>>,
    /// The results that are summarised; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summaries: Option<SummaryPlan>,
    /// Whether a final answer is checked before it counts; absent in older plans.
    #[serde(default, skip_serializing_if = "is_default")]
    pub answer_check: AnswerCheck,
    /// Whether the numbers and times in cause and evidence have to occur in what they cite; not in older plans.
    #[serde(default, skip_serializing_if = "is_default")]
    pub checks_figures: bool,
    /// The times that its messages state; absent in older plans, whose messages state none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockPlan>,
    /// The part of the session's time that is kept for its conclusion, in milliseconds; 0 for none, as in older plans.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wrap_up_ms: u64,
    /// Whether its answer is a verdict on the analysis of the stage before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reviews: bool,
    /// The form in which results are presented; absent in older plans, which show them as they are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub presentation: PresentationPlan,
    /// The spelling of names of tools in texts for the model; absent in older plans.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tool_names: ToolNames,
    /// Whether an answer in the text format may have several read-only actions; otherwise its last one counts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub several_actions: bool,
    /// The skills that it may load, with the hashes of their texts; none in older plans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillRef>,
    /// The earlier investigations that it may know; `None` for none, as in older plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub past: Option<PastPlan>,
    /// The agents that it may give a part of its work to; none in older plans, and none for a sub-agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sub_agents: Vec<SubAgent>,
}

/// The spelling of names of tools in texts for the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolNames {
    /// The full name, whatever the model calls: a plan of an older version.
    #[default]
    Full,
    /// The name by which the model can call the tool.
    AsCalled,
}

/// Whether a final answer is checked before it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerCheck {
    /// The analysis is not asked again, and gets no mark for what it lacks: a plan of an older version.
    #[default]
    Off,
    /// The first faulty answer is asked for once more; the one that counts is marked.
    Once,
}

impl AgentPlan {
    /// Whether a part of the session's time is kept for its conclusion. An agent without tools has only one answer.
    pub fn wraps_up(&self) -> bool {
        self.wrap_up_ms > 0 && self.strategy.uses_tools()
    }

    /// The sub-agent of this name.
    pub fn sub_agent(&self, name: &str) -> Option<&SubAgent> {
        self.sub_agents.iter().find(|agent| agent.name == name)
    }

    /// The tool of this full name.
    pub fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The form of tool results in prompts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultForm {
    /// Unchanged: the form of plans older than format 4.
    #[default]
    Bare,
    /// The result has all lines indented, so that the model cannot mistake a line of a result for a line of tarsy.
    Indented,
}

/// The strategy of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Strategy {
    /// Tool calls that the model writes as text, until a final answer.
    React,
    /// Structured tool calls until an answer without any.
    NativeThinking,
    /// The agent makes a single model call without tools, over the findings of the previous stage.
    Synthesis,
    /// The same, for a provider with native thinking.
    SynthesisNativeThinking,
    /// The agent makes a single model call without tools (the empty strategy of a configuration).
    #[strum(serialize = "")]
    #[default]
    SingleCall,
}

crate::words!(pub Strategy, pub ALL);

impl Strategy {
    /// Whether the model may call tools. Without tools, its first answer is the last one and its first failure ends the
    /// execution.
    pub fn uses_tools(self) -> bool {
        matches!(self, Self::React | Self::NativeThinking)
    }

    /// Whether it combines the findings of other agents.
    pub fn synthesises(self) -> bool {
        matches!(self, Self::Synthesis | Self::SynthesisNativeThinking)
    }

    /// Whether the request declares the tools; otherwise the prompt describes them to a model that may call tools.
    pub fn binds_tools(self) -> bool {
        self == Self::NativeThinking
    }

    /// Whether the model writes its calls as text and gets their results as observations. It has no native tools.
    pub fn writes_calls(self) -> bool {
        self == Self::React
    }
}

/// The limits after which an agent stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Model calls before the conclusion is forced.
    pub max_iterations: u32,
    /// Model and tool time of one iteration, in milliseconds.
    pub iteration_timeout_ms: u64,
    /// Time-outs in a row that end the execution.
    pub max_timeouts: u32,
    /// Tokens of one tool result that the model sees.
    pub max_tool_result_tokens: u32,
    /// Tokens of all calls, input and output, after which the conclusion is forced; 0 for no such limit.
    #[serde(default)]
    pub max_tokens: u64,
    /// The number of calls of one answer that are run, the first ones; 0 for all, as in older plans.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max_calls: u32,
    /// The number of sub-agents that it may dispatch in all; 0 in older plans.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max_agents: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_iterations: 20,
            iteration_timeout_ms: 120_000,
            max_timeouts: 2,
            max_tool_result_tokens: 8_000,
            max_tokens: 0,
            max_calls: 64,
            max_agents: 0,
        }
    }
}

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The full name for models and people, `server.tool`; every provider accepts it.
    pub name: String,
    /// The tool's name at its server, where it differs from the part of `name` after the dot: a plan of format 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_name: Option<String>,
    /// Text for the model.
    pub description: String,
    /// JSON Schema of the arguments, as a string.
    pub parameters_schema: String,
    /// Declared to change nothing: the call may run twice, and in parallel with other calls.
    pub read_only: bool,
    /// The rule by which people decide about each call; `None` for a tool whose calls wait for no person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRule>,
}

impl ToolSpec {
    /// Whether its calls may run twice, and in parallel: it changes nothing, and no person decides about its calls.
    pub fn only_reads(&self) -> bool {
        self.read_only && self.approval.is_none()
    }

    /// The name of its server.
    pub fn server(&self) -> &str {
        self.name.split_once('.').map_or("", |(server, _)| server)
    }

    /// The tool's name at its server.
    pub fn tool(&self) -> &str {
        let offered = self
            .name
            .split_once('.')
            .map_or(self.name.as_str(), |(_, tool)| tool);
        self.original_name.as_deref().unwrap_or(offered)
    }
}
