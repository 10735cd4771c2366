//! The state of an execution: a fold over its entries and nothing else.
//!
//! [`State::apply`] is the only mutation. Whatever a decision depends on is an entry, so replaying the journal on
//! another machine leads to the same decision.

mod calls;

use std::collections::HashSet;
use std::sync::Arc;

use super::conversation::{self, Message, RenderOptions};
use super::entry::{Answer, Entry, FailureSource, Outcome, Role, StopReason, ToolCall, ToolResult, Usage};
use super::event_refs::RecordedEntry;
use super::recovery::SentCall;
use super::repeats::Repeats;
use super::results::{CallError, plain};
use super::unmasked::OriginalArguments;
use super::window::{ToolBinding, Window};
use crate::investigation::plan::{AgentPlan, Strategy, ToolSpec};
use crate::investigation::react::{QuoteContext, UntrustedHeaders};

/// Where an execution stands.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    plan: Arc<AgentPlan>,
    context: Option<String>,
    entries: Vec<Entry>,
    options: Vec<RenderOptions>,
    call_ids: HashSet<String>,
    iteration: u32,
    timeouts: Timeouts,
    failures: Failures,
    empty_answers: u32,
    repeats: Repeats,
    told: bool,
    provider: usize,
    open: Vec<OpenCall>,
    recovery: u32,
    sent_before: Vec<SentCall>,
    original_arguments: OriginalArguments,
    /// Calls of the last answer.
    asked: usize,
    concluding: Option<Concluding>,
    stopped: Option<StopReason>,
    ended: Option<Outcome>,
    usage: Usage,
    tool_calls: u32,
    window: Window,
    untrusted: UntrustedHeaders,
    asked_back: bool,
}

/// A call without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// The call.
    pub call: ToolCall,
    /// It may have been sent.
    pub started: bool,
}

/// Time-outs in a row. Any answer of the model or of a tool begins anew, so those of one batch of calls count once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Timeouts {
    in_a_row: u32,
    last: String,
}

/// Model calls that brought nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Failures {
    /// Since the last answer that says something.
    in_a_row: u32,
    /// The last model call was one of them.
    last: Option<String>,
}

/// The next answer is the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Concluding {
    reason: StopReason,
    /// Iterations before it.
    after: u32,
}

impl State {
    /// The state after `entries`. `context` is what earlier stages found; it becomes part of the opening prompt.
    pub fn replay(
        plan: Arc<AgentPlan>,
        context: Option<String>,
        entries: impl IntoIterator<Item = impl Into<RecordedEntry>>,
    ) -> Self {
        let mut state = Self {
            window: Window::new(&plan),
            plan,
            context,
            entries: Vec::new(),
            options: Vec::new(),
            call_ids: HashSet::new(),
            iteration: 0,
            timeouts: Timeouts::default(),
            failures: Failures::default(),
            empty_answers: 0,
            repeats: Repeats::default(),
            told: false,
            provider: 0,
            open: Vec::new(),
            recovery: 0,
            sent_before: Vec::new(),
            original_arguments: OriginalArguments::default(),
            asked: 0,
            concluding: None,
            stopped: None,
            ended: None,
            usage: Usage::default(),
            tool_calls: 0,
            untrusted: UntrustedHeaders::default(),
            asked_back: false,
        };
        for entry in entries {
            state.apply(entry);
        }
        state
    }

    /// Takes one entry in, with the number of its event if it has one.
    pub fn apply(&mut self, entry: impl Into<RecordedEntry>) {
        let RecordedEntry { mut entry, event } = entry.into();
        if let Entry::Answer(answer) = &mut entry {
            self.original_arguments = OriginalArguments::take(answer);
        }
        let options =
            RenderOptions { event, has_effect: self.may_have_changed_something(&entry), form: self.plan.result_form };
        let owed_room = self.window.owes_room();
        self.window.apply(&entry, options, self.tool_binding());
        self.add_untrusted(&entry);
        match &entry {
            Entry::Prompt { .. } => {}
            Entry::Feedback { .. } => self.told = true,
            Entry::Answer(answer) => self.answered(answer),
            Entry::Failed { error, timeout, source, .. } => {
                self.fail(CallError { message: error, timeout: *timeout }, *source);
            }
            Entry::Started { call_id } => {
                for open in self.open.iter_mut().filter(|open| open.call.id == *call_id) {
                    open.started = true;
                }
            }
            Entry::ToolResult(result) | Entry::Observation(result) => {
                let is_run = self.tool(&result.tool).is_some() && !self.repeats.are_refused() && self.calls_left() > 0;
                self.tool_calls += u32::from(is_run);
                self.timeouts = Timeouts::default();
                self.open.retain(|open| open.call.id != result.call_id);
            }
            // The result that tells the model follows in the same checkpoint and closes the call.
            Entry::Lost { .. } => {}
            Entry::SentBefore { recovery, calls } => {
                self.recovery = *recovery;
                self.sent_before.extend(calls.iter().cloned());
                for open in self.open.iter_mut().filter(|open| !open.call.read_only) {
                    open.started = true;
                }
            }
            Entry::Switched { provider } => self.provider = *provider,
            Entry::Concluding { reason } => {
                self.concluding = Some(Concluding { reason: *reason, after: self.iteration });
                self.failures = Failures::default();
                self.empty_answers = 0;
            }
            Entry::Elided { up_to } => {
                self.repeats.blank(*up_to);
                // Blanked because the provider asked for it: that failure is dealt with.
                if owed_room {
                    self.failures.last = None;
                    self.failures.in_a_row = self.failures.in_a_row.saturating_sub(1);
                }
            }
            Entry::Stopped { reason } => self.stopped = Some(*reason),
            Entry::Ended { outcome } => self.ended = Some(outcome.clone()),
        }
        self.entries.push(entry);
        self.options.push(options);
    }

    /// Records the headers of an untrusted text, so that an answer that only quotes it is recognised (`ReAct`).
    fn add_untrusted(&mut self, entry: &Entry) {
        if self.plan.strategy != Strategy::React {
            return;
        }
        if let Entry::Prompt { role: Role::User, content } = entry {
            self.untrusted.add(content);
        } else if let Entry::Observation(ToolResult { tool, content, .. }) = entry {
            self.untrusted.add(plain(tool, content));
        }
    }

    fn may_have_changed_something(&self, entry: &Entry) -> bool {
        let call_id = entry.result_of();
        self.open.iter().any(|open| Some(open.call.id.as_str()) == call_id && !open.call.read_only)
    }

    fn answered(&mut self, answer: &Answer) {
        self.failures.last = None;
        if self.says_nothing(answer) {
            self.empty_answers += 1;
        } else {
            self.empty_answers = 0;
            self.failures.in_a_row = 0;
        }
        self.iteration += 1;
        self.timeouts = Timeouts::default();
        self.told = false;
        self.asked_back = answer.reading.as_ref().is_some_and(|reading| reading.quotes);
        self.usage = self.usage.plus(answer.usage);
        if !answer.masked_calls.is_empty() {
            // Two calls may differ in what is hidden.
            self.repeats = Repeats::default();
        }
        self.repeats.add(&answer.calls, u32::try_from(self.entries.len() + 1).unwrap_or(u32::MAX));
        self.call_ids.extend(answer.calls.iter().map(|call| call.id.clone()));
        self.asked = answer.calls.len();
        let calls = answer.calls.iter().cloned();
        self.open = calls.map(|call| OpenCall { started: self.take_sent_before(&call), call }).collect();
    }

    fn fail(&mut self, error: CallError<'_>, source: FailureSource) {
        let CallError { message, timeout } = error;
        match source {
            FailureSource::Model | FailureSource::Answer => {
                // A failed call is an iteration; an answer has been counted.
                self.iteration += u32::from(source == FailureSource::Model);
                self.failures = Failures { in_a_row: self.failures.in_a_row + 1, last: Some(message.to_owned()) };
            }
            FailureSource::Tool => {}
        }
        let in_a_row = if timeout { self.timeouts.in_a_row + 1 } else { 0 };
        self.timeouts = Timeouts { in_a_row, last: message.to_owned() };
    }

    /// The untrusted texts that a `ReAct` answer may quote.
    pub fn quote_context(&self) -> QuoteContext<'_> {
        QuoteContext { untrusted: &self.untrusted, asked_back: self.asked_back }
    }

    /// The frozen plan.
    pub fn plan(&self) -> &AgentPlan {
        &self.plan
    }

    /// What earlier stages found.
    pub fn context(&self) -> Option<&str> {
        self.context.as_deref()
    }

    /// Numbers of the events that tell results, as the model is shown them.
    pub fn events(&self) -> impl Iterator<Item = u32> {
        self.options.iter().filter_map(|options| options.event)
    }

    /// The journal so far.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Finished model calls, failed ones included: the number of the present iteration once its answer is there.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// Time-outs in a row, of model and tools.
    pub fn timeouts(&self) -> u32 {
        self.timeouts.in_a_row
    }

    /// What the last time-out says; empty without one.
    pub fn last_timeout(&self) -> &str {
        &self.timeouts.last
    }

    /// The last model call failed with this error.
    pub fn model_failure(&self) -> Option<&str> {
        self.failures.last.as_deref()
    }

    /// Model calls without an answer of any use, since the last one that had some.
    pub fn model_failures(&self) -> u32 {
        self.failures.in_a_row
    }

    /// Answers in a row that say nothing.
    pub fn empty_answers(&self) -> u32 {
        self.empty_answers
    }

    /// Whether an answer has nothing to go on with: neither text nor calls. Reasoning stands for the text where no
    /// other answer follows.
    pub fn says_nothing(&self, answer: &Answer) -> bool {
        let silent = |text: &str| text.trim().is_empty();
        silent(&answer.text) && answer.calls.is_empty() && (!self.next_is_last() || silent(&answer.thinking))
    }

    /// Whether the next answer is the last one, whatever it says.
    pub fn next_is_last(&self) -> bool {
        self.concluding.is_some() || !self.plan.strategy.uses_tools()
    }

    /// Whether the model has to be told that it repeats itself, and was not yet.
    pub fn is_to_be_told_of_repeats(&self) -> bool {
        self.repeats.are_to_be_told() && !self.told
    }

    /// Whether the last calls are not to be run because they come again and again.
    pub fn has_refused(&self) -> bool {
        self.repeats.are_refused()
    }

    /// What the plan says of a tool; `None` for one that is not offered.
    pub fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.plan.tools.iter().find(|spec| spec.name == name)
    }

    /// Index of the provider to ask.
    pub fn provider(&self) -> usize {
        self.provider
    }

    /// Number of the last loss of commits that the journal knows; 0 for none.
    pub fn recovery(&self) -> u32 {
        self.recovery
    }

    /// Why the next answer is the last one.
    pub fn concluding(&self) -> Option<StopReason> {
        self.concluding.map(|concluding| concluding.reason)
    }

    /// Iterations before the conclusion was forced; all of them where it was not.
    pub fn iterations_used(&self) -> u32 {
        self.concluding.map_or(self.iteration, |concluding| concluding.after)
    }

    /// What wants the execution to stop.
    pub fn stopped(&self) -> Option<StopReason> {
        self.stopped
    }

    /// Whether the execution has to end without another call: on request, or past the session's deadline.
    pub fn is_stopped_at_once(&self) -> bool {
        matches!(self.stopped, Some(StopReason::Cancelled | StopReason::Deadline))
    }

    /// How it ended.
    pub fn ended(&self) -> Option<&Outcome> {
        self.ended.as_ref()
    }

    /// Tokens of all answers.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Tool calls that were run and have a result.
    pub fn tool_calls(&self) -> u32 {
        self.tool_calls
    }

    /// The conversation so far.
    pub fn messages(&self) -> Vec<Message> {
        conversation::messages(&self.entries, &self.options, self.window.elided())
    }

    /// How full the model's context window is.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Whether the next request includes the tool definitions.
    pub fn tool_binding(&self) -> ToolBinding {
        match self.plan.strategy.binds_tools() && self.concluding.is_none() {
            true => ToolBinding::Bound,
            false => ToolBinding::Unbound,
        }
    }

    /// Whether a call of this id was ever asked for.
    pub fn knows_call(&self, id: &str) -> bool {
        self.call_ids.contains(id)
    }
}
