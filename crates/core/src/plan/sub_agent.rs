//! `SubAgent`, an agent that another one may give a part of its work to.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::AgentPlan;

/// An agent that gets a task in words, has tools and a context of its own, and answers once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubAgent {
    /// The name by which it is dispatched; unique among those of its parent.
    pub name: String,
    /// Its use, as the parent reads it.
    pub description: String,
    /// Its plan, with tools that only read and without sub-agents. Its first message lacks the task.
    pub plan: Arc<AgentPlan>,
}
