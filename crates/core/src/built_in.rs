//! `BuiltInTool`, the tools of tarsy itself, which no server offers and which show nothing of the world.

use super::load_skill;
use super::read_result;

/// A tool that tarsy itself answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltInTool {
    /// Reads stored results again.
    ReadResult,
    /// Shows skills.
    LoadSkill,
}

impl BuiltInTool {
    const ALL: [Self; 2] = [Self::ReadResult, Self::LoadSkill];

    /// The tool of this full name; `None` for a tool of a server.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// The full name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadResult => read_result::TOOL,
            Self::LoadSkill => load_skill::TOOL,
        }
    }
}
