//! Decides the next step of an execution from its state. One table for all strategies.

use std::collections::BTreeMap;

use super::absorb::{given_up, without_answer};
use super::approvals;
use super::dispatch::{self, Step};
use super::entry::{Entry, NotSent, Outcome, Role, StopReason, ToolCall};
use super::results::{
    NOT_RUN_AGAIN, NOT_SENT, REFUSED_BY_PROVIDER, lost, not_sent, repeats_itself, unknown_tool,
};
use super::state::{Approval, OpenCall, State};
use super::summaries::{LongResult, MAX_AT_ONCE};
use super::unmasked::Arguments;
use super::window::{Elidable, TARGET_DIVISOR, ToolBinding};
use crate::ids::ExecutionId;
use crate::plan::Strategy;
use crate::prompt::with_context;

/// Consecutive answers of one provider that were cut off, after which the conclusion is forced.
const MAX_CUT_ANSWERS: u32 = 3;

/// The next step of an execution.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Append these entries, then decide again.
    Append(Vec<Entry>),
    CallModel(ModelCall),
    /// Run these calls concurrently. Either all are read-only, or there is a single one, for which an
    /// [`Entry::Started`] is stored before it is sent.
    RunTools(Vec<ToolCall>),
    /// Run these executions of sub-agents to their ends, then append their results in the order of the calls.
    Await(Vec<ExecutionId>),
    /// Wait for people: the open requests of this execution, in the order of their calls.
    Wait(Vec<Asked>),
    /// Ask for summaries of these results, at the same time.
    Summarise(Vec<LongResult>),
    /// The execution has ended.
    Done(Outcome),
}

/// A call that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub call_id: String,
    /// The number of the event that names the request.
    pub event: u32,
}

/// A request to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelCall {
    /// Index into the plan's providers.
    pub provider: usize,
    /// Whether the request includes the tool definitions.
    pub tools: ToolBinding,
    pub purpose: Purpose,
    /// The provider has not answered since it took over from another one.
    pub is_taken_over: bool,
}

/// The purpose of a model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Purpose {
    /// The next step of the investigation.
    Iteration,
    /// The forced last answer.
    #[strum(serialize = "forced_conclusion")]
    Conclusion,
    /// The only answer of a synthesis.
    Synthesis,
    /// A summary of a long tool result.
    Summary,
}

crate::words!(pub Purpose, pub ALL);

impl Purpose {
    /// The purpose of a stored word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|purpose| purpose.as_str() == word)
    }
}

/// Decides from the state alone, and so from the journal alone.
pub fn decide(state: &State) -> Decision {
    if let Some(outcome) = state.ended() {
        return Decision::Done(outcome.clone());
    }
    if state.entries().is_empty() {
        return Decision::Append(opening(state));
    }
    match state.stopped() {
        Some(StopReason::Cancelled) => return stopped(state, Outcome::Cancelled),
        Some(StopReason::Deadline) => return stopped(state, Outcome::TimedOut),
        Some(_) | None => {}
    }
    match state.open_calls().first() {
        Some(first) => run_tools(state, first),
        None if state.plan().strategy.uses_tools() => next_iteration(state),
        None => only_answer(state),
    }
}

/// The step after a stop: the sub-agents end first.
fn stopped(state: &State, outcome: Outcome) -> Decision {
    match dispatch::awaited(state) {
        Some(awaited) => Decision::Await(awaited),
        None => Decision::Append(cut_short(state, outcome)),
    }
}

/// The end of the execution; calls that were sent and have no result are lost.
fn cut_short(state: &State, outcome: Outcome) -> Vec<Entry> {
    let strategy = state.plan().strategy;
    let sent = state.open_calls().iter().filter(|open| open.started);
    let end = if outcome == Outcome::TimedOut {
        without_answer(state, outcome)
    } else {
        Entry::Ended { outcome }
    };
    sent.flat_map(|open| lost(strategy, &open.call))
        .chain([end])
        .collect()
}

fn failed(state: &State, error: String, reason: StopReason) -> Decision {
    Decision::Append(vec![without_answer(
        state,
        Outcome::Failed { error, reason },
    )])
}

fn opening(state: &State) -> Vec<Entry> {
    let plan = state.plan();
    let user = match state.context() {
        Some(context) => with_context(&plan.user_prompt, context),
        None => plan.user_prompt.clone(),
    };
    vec![
        Entry::Prompt {
            role: Role::System,
            content: plan.system_prompt.clone(),
        },
        Entry::Prompt {
            role: Role::User,
            content: user,
        },
    ]
}

/// The next step for the open calls, from the first one on.
fn run_tools(state: &State, first: &OpenCall) -> Decision {
    let strategy = state.plan().strategy;
    let open = state.open_calls().iter().map(|open| &open.call);
    if first.started {
        // A worker that crashed may have sent it. It may change something, so it is never sent again.
        return Decision::Append(lost(strategy, &first.call));
    }
    if state.is_out_of_time() {
        if let Some(awaited) = dispatch::awaited(state) {
            return Decision::Await(awaited);
        }
        // A changing call that may have been sent is lost, as above; the next step decides about it.
        let open = state.open_calls().iter();
        let open = open.take_while(|open| !open.started);
        return Decision::Append(
            open.flat_map(|open| approvals::out_of_time(state, open))
                .collect(),
        );
    }
    if state.refuses_calls() {
        return refused(strategy, open, NOT_RUN_AGAIN, NotSent::Repeated);
    }
    let left = state.calls_left();
    if left == 0 {
        let error = format!(
            "not run: at most {} calls of one answer",
            state.plan().limits.max_calls
        );
        return refused(strategy, open, &error, NotSent::TooMany);
    }
    let open = open.take(left);
    if state.tool(&first.call.tool).is_none() {
        let unknown = open.take_while(|call| state.tool(&call.tool).is_none());
        let refusals = unknown.map(|call| unknown_tool(state.plan(), call, &state.offered_tools()));
        return Decision::Append(refusals.collect());
    }
    let is_refused = |call: &&ToolCall| state.is_refused(&call.tool);
    if is_refused(&&first.call) {
        let open = open.take_while(is_refused);
        return refused(strategy, open, REFUSED_BY_PROVIDER, NotSent::Refused);
    }
    if dispatch::is_dispatch(&first.call) {
        return match dispatch::next(state) {
            Step::Append(entries) => Decision::Append(entries),
            Step::Await(awaited) => Decision::Await(awaited),
        };
    }
    if let Some(step) = step_of_approval(state, first) {
        return step;
    }
    let is_unknown = |call: &&ToolCall| state.arguments(&call.id) == Arguments::Unknown;
    if is_unknown(&&first.call) {
        let open = open.take_while(is_unknown);
        return refused(strategy, open, NOT_SENT, NotSent::Masked);
    }
    if first.call.read_only {
        return Decision::RunTools(
            open.take_while(|call: &&ToolCall| {
                call.read_only
                    && !state.needs_person(&call.tool)
                    && !dispatch::is_dispatch(call)
                    && !is_unknown(call)
                    && !is_refused(call)
            })
            .cloned()
            .collect(),
        );
    }
    Decision::RunTools(vec![first.call.clone()])
}

/// The next step for a first open call that a person decides about; `None` for any other.
fn step_of_approval(state: &State, first: &OpenCall) -> Option<Decision> {
    let call = &first.call;
    let entries = match &first.approval {
        Approval::NotNeeded => return None,
        Approval::Needed => approvals::asking(state, &BTreeMap::new()),
        Approval::Asked { .. } => match approvals::denied_meanwhile(state, call) {
            Some(entries) => entries,
            None => return Some(Decision::Wait(state.asked_calls())),
        },
        Approval::Refused(ended) => vec![approvals::result(state, call, ended)],
    };
    Some(Decision::Append(entries))
}

fn refused<'a>(
    strategy: Strategy,
    calls: impl Iterator<Item = &'a ToolCall>,
    error: &str,
    why: NotSent,
) -> Decision {
    let refusals = calls.map(|call| not_sent(strategy, call, error, why));
    Decision::Append(refusals.collect())
}

/// A strategy without tools: its first answer is its last one. A failed synthesis is retried once.
fn only_answer(state: &State) -> Decision {
    let synthesises = state.plan().strategy.synthesises();
    let (purpose, tries) = if synthesises {
        (Purpose::Synthesis, 2)
    } else {
        (Purpose::Iteration, 1)
    };
    match state.model_failure() {
        Some(error) if state.model_failures() >= tries => {
            Decision::Append(vec![given_up(state, error)])
        }
        Some(_) | None => call(state, purpose),
    }
}

fn next_iteration(state: &State) -> Decision {
    // First of all, so that the request to conclude is the last message.
    if let Some(message) = approvals::after_wait(state) {
        return Decision::Append(vec![message]);
    }
    let failure = state.model_failure();
    if let Some(long) = due_summaries(state) {
        return Decision::Summarise(long);
    }
    if let Some(decision) = make_room(state) {
        return decision;
    }
    if state.concluding().is_some() {
        return match failure {
            Some(error) => failed(
                state,
                format!("forced conclusion LLM call failed: {error}"),
                StopReason::Error,
            ),
            None => call(state, Purpose::Conclusion),
        };
    }
    if let Some((limit, reason)) = used_up(state) {
        return match failure {
            // No limit is reached, or the model does answer: it may still conclude.
            Some(_) if is_stop(reason) || state.cut_answers > 0 => conclude(state, reason),
            Some(error) => failed(
                state,
                format!("{limit} reached with last interaction failed: {error}"),
                reason,
            ),
            None => conclude(state, reason),
        };
    }
    let limits = state.plan().limits;
    if state.timeouts.in_a_row >= limits.max_timeouts {
        let count = state.timeouts.in_a_row;
        let last = &state.timeouts.last;

        let next = state.iteration() + 1;
        let max = limits.max_iterations;

        let error =
            format!("aborted after {count} consecutive timeouts (iteration {next}/{max}): {last}");
        return failed(state, error, StopReason::Timeouts);
    }
    if state.cut_answers >= MAX_CUT_ANSWERS {
        return conclude(state, StopReason::CutAnswers);
    }
    if state.needs_repeat_feedback() {
        return Decision::Append(vec![repeats_itself()]);
    }
    call(state, Purpose::Iteration)
}

/// The long results that are summarised before the next model call. A budget that is used up allows no further call.
fn due_summaries(state: &State) -> Option<Vec<LongResult>> {
    let long = state.long_results().iter().take(MAX_AT_ONCE);
    let may_ask = state.stopped().is_none() && !state.is_budget_used_up();
    (may_ask && long.len() > 0).then(|| long.cloned().collect())
}

/// Whether the reason is no limit of the agent, but comes from outside and leaves time for a conclusion.
fn is_stop(reason: StopReason) -> bool {
    matches!(
        reason,
        StopReason::AlertResolved | StopReason::TimeBudget | StopReason::ApprovalExpired
    )
}

/// The limit that is reached, as a text for people and as a stop reason; no iteration follows then.
fn used_up(state: &State) -> Option<(String, StopReason)> {
    let limits = state.plan().limits;
    if state.is_out_of_time() {
        return Some(("time budget".to_owned(), StopReason::TimeBudget));
    }
    if state.refuses_calls() {
        return Some((
            "limit of repeated calls".to_owned(),
            StopReason::RepeatedCalls,
        ));
    }
    if state.iteration() >= limits.max_iterations {
        return Some((
            format!("max iterations ({})", limits.max_iterations),
            StopReason::MaxIterations,
        ));
    }
    if state.is_budget_used_up() {
        return Some((
            format!("token budget ({})", limits.max_tokens),
            StopReason::Budget,
        ));
    }
    state
        .stopped()
        .map(|reason| (reason.as_str().replace('_', " "), reason))
}

fn call(state: &State, purpose: Purpose) -> Decision {
    Decision::CallModel(model_call(state, purpose))
}

/// The model call of this purpose in this state.
pub(super) fn model_call(state: &State, purpose: Purpose) -> ModelCall {
    let tools = match purpose {
        Purpose::Iteration | Purpose::Conclusion => state.tool_binding(),
        Purpose::Synthesis | Purpose::Summary => ToolBinding::Unbound,
    };
    ModelCall {
        provider: state.provider(),
        tools,
        purpose,
        is_taken_over: state.provider_is_new,
    }
}

fn conclude(state: &State, reason: StopReason) -> Decision {
    let request = Entry::feedback(state.plan().conclusion_prompt.clone());
    Decision::Append(vec![Entry::Concluding { reason }, request])
}

/// The step before the next model call, if the conversation is too long for the context window.
///
/// The oldest results are blanked. If that is not enough, or the provider refuses the request again, the conclusion is
/// forced. For the conclusion, the results of the last answer may be blanked, too. A strategy without tools has nothing
/// to blank.
fn make_room(state: &State) -> Option<Decision> {
    let window = state.window();
    let plan = state.plan();

    let tools = state.tool_binding();
    let configured = plan
        .providers
        .get(state.provider())
        .map_or(0, |provider| provider.context_window);
    let budget = window.budget(configured);
    let fits = window.estimate(tools) <= budget && !window.owes_room();
    if fits || !plan.strategy.uses_tools() {
        return None;
    }
    if state.concluding().is_some() {
        let target = if window.owes_room() { 0 } else { budget };
        let facts = window.to_blank(target, tools, Elidable::All);
        return (!facts.is_empty()).then_some(Decision::Append(facts));
    }
    let facts = window.to_blank(budget / TARGET_DIVISOR, tools, Elidable::BeforeLastAnswer);
    if !facts.is_empty() && window.refusals < 2 {
        return Some(Decision::Append(facts));
    }
    // A window of unknown size may be larger than assumed: then only a refusal of the provider counts.
    let known = configured > 0 || window.was_refused();
    known.then(|| conclude(state, StopReason::ContextWindow))
}
