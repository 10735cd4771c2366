//! `agents`: their instructions and settings.

use serde::Serialize;

use super::names::Names;
use super::settings::Settings;
use crate::read::reader::Map;
use crate::write::{is_default, written};

/// An agent of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Agent {
    /// Shown to people only.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub description: String,
    /// Text for the system prompt; may be empty.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub instructions: String,
    /// The agent's layer of settings.
    #[serde(flatten)]
    pub settings: Settings,
}

impl Agent {
    pub(crate) fn read(map: &mut Map<'_>, names: &Names) -> Self {
        Self {
            description: map.text("description").unwrap_or_default(),
            instructions: map.text("instructions").unwrap_or_default(),
            settings: Settings::read(map, names),
        }
    }
}
