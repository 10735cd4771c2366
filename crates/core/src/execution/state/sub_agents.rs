//! The sub-agents of an execution: the ids of their executions, and their cost.

use super::State;
use crate::execution::entry::{Entry, Spent};
use crate::ids::ExecutionId;

impl State {
    /// The execution, from which the ids of its sub-agents follow.
    pub(crate) fn id(&self) -> ExecutionId {
        ExecutionId(self.id)
    }

    /// The cost of the sub-agents whose results are in the journal.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Whether no call may follow but the conclusion, because the tokens are used up.
    pub(crate) fn is_budget_used_up(&self) -> bool {
        let max = self.plan.limits.max_tokens;
        max > 0 && self.usage.total() >= max
    }

    /// Whether a sub-agent has given an answer.
    pub(crate) fn has_answer_of_sub_agent(&self) -> bool {
        let mut results = self.entries.iter().filter_map(Entry::result);
        results.any(|result| result.spent.is_some() && !result.is_error)
    }

    /// Counts the cost of a sub-agent once: with its result.
    pub(super) fn add_spent(&mut self, spent: Option<Spent>) {
        if let Some(spent) = spent {
            self.spent = self.spent.plus(spent);
            self.usage = self.usage.plus(spent.usage);
            self.has_looked |= spent.tool_calls > 0;
        }
    }
}
