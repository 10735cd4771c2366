//! The calls of the last answer: open calls, the limit of calls, and the arguments to send.

use super::{Approval, OpenCall, State};
use crate::execution::entry::ToolCall;
use crate::execution::repeats::identity;
use crate::execution::unmasked::Arguments;

impl State {
    /// Whether an answer has requested a call with this id.
    pub(crate) fn knows_call(&self, id: &str) -> bool {
        self.call_ids.contains(id)
    }

    /// Whether the model repeats its calls and still needs feedback about that.
    pub fn needs_repeat_feedback(&self) -> bool {
        self.repeats.need_feedback() && !self.has_feedback
    }

    /// Whether the last calls are refused because the model repeated them too often.
    pub fn refuses_calls(&self) -> bool {
        self.repeats.are_refused()
    }

    /// Calls without a result, in the order to run them.
    pub fn open_calls(&self) -> &[OpenCall] {
        &self.open
    }

    /// The arguments to send for a call of the last answer.
    pub fn arguments(&self, call_id: &str) -> Arguments<'_> {
        self.original_arguments.arguments(call_id)
    }

    /// The number of open calls that may still run: the plan limits the calls of one answer.
    pub(crate) fn calls_left(&self) -> usize {
        match usize::try_from(self.plan.limits.max_calls).unwrap_or(usize::MAX) {
            0 => usize::MAX,
            max => max.saturating_sub(self.asked.saturating_sub(self.open.len())),
        }
    }

    /// Open calls after a loss of commits: each that may change something may have been sent. One that a person decides
    /// about was sent only if it is among the calls of the loss, which were approved.
    pub(super) fn start_open_calls(&mut self) {
        let mut open = std::mem::take(&mut self.open);
        for open in open.iter_mut().filter(|open| !open.started) {
            open.started = match open.approval {
                Approval::NotNeeded => !open.call.read_only,
                Approval::Needed | Approval::Asked { .. } | Approval::Refused(_) => {
                    self.take_sent_before(&open.call)
                }
            };
        }
        self.open = open;
    }

    /// Whether a step whose commit was lost may have sent this call. Each such call matches once.
    pub(super) fn take_sent_before(&mut self, call: &ToolCall) -> bool {
        if call.read_only || self.sent_before.is_empty() {
            return false;
        }
        let identity = identity(&call.tool, &call.arguments);
        let same = self
            .sent_before
            .iter()
            .position(|sent| sent.identity == identity);
        same.map(|at| self.sent_before.remove(at)).is_some()
    }
}
