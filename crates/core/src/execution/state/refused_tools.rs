//! The tools that the current provider has refused. Requests to this provider are made without them.
//!
//! Another provider may accept them, so a switch begins anew with all tools.

use super::State;
use crate::execution::conversation::Message;
use crate::execution::entry::{Answer, RefusedTool, Role};
use crate::missing_tools::without_refused;
use crate::plan::ToolSpec;

impl State {
    /// The tools of the plan without those that the current provider has refused.
    pub(crate) fn offered_tools(&self) -> Vec<ToolSpec> {
        self.plan
            .tools
            .iter()
            .filter(|spec| !self.is_refused(&spec.name))
            .cloned()
            .collect()
    }

    /// Whether the current provider has refused the tool of this name.
    pub fn is_refused(&self, tool: &str) -> bool {
        self.refused_tools.iter().any(|refused| refused == tool)
    }

    /// The tools of the plan that were refused for the first time before this answer.
    pub fn newly_refused<'a>(&self, answer: &'a Answer) -> Vec<&'a RefusedTool> {
        answer
            .refused_tools
            .iter()
            .filter(|refused: &&RefusedTool| {
                self.tool(&refused.tool).is_some() && !self.is_refused(&refused.tool)
            })
            .collect()
    }

    pub(super) fn add_refused(&mut self, answer: &Answer) {
        let names: Vec<String> = self
            .newly_refused(answer)
            .into_iter()
            .map(|refused| refused.tool.clone())
            .collect();
        self.refused_tools.extend(names);
    }

    /// The conversation, in which the system message names the refused tools.
    pub(super) fn naming_refused(&self, mut messages: Vec<Message>) -> Vec<Message> {
        if let Some(system) = messages
            .first_mut()
            .filter(|message| message.role == Role::System)
        {
            let names: Vec<String> = self
                .refused_tools
                .iter()
                .map(|tool| self.plan.shown(tool).into_owned())
                .collect();
            system.content = without_refused(std::mem::take(&mut system.content), &names);
        }
        messages
    }
}
