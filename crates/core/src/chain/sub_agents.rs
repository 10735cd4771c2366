//! The executions of sub-agents, beside those of stages.

use super::ExecutionRecord;
use crate::ids::ExecutionId;

/// An execution of a sub-agent that has begun.
#[derive(Clone, Debug, PartialEq)]
pub struct SubAgentRecord {
    /// The execution that dispatched it.
    pub parent: ExecutionId,
    pub execution: ExecutionRecord,
}
