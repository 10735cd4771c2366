//! `agents`: their instructions and settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings::Settings;
use crate::declared::forms::As;
use crate::declared::texts::Text;
use crate::read::reader::Field;
use crate::write::is_default;

/// An agent of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Agent {
    /// Shown to people only.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub description: String,
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
