//! The sections of a system message: the texts of required skills, and the list of those that can be loaded.

use std::sync::Arc;

use super::code::fence_around;
use super::load_skill::TOOL;
use super::plan::Strategy;
use super::prompt::{line, paragraph, render};
use super::skills::Skill;
use super::tool_names::shown;

const REQUIRED: &str = include_str!("prompts/skill_required.md");
const LIST: &str = include_str!("prompts/skills.md");
const RUNBOOK: &str = include_str!("prompts/skill_runbook.md");
/// The bytes that the texts of required skills have together.
pub const MAX_REQUIRED_BYTES: usize = 32 * 1024;

/// Those that a plan gives to an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSkills {
    /// Those whose texts are sections of the system message.
    pub required: Vec<Arc<Skill>>,
    /// Those that it may load.
    pub loadable: Vec<Arc<Skill>>,
}

impl AgentSkills {
    /// Required skills beyond [`MAX_REQUIRED_BYTES`] are listed like the others, first of all.
    #[must_use]
    pub fn new(required: Vec<Arc<Skill>>, others: Vec<Arc<Skill>>) -> Self {
        let mut skills = Self::default();
        let mut bytes = 0;
        for skill in required {
            bytes += skill.body.text.len();
            if bytes <= MAX_REQUIRED_BYTES {
                skills.required.push(skill);
            } else {
                skills.loadable.push(skill);
            }
        }
        skills.loadable.extend(others);
        skills
    }

    /// The sections, to stand behind the operators' instructions; empty without skills. Texts stand in fences, so that
    /// none of their lines is taken for a heading of the message.
    pub fn sections(&self, strategy: Strategy) -> String {
        let mut sections = String::new();
        for skill in &self.required {
            let text = skill.body.text.trim();
            let values = [
                ("name", skill.name.as_str()),
                ("fence", &fence_around(&[text])),
                ("text", text),
            ];
            sections.push_str(&paragraph(&render(REQUIRED, &values)));
        }
        if !self.loadable.is_empty() {
            let items: Vec<String> = self
                .loadable
                .iter()
                .map(|skill| format!("- {}: {}", skill.name, line(&skill.description)))
                .collect();
            let values = [
                ("tool", &*shown(TOOL, strategy)),
                ("list", &items.join("\n")),
            ];
            sections.push_str(&paragraph(&render(LIST, &values)));
        }
        sections
    }
}

/// Adds a skill to the first user message, in the place of the runbook that the alert does not name.
pub fn with_runbook(user: &str, skill: &Skill) -> String {
    let text = skill.body.text.trim();
    let values = [
        ("name", skill.name.as_str()),
        ("fence", &fence_around(&[text])),
        ("text", text),
    ];
    format!("{user}{}", paragraph(&render(RUNBOOK, &values)))
}
