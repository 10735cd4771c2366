//! The dispatch of sub-agents: which calls of an answer begin one, and the calls that wait for their results.
//!
//! The calls that stand together in an answer are one group. Each valid one begins its sub-agent, all of them in one
//! checkpoint; then the group waits until every sub-agent has ended. The results are appended in the order of the
//! calls, refusals among them, so the order never depends on time.

use super::entry::{Dispatched, Entry, NotSent, ToolCall};
use super::results::not_sent;
use super::state::State;
use crate::ids::ExecutionId;
use crate::plan::AgentPlan;
use crate::sub_agents::{Request, TOOL, with_task};

/// Sub-agents of one execution that run at the same time.
pub const MAX_AT_ONCE: usize = 4;

/// A call that asks for a sub-agent, and what becomes of it.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupCall<'a> {
    /// Its sub-agent has begun.
    Begun(&'a ToolCall, &'a Dispatched),
    /// Its sub-agent begins next.
    Due(&'a ToolCall, Request),
    /// The result of a call that begins none.
    Refused(Entry),
}

/// Whether a call asks for a sub-agent.
pub(super) fn is_dispatch(call: &ToolCall) -> bool {
    call.tool == TOOL
}

/// The first open calls, as far as they ask for sub-agents.
pub fn group(state: &State) -> Vec<GroupCall<'_>> {
    let plan = state.plan();
    let dispatched: Vec<&Dispatched> = state
        .entries()
        .iter()
        .filter_map(Entry::dispatched)
        .collect();
    let max = usize::try_from(plan.limits.max_agents).unwrap_or(usize::MAX);
    let mut left = max.saturating_sub(dispatched.len());
    let open = state.open_calls().iter().map(|open| &open.call);
    let calls = open
        .take(state.calls_left())
        .take_while(|call| is_dispatch(call));
    calls
        .map(|call: &ToolCall| {
            let refused =
                |why: &str, reason| GroupCall::Refused(not_sent(plan.strategy, call, why, reason));
            if let Some(begun) = dispatched.iter().find(|begun| begun.call_id == call.id) {
                return GroupCall::Begun(call, begun);
            }
            let request = match Request::parse(&call.arguments, &plan.sub_agents) {
                Ok(request) => request,
                Err(why) => return refused(&why, NotSent::UnfitArguments),
            };
            if state.is_out_of_time() || state.is_stopped_at_once() {
                return refused(NO_TIME, NotSent::NoTime);
            }
            if left == 0 {
                let why = format!("not run: at most {max} agents in all");
                return refused(&why, NotSent::TooMany);
            }
            if state.is_budget_used_up() {
                return refused(NO_TOKENS, NotSent::TooMany);
            }
            left -= 1;
            GroupCall::Due(call, request)
        })
        .collect()
}

const NO_TIME: &str = "not run: the time of this investigation is used up";
const NO_TOKENS: &str = "not run: the tokens of this investigation are used up";

/// The next step of a group.
#[derive(Debug)]
pub(super) enum Step {
    /// Append these entries.
    Append(Vec<Entry>),
    /// Wait for these executions.
    Await(Vec<ExecutionId>),
}

/// The next step for a group whose first call is the first open one.
pub(super) fn next(state: &State) -> Step {
    let group = group(state);
    let begin = group.iter().filter_map(|call: &GroupCall<'_>| {
        let GroupCall::Due(call, request) = call else {
            return None;
        };
        Some(Entry::Dispatched(Box::new(Dispatched {
            call_id: call.id.clone(),
            agent: request.agent.clone(),
            task: request.task.clone(),
            execution_id: state.id().of_sub_agent(&call.id),
        })))
    });
    let begin: Vec<Entry> = begin.collect();
    if !begin.is_empty() {
        return Step::Append(begin);
    }
    let awaited = ids(&group);
    if !awaited.is_empty() {
        return Step::Await(awaited);
    }
    let refusals = group.into_iter().filter_map(|call| match call {
        GroupCall::Refused(entry) => Some(entry),
        GroupCall::Begun(..) | GroupCall::Due(..) => None,
    });
    Step::Append(refusals.collect())
}

/// The sub-agents that have begun and have no result yet. They end before anything else happens, also after a stop.
pub(super) fn awaited(state: &State) -> Option<Vec<ExecutionId>> {
    Some(ids(&group(state))).filter(|awaited| !awaited.is_empty())
}

fn ids(group: &[GroupCall<'_>]) -> Vec<ExecutionId> {
    let begun = group.iter().filter_map(|call: &GroupCall<'_>| match call {
        GroupCall::Begun(_, dispatched) => Some(dispatched.execution_id),
        GroupCall::Due(..) | GroupCall::Refused(_) => None,
    });
    begun.collect()
}

/// The plan of the sub-agent `name` with its task; `None` for an agent that the plan does not have. It has no tool that
/// may change something, and no sub-agents, whatever the plan says.
pub fn plan_of(parent: &AgentPlan, name: &str, task: &str) -> Option<AgentPlan> {
    let agent = parent.sub_agent(name)?;
    let mut plan = AgentPlan::clone(&agent.plan);
    plan.name.clone_from(&agent.name);
    plan.user_prompt = with_task(&plan.user_prompt, task);
    plan.tools
        .retain(|tool| tool.only_reads() && tool.name != TOOL);
    plan.sub_agents.clear();
    Some(plan)
}

/// The tokens that each sub-agent of the present group may use, of which `own` is the limit of its plan: those that its
/// parent has left, in equal parts. 0 stands for no limit.
pub fn tokens_of_each(state: &State, own: u64) -> u64 {
    let max = state.plan().limits.max_tokens;
    if max == 0 {
        return own;
    }
    let together = u64::try_from(ids(&group(state)).len()).unwrap_or(u64::MAX);
    let rest = max.saturating_sub(state.usage().total());
    let part = (rest / together.max(1)).max(1);
    if own == 0 { part } else { own.min(part) }
}

#[cfg(test)]
mod tests;
