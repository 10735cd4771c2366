//! The state of an execution: a fold over the entries of its journal.
//!
//! [`State::apply`] is the only mutation. Every input of a decision is an entry, so a replay of the journal on another
//! machine leads to the same decision.

mod answers;
mod approvals;
mod calls;
mod citable;
mod messages;
mod provider;
mod refused_tools;
mod sub_agents;
mod summaries;
mod times;

use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use uuid::Uuid;

pub use self::answers::AnswerSoFar;
pub use self::approvals::Approval;
use self::approvals::EndedRequests;
pub(crate) use self::approvals::EndedWait;
pub use self::messages::{MessageForm, MessageSource};
use super::conversation::RenderOptions;
use super::entry::{
    Answer, Entry, FailureSource, Outcome, SentCall, Spent, StopReason, ToolCall, ToolResult, Usage,
};
use super::event_refs::RecordedEntry;
use super::repeats::Repeats;
use super::results::plain;
use super::summaries::{LongResult, long_result};
use super::unmasked::OriginalArguments;
use super::window::{ToolBinding, Window};
use crate::ids::ExecutionId;
use crate::plan::{AgentPlan, Strategy, ToolSpec};
use crate::react::{QuoteContext, UntrustedHeaders};
use crate::read_result;

/// The progress of an execution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// The execution; nil where nothing depends on it.
    id: Uuid,
    plan: Arc<AgentPlan>,
    context: Option<String>,
    entries: Vec<Entry>,
    options: Vec<RenderOptions>,
    call_ids: HashSet<String>,
    iteration: u32,
    pub(super) timeouts: Timeouts,
    failures: Failures,
    empty_answers: u32,
    /// Consecutive answers of this provider that did not count because of their end.
    pub(super) cut_answers: u32,
    /// The answer that ends the execution if no other one comes.
    pub(super) so_far: Option<AnswerSoFar>,
    /// A final answer of this execution was asked for once more.
    pub(super) was_asked_again: bool,
    /// A call of this execution was sent to a server.
    pub(super) has_looked: bool,
    repeats: Repeats,
    has_feedback: bool,
    provider: usize,
    /// The current provider took over from another one and has not answered since.
    pub(super) provider_is_new: bool,
    refused_tools: Vec<String>,
    open: Vec<OpenCall>,
    long_results: Vec<LongResult>,
    /// Number of the last loss of commits in the journal; 0 for none.
    pub(super) recovery: u32,
    sent_before: Vec<SentCall>,
    original_arguments: OriginalArguments,
    ended_requests: EndedRequests,
    /// The number of calls in the last answer.
    asked: usize,
    concluding: Option<Concluding>,
    stopped: Option<StopReason>,
    ended: Option<Outcome>,
    usage: Usage,
    tool_calls: u32,
    /// The cost of its sub-agents.
    spent: Spent,
    window: Window,
    untrusted: UntrustedHeaders,
    was_rejected_as_quotation: bool,
    /// Number of the last update of the alert in the journal.
    known_updates: u32,
    /// Number of the last update that the model has answered.
    answered_updates: u32,
    began_at: Option<DateTime<Utc>>,
    last_entry_at: Option<DateTime<Utc>>,
}

/// A call without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    pub call: ToolCall,
    /// Whether the call may have been sent.
    pub started: bool,
    pub approval: Approval,
}

/// Consecutive time-outs. An answer of the model or of a tool resets the count, so one batch of calls counts once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Timeouts {
    pub(super) in_a_row: u32,
    /// The error text of the last one; empty without one.
    pub(super) last: String,
}

/// Model calls without a usable answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Failures {
    /// The number of failures since the last answer with a text or calls.
    in_a_row: u32,
    /// The error of the last model call, if it failed.
    last: Option<String>,
}

/// The next answer is the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Concluding {
    reason: StopReason,
    /// Number of iterations before the conclusion was forced.
    after: u32,
}

impl State {
    /// The state after `entries`. `context` holds the findings of earlier stages, a part of the opening prompt.
    pub fn replay(
        plan: Arc<AgentPlan>,
        context: Option<String>,
        entries: impl IntoIterator<Item = impl Into<RecordedEntry>>,
    ) -> Self {
        let mut state = Self {
            window: Window::new(&plan),
            plan,
            context,
            ..Self::default()
        };
        for entry in entries {
            state.apply(entry);
        }
        state
    }

    /// The state of this execution: the ids of its sub-agents depend on it.
    #[must_use]
    pub fn of_execution(mut self, id: ExecutionId) -> Self {
        self.id = id.0;
        self
    }

    /// Applies one entry, with its time and the number of its event if it has them.
    pub fn apply(&mut self, entry: impl Into<RecordedEntry>) {
        let RecordedEntry {
            mut entry,
            event,
            at,
        } = entry.into();
        if let Entry::Answer(answer) = &mut entry {
            self.original_arguments = OriginalArguments::take(answer);
        }
        let options = RenderOptions {
            // The event of a request is no result.
            event: entry.result().and(event),
            has_effect: self.may_have_changed_something(&entry),
            form: self.plan.result_form,
            read_back: self.read_back(&entry),
            summary: None,
            time: self.stated_time(&entry, at),
        };
        self.began_at = self.began_at.or(at);
        self.last_entry_at = at.or(self.last_entry_at);
        let owed_room = self.window.owes_room();
        self.window.apply(&entry, options, self.tool_binding());
        self.add_untrusted(&entry);
        match &entry {
            Entry::Prompt { .. } => {}
            Entry::Feedback { about, .. } => self.read_feedback(about.as_ref()),
            Entry::AlertUpdated(updated) => self.known_updates = updated.upto,
            Entry::Answer(answer) => self.answered(answer),
            Entry::Failed {
                error,
                timeout,
                source,
                ..
            } => {
                let in_a_row = self.timeouts.in_a_row + 1;
                self.timeouts = Timeouts {
                    in_a_row: if *timeout { in_a_row } else { 0 },
                    last: error.clone(),
                };
                self.fail(*source, error);
            }
            Entry::Started { call_id } => {
                for open in self.open.iter_mut().filter(|open| open.call.id == *call_id) {
                    open.started = true;
                }
            }
            Entry::ToolResult(result) | Entry::Observation(result) => {
                self.read_result(result);
                self.long_results
                    .extend(long_result(&self.plan, &entry, event));
            }
            Entry::Summarised(summary) => self.summarise(summary),
            // The result of the lost call follows in the same checkpoint and closes it.
            Entry::Lost { .. } => self.has_looked = true,
            Entry::SentBefore { recovery, calls } => {
                self.recovery = *recovery;
                self.sent_before.extend(calls.iter().cloned());
                self.start_open_calls();
            }
            // Its call stays open until its result.
            Entry::Dispatched(_) => {}
            Entry::ApprovalRequested(asked) => self.add_request(&asked.call_id, event),
            Entry::ApprovalEnded(ended) => self.end_request(ended),
            Entry::AfterWait { .. } => self.tell_waits(),
            Entry::Switched { provider } => self.switch(*provider),
            Entry::Concluding { reason } => {
                self.concluding = Some(Concluding {
                    reason: *reason,
                    after: self.iteration,
                });
                self.failures = Failures::default();
                (self.empty_answers, self.cut_answers) = (0, 0);
            }
            Entry::Elided { up_to, .. } => {
                self.repeats.blank(*up_to);
                if owed_room {
                    self.forget_refusal();
                }
            }
            Entry::Stopped { reason } => self.stopped = Some(*reason),
            Entry::Ended { outcome } => self.ended = Some(outcome.clone()),
        }
        self.entries.push(entry);
        self.options.push(options);
    }

    fn read_result(&mut self, result: &ToolResult) {
        let is_offered = self.tool(&result.tool).is_some() && !self.is_refused(&result.tool);
        // An older journal does not say which calls were not sent.
        let may_run = is_offered && !self.repeats.are_refused() && self.calls_left() > 0;
        let is_run = may_run && result.not_sent.is_none();
        self.tool_calls += u32::from(is_run);
        self.has_looked |= is_run && !read_result::is_own(&result.tool);
        self.add_spent(result.spent.as_ref());
        self.timeouts = Timeouts::default();
        self.open.retain(|open| open.call.id != result.call_id);
    }

    /// Records the headers of an untrusted text, so that an answer that only quotes it is recognised (`ReAct`).
    fn add_untrusted(&mut self, entry: &Entry) {
        if self.plan.strategy != Strategy::React {
            return;
        }
        if let Some(result) = entry.result() {
            self.untrusted.add(plain(&result.tool, &result.content));
        } else if let Some(text) = entry.text_from_outside() {
            self.untrusted.add(text);
        }
    }

    fn may_have_changed_something(&self, entry: &Entry) -> bool {
        entry.result().is_some_and(|result: &ToolResult| {
            let mut changing = self.open.iter().filter(|open| !open.call.read_only);
            changing.any(|open| open.call.id == result.call_id)
        })
    }

    fn answered(&mut self, answer: &Answer) {
        self.provider_is_new = false;
        self.add_refused(answer);
        self.answered_updates = self.known_updates;
        self.failures.last = None;
        self.judge(answer);
        self.iteration += 1;
        self.timeouts = Timeouts::default();
        self.has_feedback = false;
        self.was_rejected_as_quotation = answer
            .reading
            .as_ref()
            .is_some_and(|reading| reading.quotes);
        self.usage = self.usage.plus(answer.usage);
        if !answer.masked_calls.is_empty() {
            // Two calls may differ only in the masked parts of their arguments.
            self.repeats = Repeats::default();
        }
        self.repeats.add(
            &answer.calls,
            u32::try_from(self.entries.len() + 1).unwrap_or(u32::MAX),
        );
        self.call_ids
            .extend(answer.calls.iter().map(|call| call.id.clone()));
        self.asked = answer.calls.len();
        self.long_results.clear();
        let calls = answer.calls.iter().cloned();
        self.open = calls
            .map(|call| OpenCall {
                started: self.take_sent_before(&call),
                approval: self.approval_of(&call),
                call,
            })
            .collect();
    }

    /// The results were blanked because the provider refused the request: that failure is handled.
    fn forget_refusal(&mut self) {
        self.failures.last = None;
        self.failures.in_a_row = self.failures.in_a_row.saturating_sub(1);
    }

    fn fail(&mut self, source: FailureSource, error: &str) {
        if source != FailureSource::Tool {
            // A failed call counts as an iteration; an empty answer was counted already.
            self.iteration += u32::from(source == FailureSource::Model);
            self.failures.in_a_row += 1;
            self.failures.last = Some(error.to_owned());
        }
    }

    /// The untrusted texts that a `ReAct` answer may quote.
    pub fn quote_context(&self) -> QuoteContext<'_> {
        QuoteContext {
            untrusted: &self.untrusted,
            was_rejected_as_quotation: self.was_rejected_as_quotation,
        }
    }

    /// The frozen plan.
    pub fn plan(&self) -> &AgentPlan {
        &self.plan
    }

    /// The findings of earlier stages.
    pub fn context(&self) -> Option<&str> {
        self.context.as_deref()
    }

    /// The event numbers of the results, as the model sees them.
    pub fn events(&self) -> impl Iterator<Item = u32> {
        self.options.iter().filter_map(|options| options.event)
    }

    /// The event of the result that each entry is, in their order; `None` for any other entry.
    pub(crate) fn event_of_entries(&self) -> impl Iterator<Item = Option<u32>> {
        self.options.iter().map(|options| options.event)
    }

    /// The journal so far.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Number of finished model calls, failed ones included.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// The error of the last model call, if it failed.
    pub fn model_failure(&self) -> Option<&str> {
        self.failures.last.as_deref()
    }

    /// Consecutive model calls without a usable answer.
    pub fn model_failures(&self) -> u32 {
        self.failures.in_a_row
    }

    /// Whether the next answer is the last one, whatever its content.
    pub(crate) fn next_is_last(&self) -> bool {
        self.concluding.is_some() || !self.plan.strategy.uses_tools()
    }

    /// The plan's description of a tool; `None` for a tool that is not offered.
    pub fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.plan.tools.iter().find(|spec| spec.name == name)
    }

    /// The reason why the next answer is the last one.
    pub fn concluding(&self) -> Option<StopReason> {
        self.concluding.map(|concluding| concluding.reason)
    }

    /// Number of iterations before a forced conclusion; of all iterations without one.
    pub fn iterations_used(&self) -> u32 {
        self.concluding
            .map_or(self.iteration, |concluding| concluding.after)
    }

    /// The reason why the execution has to stop.
    pub fn stopped(&self) -> Option<StopReason> {
        self.stopped
    }

    /// Whether the execution ends without another call: it was cancelled, or the session's deadline passed.
    pub fn is_stopped_at_once(&self) -> bool {
        matches!(
            self.stopped,
            Some(StopReason::Cancelled | StopReason::Deadline)
        )
    }

    /// Whether nothing but a conclusion may follow, because the time of the session is used up.
    pub fn is_out_of_time(&self) -> bool {
        self.stopped == Some(StopReason::TimeBudget)
    }

    /// The time of the first entry; `None` before it.
    pub fn began_at(&self) -> Option<DateTime<Utc>> {
        self.began_at
    }

    /// Whether the execution may still be asked to conclude because of the time: it has begun, has tools, and neither
    /// concludes nor is stopped for good.
    pub fn may_run_out_of_time(&self) -> bool {
        self.plan.wraps_up()
            && !self.entries.is_empty()
            && self.ended.is_none()
            && self.concluding.is_none()
            && !self.is_stopped_at_once()
            && !self.is_out_of_time()
    }

    /// The outcome, after the end.
    pub fn ended(&self) -> Option<&Outcome> {
        self.ended.as_ref()
    }

    /// Sum of the tokens of all answers.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Number of tool calls that were sent and have a result.
    pub fn tool_calls(&self) -> u32 {
        self.tool_calls
    }

    /// Number of the last update of the alert in the journal; 0 for none.
    pub fn known_updates(&self) -> u32 {
        self.known_updates
    }

    /// The number of the last update that the model has answered.
    pub fn answered_updates(&self) -> u32 {
        self.answered_updates
    }

    /// The use of the model's context window.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Whether the next request includes the tool definitions.
    pub(crate) fn tool_binding(&self) -> ToolBinding {
        let provider = self.plan.providers.get(self.provider());
        let keeps_tools = provider.is_some_and(|provider| provider.keeps_tools);
        if !self.plan.strategy.binds_tools() {
            ToolBinding::Unbound
        } else if self.concluding.is_none() {
            ToolBinding::Bound
        } else if keeps_tools {
            ToolBinding::Declared
        } else {
            ToolBinding::Unbound
        }
    }
}
