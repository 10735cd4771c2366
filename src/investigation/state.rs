//! The state of an execution: a fold over its entries and nothing else.
//!
//! [`State::apply`] is the only mutation. Whatever a decision depends on is an entry, so replaying the journal on
//! another machine leads to the same decision.

use std::collections::HashSet;
use std::sync::Arc;

use super::conversation::{self, Message, Shown};
use super::entry::{Entry, FailureSource, Outcome, StopReason, ToolCall, Usage};
use super::numbers::Recorded;
use super::plan::AgentPlan;
use super::window::Window;

/// Where an execution stands.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    plan: Arc<AgentPlan>,
    context: Option<String>,
    entries: Vec<Entry>,
    shown: Vec<Shown>,
    call_ids: HashSet<String>,
    iteration: u32,
    timeouts: Timeouts,
    model_failure: Option<String>,
    provider: usize,
    open: Vec<OpenCall>,
    concluding: Option<StopReason>,
    stopped: Option<StopReason>,
    ended: Option<Outcome>,
    usage: Usage,
    tool_calls: u32,
    window: Window,
}

/// A call without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// The call.
    pub call: ToolCall,
    /// It may have been sent.
    pub started: bool,
}

/// Time-outs in a row; several in one iteration count once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Timeouts {
    in_a_row: u32,
    last_iteration: Option<u32>,
}

impl Timeouts {
    fn add(&mut self, iteration: u32) {
        if self.last_iteration != Some(iteration) {
            self.in_a_row += 1;
            self.last_iteration = Some(iteration);
        }
    }
}

impl State {
    /// The state after `entries`. `context` is what earlier stages found; it becomes part of the opening prompt.
    pub fn replay(
        plan: Arc<AgentPlan>,
        context: Option<String>,
        entries: impl IntoIterator<Item = impl Into<Recorded>>,
    ) -> Self {
        let mut state = Self {
            window: Window::new(&plan),
            plan,
            context,
            entries: Vec::new(),
            shown: Vec::new(),
            call_ids: HashSet::new(),
            iteration: 0,
            timeouts: Timeouts::default(),
            model_failure: None,
            provider: 0,
            open: Vec::new(),
            concluding: None,
            stopped: None,
            ended: None,
            usage: Usage::default(),
            tool_calls: 0,
        };
        for entry in entries {
            state.apply(entry);
        }
        state
    }

    /// Takes one entry in, with the number of its event if it has one.
    pub fn apply(&mut self, entry: impl Into<Recorded>) {
        let Recorded { entry, event } = entry.into();
        let shown = Shown { event, effect: self.may_have_changed_something(&entry) };
        self.window.take(&entry, shown, self.tools_go_along());
        match &entry {
            Entry::Prompt { .. } | Entry::Feedback { .. } => {}
            Entry::Answer(answer) => {
                self.iteration += 1;
                self.timeouts = Timeouts::default();
                self.model_failure = None;
                self.usage = self.usage.plus(answer.usage);
                self.call_ids.extend(answer.calls.iter().map(|call| call.id.clone()));
                self.open = answer.calls.iter().map(|call| OpenCall { call: call.clone(), started: false }).collect();
            }
            Entry::Failed { error, timeout, source, .. } => self.fail(error, *timeout, *source),
            Entry::Started { call_id } => {
                for open in self.open.iter_mut().filter(|open| open.call.id == *call_id) {
                    open.started = true;
                }
            }
            Entry::ToolResult { call_id, .. } | Entry::Observation { call_id, .. } => {
                self.tool_calls += 1;
                self.open.retain(|open| open.call.id != *call_id);
            }
            // The result that tells the model follows in the same checkpoint and closes the call.
            Entry::Lost { .. } => {}
            Entry::Switched { provider } => self.provider = *provider,
            Entry::Concluding { reason } => {
                self.concluding = Some(*reason);
                self.model_failure = None;
            }
            // Blanked because the provider asked for it: that failure is dealt with.
            Entry::Elided { .. } => {
                if self.window.was_refused() {
                    self.model_failure = None;
                }
            }
            Entry::Stopped { reason } => self.stopped = Some(*reason),
            Entry::Ended { outcome } => self.ended = Some(outcome.clone()),
        }
        self.entries.push(entry);
        self.shown.push(shown);
    }

    fn may_have_changed_something(&self, entry: &Entry) -> bool {
        match entry {
            Entry::ToolResult { call_id, .. } | Entry::Observation { call_id, .. } => {
                self.open.iter().any(|open| open.call.id == *call_id && !open.call.read_only)
            }
            Entry::Prompt { .. }
            | Entry::Answer(_)
            | Entry::Feedback { .. }
            | Entry::Failed { .. }
            | Entry::Started { .. }
            | Entry::Lost { .. }
            | Entry::Switched { .. }
            | Entry::Concluding { .. }
            | Entry::Elided { .. }
            | Entry::Stopped { .. }
            | Entry::Ended { .. } => false,
        }
    }

    fn fail(&mut self, error: &str, timeout: bool, source: FailureSource) {
        match source {
            FailureSource::Model => {
                self.iteration += 1;
                self.model_failure = Some(error.to_owned());
                if !timeout {
                    self.timeouts = Timeouts::default();
                }
            }
            FailureSource::Tool => {}
        }
        if timeout {
            self.timeouts.add(self.iteration);
        }
    }

    /// The frozen plan.
    pub fn plan(&self) -> &AgentPlan {
        &self.plan
    }

    /// What earlier stages found.
    pub fn context(&self) -> Option<&str> {
        self.context.as_deref()
    }

    /// The journal so far.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Finished model calls, failed ones included: the number of the present iteration once its answer is there.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// Time-outs in a row.
    pub fn timeouts(&self) -> u32 {
        self.timeouts.in_a_row
    }

    /// The last model call failed with this error.
    pub fn model_failure(&self) -> Option<&str> {
        self.model_failure.as_deref()
    }

    /// Index of the provider to ask.
    pub fn provider(&self) -> usize {
        self.provider
    }

    /// Calls without a result, in the order to run them.
    pub fn open_calls(&self) -> &[OpenCall] {
        &self.open
    }

    /// Why the next answer is the last one.
    pub fn concluding(&self) -> Option<StopReason> {
        self.concluding
    }

    /// What wants the execution to stop.
    pub fn stopped(&self) -> Option<StopReason> {
        self.stopped
    }

    /// How it ended.
    pub fn ended(&self) -> Option<&Outcome> {
        self.ended.as_ref()
    }

    /// Tokens of all answers.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Tool calls that have a result.
    pub fn tool_calls(&self) -> u32 {
        self.tool_calls
    }

    /// The conversation so far.
    pub fn messages(&self) -> Vec<Message> {
        conversation::messages(&self.entries, &self.shown, self.window.elided())
    }

    /// How full the model's context window is.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Whether the tools are bound to the next request.
    pub fn tools_go_along(&self) -> bool {
        self.plan.strategy.binds_tools() && self.concluding.is_none()
    }

    /// Whether a call of this id was ever asked for.
    pub fn knows_call(&self, id: &str) -> bool {
        self.call_ids.contains(id)
    }
}
