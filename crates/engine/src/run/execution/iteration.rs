//! The iteration that an execution performs: its time, its span, and its line in the log.
//!
//! The line is written when the last checkpoint of the iteration is committed. A worker that continues with an
//! execution therefore writes no line for an iteration that was over before.

use std::time::Duration;

use tokio::time::Instant;
use tracing::Span;

use super::Execution;
use crate::run::instruments::{self, IterationEnded};
use crate::trace;
use crate::world::World;
use tarsy_core::execution::decide::{Decision, decide};
use tarsy_core::execution::entry::{Entry, Usage};
use tarsy_core::execution::state::State;

/// An iteration, from the model call to its last result.
pub(super) struct Iteration {
    /// A resume starts the iteration's time again.
    pub(super) began: Instant,
    /// The time that its model call and its tool calls have together.
    pub(super) allowed: Duration,
    /// `None`: no iteration runs.
    open: Option<Open>,
}

struct Open {
    number: u32,
    span: Span,
    /// Index into the plan's providers.
    provider: usize,
    /// The entries from this index on belong to it.
    first_entry: usize,
    /// Whether an earlier owner of the session has begun it, or it has waited for people: its duration is unknown.
    is_resumed: bool,
}

impl Iteration {
    /// The iteration whose answer an earlier run has committed, if the tools of that answer have not all run.
    pub(super) fn resumed(state: &State) -> Self {
        let is_running = matches!(
            decide(state),
            Decision::RunTools(_) | Decision::Await(_) | Decision::Wait(_) | Decision::Summarise(_)
        );
        let answer = state
            .entries()
            .iter()
            .rposition(|entry| matches!(entry, Entry::Answer(_)));
        let open = match answer {
            Some(first_entry) if is_running => Some(Open {
                number: state.iteration(),
                span: trace::iteration(state.iteration()),
                provider: state.provider(),
                first_entry,
                is_resumed: true,
            }),
            Some(_) | None => None,
        };
        Self {
            began: Instant::now(),
            allowed: Duration::from_millis(state.plan().limits.iteration_timeout_ms),
            open,
        }
    }

    /// A new iteration, which begins with a call of this provider.
    pub(super) fn begun(state: &State, provider: usize, allowed: Duration) -> Self {
        let number = state.iteration() + 1;
        Self {
            began: Instant::now(),
            allowed,
            open: Some(Open {
                number,
                span: trace::iteration(number),
                provider,
                first_entry: state.entries().len(),
                is_resumed: false,
            }),
        }
    }

    /// The time of the iteration begins anew after a wait for people, and its duration is not recorded.
    pub(super) fn begin_anew(&mut self, allowed: Duration) {
        self.began = Instant::now();
        self.allowed = allowed;
        if let Some(open) = &mut self.open {
            open.is_resumed = true;
        }
    }

    /// The span of the iteration that runs; that of its execution between two iterations.
    pub(super) fn span(&self) -> Span {
        self.open
            .as_ref()
            .map_or_else(Span::current, |open| open.span.clone())
    }
}

impl<W: World> Execution<W> {
    /// Records the iteration that is over, if one was running.
    pub(super) fn end_iteration(&mut self) {
        let Some(open) = self.iteration.open.take() else {
            return;
        };
        let took = self.iteration.began.elapsed();
        if !open.is_resumed {
            metrics::histogram!("tarsy_iteration_duration_seconds").record(took.as_secs_f64());
        }
        let plan = self.state.plan();
        let provider = plan.providers.get(open.provider);
        let entries = self
            .state
            .entries()
            .get(open.first_entry..)
            .unwrap_or_default();
        let mut outcome = "stopped";
        let mut usage = Usage::default();
        let mut tools = Vec::new();
        for entry in entries {
            if let Entry::Answer(answer) = entry {
                outcome = "answered";
                usage = answer.usage;
                tools.clear();
                for call in &answer.calls {
                    let spec = plan.tool(&call.tool);
                    tools.push(spec.map_or("unknown", |spec| spec.name.as_str()));
                }
            } else if entry.model_failure().is_some() {
                outcome = "failed";
            }
        }
        let ended = IterationEnded {
            agent: &plan.name,
            number: open.number,
            provider: provider.map_or("", |provider| provider.name.as_str()),
            model: provider.map_or("", |provider| provider.model.as_str()),
            outcome,
            usage,
            tools,
            took,
        };
        open.span
            .in_scope(|| instruments::iteration_ended(self.ids(), &ended));
    }
}
