//! What an execution does next. One table for all strategies.

use super::entry::{Entry, Outcome, Role, StopReason, ToolCall};
use super::plan::Strategy;
use super::prompt::with_context;
use super::results::lost;
use super::state::{OpenCall, State};
use super::window::make_room;

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
    /// Whether tools go with the request.
    pub with_tools: bool,
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
            Self::Conclusion => "conclusion",
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
        Some(StopReason::Cancelled) => return end(Outcome::Cancelled),
        Some(StopReason::Deadline) => return end(Outcome::TimedOut),
        Some(_) | None => {}
    }
    match state.open_calls().first() {
        Some(first) => run_tools(state, first),
        None => next_model_call(state),
    }
}

fn end(outcome: Outcome) -> Decision {
    Decision::Append(vec![Entry::Ended { outcome }])
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

/// A started call with possible side effects can only be the relic of a dead worker: lost, never sent again.
fn run_tools(state: &State, first: &OpenCall) -> Decision {
    if first.call.read_only {
        let batch = state.open_calls().iter().map(|open| &open.call).take_while(|call| call.read_only);
        return Decision::RunTools(batch.cloned().collect());
    }
    let strategy = state.plan().strategy;
    if first.started {
        Decision::Append(lost(strategy, &first.call))
    } else {
        Decision::RunTools(vec![first.call.clone()])
    }
}

fn next_model_call(state: &State) -> Decision {
    let limits = state.plan().limits;
    let failure = state.model_failure();
    if state.timeouts() >= limits.max_timeouts {
        let last = failure.unwrap_or("a tool call timed out");
        let error = format!("aborted after {} consecutive timeouts: {last}", state.timeouts());
        return end(Outcome::Failed { error, reason: StopReason::Timeouts });
    }
    let strategy = state.plan().strategy;
    if let (false, Some(error)) = (strategy.uses_tools(), failure) {
        return end(Outcome::Failed { error: error.to_owned(), reason: StopReason::Error });
    }
    if let Some(entries) = make_room(state) {
        return Decision::Append(entries);
    }
    let provider = state.provider();
    if state.concluding().is_some() {
        return match failure {
            Some(error) => {
                let error = format!("forced conclusion failed: {error}");
                end(Outcome::Failed { error, reason: StopReason::Error })
            }
            None => Decision::CallModel(ModelCall { provider, with_tools: false, purpose: Purpose::Conclusion }),
        };
    }
    if state.iteration() >= limits.max_iterations {
        return match failure {
            Some(error) => {
                let max = limits.max_iterations;
                let error = format!("max iterations ({max}) reached with last interaction failed: {error}");
                end(Outcome::Failed { error, reason: StopReason::MaxIterations })
            }
            None => conclude(state, StopReason::MaxIterations),
        };
    }
    if let Some(reason) = state.stopped() {
        return conclude(state, reason);
    }
    let purpose = match strategy {
        Strategy::SingleCall | Strategy::React | Strategy::NativeThinking => Purpose::Iteration,
        Strategy::Synthesis | Strategy::SynthesisNativeThinking => Purpose::Synthesis,
    };
    Decision::CallModel(ModelCall { provider, with_tools: strategy.binds_tools(), purpose })
}

fn conclude(state: &State, reason: StopReason) -> Decision {
    let content = state.plan().conclusion_prompt.clone();
    Decision::Append(vec![Entry::Concluding { reason }, Entry::Feedback { content }])
}
