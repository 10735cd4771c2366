//! The calls of the last answer: which have no result, which may still be run, and with what.

use super::{OpenCall, State};
use crate::investigation::execution::entry::ToolCall;
use crate::investigation::execution::recovery::identity;
use crate::investigation::execution::unmasked::Arguments;

impl State {
    /// Calls without a result, in the order to run them.
    pub fn open_calls(&self) -> &[OpenCall] {
        &self.open
    }

    /// What a call of the last answer is sent with.
    pub fn arguments(&self, call_id: &str) -> Arguments<'_> {
        self.original_arguments.arguments(call_id)
    }

    /// How many of the open calls may still be run: those of one answer have a limit.
    pub fn calls_left(&self) -> usize {
        match usize::try_from(self.plan.limits.max_calls).unwrap_or(usize::MAX) {
            0 => usize::MAX,
            most => most.saturating_sub(self.asked.saturating_sub(self.open.len())),
        }
    }

    /// Whether a call was sent by a step whose commit was lost; each counts once.
    pub(super) fn take_sent_before(&mut self, call: &ToolCall) -> bool {
        if call.read_only || self.sent_before.is_empty() {
            return false;
        }
        let identity = identity(call);
        let same = self.sent_before.iter().position(|sent| sent.identity == identity);
        same.map(|at| self.sent_before.remove(at)).is_some()
    }
}
