//! The section about the tools whose calls wait for a person.

use super::{Briefing, paragraph, render};
use crate::plan::{Strategy, ToolSpec};
use crate::tool_names::shown;

const APPROVALS: &str = include_str!("../prompts/approvals.md");

/// The section of a system message, behind the operators' instructions; empty for an agent without such tools. Their
/// names are those by which the model calls them.
pub fn approvals(tools: &[ToolSpec], strategy: Strategy) -> String {
    let waiting = tools.iter().filter(|tool| tool.approval.is_some());
    let names: Vec<_> = waiting.map(|tool| shown(&tool.name, strategy)).collect();
    if names.is_empty() {
        return String::new();
    }
    paragraph(&render(APPROVALS, &[("tools", &names.join(", "))]))
}

/// Whether a person decides about calls of the agent.
pub(super) fn has_approvals(briefing: &Briefing<'_>) -> bool {
    briefing.tools.iter().any(|tool| tool.approval.is_some())
}
