//! `agents`: their instructions and settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings::Settings;
use crate::declared::forms::As;
use crate::declared::texts::{AgentName, Text};
use crate::read::reader::Field;
use crate::write::is_default;
use tarsy_core::sub_agents::MAX_AGENTS;

/// An agent of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Agent {
    /// Shown to people, and to an agent that has this one as a sub-agent: it then has to say what the agent is for.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub description: String,
    /// The agents that this one may give a part of its work to, as its sub-agents; by default none.
    #[serde(with = "As::<Vec<AgentName>>", skip_serializing_if = "is_default")]
    pub agents: Vec<String>,
    /// The number of tasks that it may give to them in one run; by default 8.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(min = 1, max = MAX_AGENTS))]
    pub max_agents: Option<u32>,
    /// Text for the system prompt; may be empty.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub instructions: String,
    /// The agent's layer of settings.
    #[serde(flatten)]
    pub settings: Settings,
}

impl Agent {
    pub(crate) fn check(&mut self, field: &Field<'_>) {
        self.settings.check(field);
    }
}
