//! The sub-agents of an execution: the ids of their executions, and their cost.

use super::State;
use crate::execution::answers::proof::has_native_work;
use crate::execution::entry::{Entry, Spent};
use crate::ids::ExecutionId;

impl State {
    /// The execution, from which the ids of its sub-agents follow.
    pub(crate) fn id(&self) -> ExecutionId {
        ExecutionId(self.id)
    }

    /// The cost of the sub-agents whose results are in the journal.
    pub fn spent(&self) -> &Spent {
        &self.spent
    }

    /// The cost of this execution with its sub-agents, and what an answer of it rests on.
    pub fn spent_in_all(&self) -> Spent {
        let has_native_work = has_native_work(self, None);
        let sourceless = self.sourceless_events().into_iter();
        Spent {
            usage: self.usage,
            iterations: self.iteration() + self.spent.iterations,
            tool_calls: self.tool_calls() + self.spent.tool_calls,
            has_looked: self.has_looked || has_native_work,
            has_answer: self.has_answer_of_tool() || has_native_work,
            sourceless: sourceless
                .filter_map(|event| u32::try_from(event).ok())
                .collect(),
        }
    }

    /// Whether no call may follow but the conclusion, because the tokens are used up.
    pub(crate) fn is_budget_used_up(&self) -> bool {
        let max = self.plan.limits.max_tokens;
        max > 0 && self.usage.total() >= max
    }

    /// Whether a sub-agent has given an answer after a call that has shown something.
    pub(crate) fn has_answer_of_sub_agent(&self) -> bool {
        let mut results = self.entries.iter().filter_map(Entry::result);
        results.any(|result| {
            let spent = result.spent.as_ref();
            spent.is_some_and(|spent| spent.has_answer) && !result.is_error
        })
    }

    /// Counts the cost of a sub-agent once: with its result.
    pub(super) fn add_spent(&mut self, spent: Option<&Spent>) {
        if let Some(spent) = spent {
            self.spent = std::mem::take(&mut self.spent).plus(spent);
            self.usage = self.usage.plus(spent.usage);
            self.has_looked |= spent.has_looked;
        }
    }
}
