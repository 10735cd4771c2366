//! Sub-agents: the built-in tool `tarsy.dispatch_agent`, which gives a part of the work to another agent, and its
//! texts.
//!
//! The task is written by a model that has read texts from outside. It stands indented in a fence of the sub-agent's
//! first message, and the system message allows no change, whatever the task says.

use serde_json::{Value, json};

use super::code::fence_around;
use super::plan::{Strategy, SubAgent, ToolSpec};
use super::prompt::{line, paragraph, render};
use super::tool_names::shown;
use super::visible::{is_blank, visible};

/// The full name.
pub const TOOL: &str = "tarsy.dispatch_agent";
/// The longest task.
pub const MAX_TASK_BYTES: usize = 8 * 1024;
/// The most sub-agents that an agent may dispatch in all.
pub const MAX_AGENTS: u32 = 8;
/// Characters of a name in a refusal.
const MAX_SHOWN_NAME: usize = 64;

const DESCRIPTION: &str = include_str!("../prompts/dispatch_agent.md");
const SECTION: &str = include_str!("../prompts/sub_agents.md");
const TASK: &str = include_str!("../prompts/sub_agent_task.md");

/// The tool for an agent with these sub-agents.
pub fn spec(agents: &[SubAgent]) -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": {
            "agent": {"type": "string", "enum": names(agents), "description": "Name of an agent"},
            "task": {
                "type": "string", "minLength": 1, "maxLength": MAX_TASK_BYTES,
                "description": "What to find out, where, and for which time",
            },
        },
        "required": ["agent", "task"],
        "additionalProperties": false,
    });
    let agents: Vec<String> = agents
        .iter()
        .map(|agent| format!("{} ({})", agent.name, line(&agent.description)))
        .collect();
    ToolSpec {
        name: TOOL.to_owned(),
        original_name: None,
        description: format!("{} The agents: {}.", DESCRIPTION.trim(), agents.join("; ")),
        parameters_schema: schema.to_string(),
        read_only: true,
        approval: None,
    }
}

/// The section of the parent's system message, to stand behind those of its skills; empty without sub-agents.
pub fn section(agents: &[SubAgent], max_agents: u32, strategy: Strategy) -> String {
    if agents.is_empty() {
        return String::new();
    }
    let items: Vec<String> = agents
        .iter()
        .map(|agent| format!("- {}: {}", agent.name, line(&agent.description)))
        .collect();
    let values = [
        ("tool", &*shown(TOOL, strategy)),
        ("max_agents", &max_agents.to_string()),
        ("list", &items.join("\n")),
    ];
    paragraph(&render(SECTION, &values))
}

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The name of a sub-agent of the caller.
    pub agent: String,
    /// The task, without invisible characters.
    pub task: String,
}

impl Request {
    /// Parses the arguments of an agent that has these sub-agents.
    ///
    /// # Errors
    /// When they name no sub-agent or no task; the text is for the model.
    pub fn parse(arguments: &str, agents: &[SubAgent]) -> Result<Self, String> {
        let known = names(agents).join(", ");
        let Ok(Value::Object(given)) = serde_json::from_str(arguments) else {
            return Err(format!(
                "the arguments have to be a JSON object with agent and task; the agents are: {known}."
            ));
        };
        let text = |key: &str| given.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = text("agent").trim();
        let Some(agent) = agents.iter().find(|agent| agent.name == name) else {
            let name: String = name.chars().take(MAX_SHOWN_NAME).collect();
            return Err(format!(
                "there is no agent {name:?}; the agents are: {known}."
            ));
        };
        let task = text("task");
        if is_blank(task) {
            return Err(format!(
                "task has to be a text that says what {} has to find out; the agents are: {known}.",
                agent.name
            ));
        }
        if task.len() > MAX_TASK_BYTES {
            return Err(format!(
                "task has {} bytes, and may have {MAX_TASK_BYTES}: give a part of it, to one of these agents: {known}.",
                task.len()
            ));
        }
        Ok(Self {
            agent: agent.name.clone(),
            task: visible(task).trim().to_owned(),
        })
    }
}

/// The first message of a sub-agent: that of its plan, and the task. No line of the task begins at the margin.
pub fn with_task(user_prompt: &str, task: &str) -> String {
    let task = visible(task);
    let lines: Vec<String> = task.lines().map(|line| format!("    {line}")).collect();
    let values = [
        ("fence", fence_around(&[&task])),
        ("task", lines.join("\n")),
    ];
    let values: Vec<(&str, &str)> = values
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    format!("{user_prompt}{}", paragraph(&render(TASK, &values)))
}

fn names(agents: &[SubAgent]) -> Vec<&str> {
    agents.iter().map(|agent| agent.name.as_str()).collect()
}

#[cfg(test)]
mod tests;
