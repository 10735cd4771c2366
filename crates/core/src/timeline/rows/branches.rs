//! The executions of sub-agents: rows below the event that began them.

use std::collections::HashMap;

use crate::ids::ExecutionId;
use crate::timeline::{EventType, TimelineEvent};

/// The sub-agents that have begun, each with the number of the event that began it.
#[derive(Debug, Default)]
pub(super) struct Branches(HashMap<ExecutionId, u32>);

impl Branches {
    /// The number of the event that began the sub-agent of this one.
    pub(super) fn add(&mut self, event: &TimelineEvent) -> Option<u32> {
        if event.event_type == EventType::AgentDispatched
            && let Some(execution) = event.metadata.get("execution_id")
            && let Ok(execution) = serde_json::from_value(execution.clone())
        {
            self.0.insert(execution, event.session_seq);
        }
        self.0.get(&event.execution_id?).copied()
    }
}
