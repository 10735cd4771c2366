//! `Dispatched`, the fact that a sub-agent has begun, and `Spent`, the cost of its run and what its answer rests on.

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

/// The tokens and calls of a sub-agent until its end, which its parent counts as its own, and what its answer rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    pub usage: Usage,
    /// Its finished model calls.
    pub iterations: u32,
    /// Its tool calls with a result.
    pub tool_calls: u32,
    /// Whether it has called a tool of a server, or the provider's own tools have worked for it.
    #[serde(default)]
    pub has_looked: bool,
    /// Whether such a call has shown something.
    #[serde(default)]
    pub has_answer: bool,
    /// The numbers of its events that prove nothing about now: records of earlier investigations, and skills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sourceless: Vec<u32>,
}

impl Spent {
    /// The sum, field by field.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.sourceless.extend(&other.sourceless);
        Self {
            usage: self.usage.plus(other.usage),
            iterations: self.iterations + other.iterations,
            tool_calls: self.tool_calls + other.tool_calls,
            has_looked: self.has_looked || other.has_looked,
            has_answer: self.has_answer || other.has_answer,
            sourceless: self.sourceless,
        }
    }
}
