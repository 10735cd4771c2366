//! `BuiltInTool`, the tools of tarsy itself, which no server offers and which show nothing of the world.

use super::load_skill;
use super::past;
use super::read_result;
use super::sub_agents;

/// A tool that tarsy itself answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltInTool {
    /// Reads stored results again.
    ReadResult,
    /// Finds earlier investigations.
    PastInvestigations,
    /// Shows skills.
    LoadSkill,
    /// Gives a task to another agent.
    DispatchAgent,
}

impl BuiltInTool {
    const ALL: [Self; 4] = [
        Self::ReadResult,
        Self::PastInvestigations,
        Self::LoadSkill,
        Self::DispatchAgent,
    ];

    /// The tool of this full name; `None` for a tool of a server.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Whether a tool is one of tarsy whose results show nothing of this investigation: records of earlier ones, and
    /// the texts of skills. The answer of a sub-agent proves nothing either: the events that it cites do. A result that
    /// is read again shows the same as before.
    pub fn is_no_source(name: &str) -> bool {
        match Self::named(name) {
            Some(Self::PastInvestigations | Self::LoadSkill | Self::DispatchAgent) => true,
            Some(Self::ReadResult) | None => false,
        }
    }

    /// The full name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadResult => read_result::TOOL,
            Self::PastInvestigations => past::tool::TOOL,
            Self::LoadSkill => load_skill::TOOL,
            Self::DispatchAgent => sub_agents::TOOL,
        }
    }
}
