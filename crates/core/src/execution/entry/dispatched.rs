//! `Dispatched`, the fact that a sub-agent has begun, and `Spent`, the cost of its run.

use serde::{Deserialize, Serialize};

use super::Usage;
use crate::ids::ExecutionId;

/// A sub-agent with its task. Its execution begins in the same checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatched {
    /// The call that asks for it.
    pub call_id: String,
    /// The name of the agent, as the plan has it.
    pub agent: String,
    /// Its task, as the model wrote it.
    pub task: String,
    /// The execution of the sub-agent: the same for every worker that dispatches this call.
    pub execution_id: ExecutionId,
}

/// The tokens and calls of a sub-agent until its end. Its parent counts them as its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    pub usage: Usage,
    /// Its finished model calls.
    pub iterations: u32,
    /// Its tool calls with a result.
    pub tool_calls: u32,
}

impl Spent {
    /// The sum, field by field.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            usage: self.usage.plus(other.usage),
            iterations: self.iterations + other.iterations,
            tool_calls: self.tool_calls + other.tool_calls,
        }
    }
}
