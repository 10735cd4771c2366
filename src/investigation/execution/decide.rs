//! What an execution does next. One table for all strategies.

use super::absorb::given_up;
use super::entry::{Entry, Outcome, Role, StopReason, ToolCall};
use super::results::{lost, not_run_again, not_sent, repeats_itself, too_many_calls, unknown_tool};
use super::state::{OpenCall, State};
use super::unmasked::Arguments;
use super::window::{ToolBinding, make_room};
use crate::investigation::plan::Strategy;
use crate::investigation::prompt::with_context;

/// The next thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Write these facts down, then decide again.
    Append(Vec<Entry>),
    /// Ask the model.
    CallModel(ModelCall),
    /// Run these calls at the same time. Either all are read-only, or it is a single one that has to be written down
    /// as started before it is sent.
    RunTools(Vec<ToolCall>),
    /// Nothing: it is over.
    Done(Outcome),
}

/// How to ask the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelCall {
    /// Index into the plan's providers.
    pub provider: usize,
    /// Whether the request includes the tool definitions.
    pub tools: ToolBinding,
    /// What for.
    pub purpose: Purpose,
}

/// What a model call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The next step of the investigation.
    Iteration,
    /// The last answer.
    Conclusion,
    /// The only answer of a synthesis.
    Synthesis,
}

impl Purpose {
    /// The word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Iteration => "iteration",
            Self::Conclusion => "forced_conclusion",
            Self::Synthesis => "synthesis",
        }
    }
}

/// Decides from the journal alone.
pub fn decide(state: &State) -> Decision {
    if let Some(outcome) = state.ended() {
        return Decision::Done(outcome.clone());
    }
    if state.entries().is_empty() {
        return Decision::Append(opening(state));
    }
    match state.stopped() {
        Some(StopReason::Cancelled) => return Decision::Append(cut_short(state, Outcome::Cancelled)),
        Some(StopReason::Deadline) => return Decision::Append(cut_short(state, Outcome::TimedOut)),
        Some(_) | None => {}
    }
    match state.open_calls().first() {
        Some(first) => run_tools(state, first),
        None if state.plan().strategy.uses_tools() => next_iteration(state),
        None => only_answer(state),
    }
}

/// The end, with a word on what was sent and has no result.
fn cut_short(state: &State, outcome: Outcome) -> Vec<Entry> {
    let strategy = state.plan().strategy;
    let sent = state.open_calls().iter().filter(|open| open.started);
    sent.flat_map(|open| lost(strategy, &open.call)).chain([Entry::Ended { outcome }]).collect()
}

fn failed(error: String, reason: StopReason) -> Decision {
    Decision::Append(vec![Entry::Ended { outcome: Outcome::Failed { error, reason } }])
}

fn opening(state: &State) -> Vec<Entry> {
    let plan = state.plan();
    let user = match state.context() {
        Some(context) => with_context(&plan.user_prompt, context),
        None => plan.user_prompt.clone(),
    };
    vec![
        Entry::Prompt { role: Role::System, content: plan.system_prompt.clone() },
        Entry::Prompt { role: Role::User, content: user },
    ]
}

/// What becomes of the first calls that have no result yet, in their order.
fn run_tools(state: &State, first: &OpenCall) -> Decision {
    let strategy = state.plan().strategy;
    let open = state.open_calls().iter().map(|open| &open.call);
    if first.started {
        // The relic of a dead worker, since it may change something: never sent again.
        return Decision::Append(lost(strategy, &first.call));
    }
    if state.has_refused() {
        return Decision::Append(open.map(|call| not_run_again(strategy, call)).collect());
    }
    let left = state.calls_left();
    if left == 0 {
        let most = state.plan().limits.max_calls;
        return Decision::Append(open.map(|call| too_many_calls(strategy, call, most)).collect());
    }
    let open = open.take(left);
    if state.tool(&first.call.tool).is_none() {
        let unknown = open.take_while(|call| state.tool(&call.tool).is_none());
        let told = unknown.map(|call| unknown_tool(strategy, call, &state.plan().tools));
        return Decision::Append(told.collect());
    }
    let is_gone = |call: &&ToolCall| state.arguments(&call.id) == Arguments::Unknown;
    if is_gone(&&first.call) {
        return Decision::Append(open.take_while(is_gone).map(|call| not_sent(strategy, call)).collect());
    }
    if first.call.read_only {
        return Decision::RunTools(open.take_while(|call| call.read_only && !is_gone(call)).cloned().collect());
    }
    Decision::RunTools(vec![first.call.clone()])
}

/// A strategy without tools: its first answer is the last one. A synthesis is tried twice.
fn only_answer(state: &State) -> Decision {
    let (purpose, tries) = match state.plan().strategy {
        Strategy::SingleCall | Strategy::React | Strategy::NativeThinking => (Purpose::Iteration, 1),
        Strategy::Synthesis | Strategy::SynthesisNativeThinking => (Purpose::Synthesis, 2),
    };
    match state.model_failure() {
        Some(error) if state.model_failures() >= tries => Decision::Append(vec![given_up(state, error)]),
        Some(_) | None => call(state, purpose),
    }
}

fn next_iteration(state: &State) -> Decision {
    let failure = state.model_failure();
    if let Some(entries) = make_room(state) {
        return Decision::Append(entries);
    }
    if state.concluding().is_some() {
        return match failure {
            Some(error) => failed(format!("forced conclusion LLM call failed: {error}"), StopReason::Error),
            None => call(state, Purpose::Conclusion),
        };
    }
    if let Some((limit, reason)) = used_up(state) {
        return match failure {
            Some(error) => failed(format!("{limit} reached with last interaction failed: {error}"), reason),
            None => conclude(state, reason),
        };
    }
    let limits = state.plan().limits;
    if state.timeouts() >= limits.max_timeouts {
        let (count, last) = (state.timeouts(), state.last_timeout());
        let (next, max) = (state.iteration() + 1, limits.max_iterations);
        let error = format!("aborted after {count} consecutive timeouts (iteration {next}/{max}): {last}");
        return failed(error, StopReason::Timeouts);
    }
    if state.is_to_be_told_of_repeats() {
        return Decision::Append(vec![repeats_itself()]);
    }
    call(state, Purpose::Iteration)
}

/// Why no iteration follows, though none of the answers is the last one. For people, and as a word.
fn used_up(state: &State) -> Option<(String, StopReason)> {
    let limits = state.plan().limits;
    if state.has_refused() {
        return Some(("limit of repeated calls".to_owned(), StopReason::RepeatedCalls));
    }
    if state.iteration() >= limits.max_iterations {
        return Some((format!("max iterations ({})", limits.max_iterations), StopReason::MaxIterations));
    }
    if limits.max_tokens > 0 && state.usage().total() >= limits.max_tokens {
        return Some((format!("token budget ({})", limits.max_tokens), StopReason::Budget));
    }
    state.stopped().map(|reason| (reason.as_str().replace('_', " "), reason))
}

fn call(state: &State, purpose: Purpose) -> Decision {
    let tools = match purpose {
        Purpose::Iteration => state.tool_binding(),
        Purpose::Conclusion | Purpose::Synthesis => ToolBinding::Unbound,
    };
    Decision::CallModel(ModelCall { provider: state.provider(), tools, purpose })
}

fn conclude(state: &State, reason: StopReason) -> Decision {
    let content = state.plan().conclusion_prompt.clone();
    Decision::Append(vec![Entry::Concluding { reason }, Entry::Feedback { content }])
}
