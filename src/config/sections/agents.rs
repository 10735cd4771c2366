//! `agents`: their instructions and settings.

use super::chains::Names;
use super::settings::Settings;
use crate::config::read::reader::Field;

/// An agent of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    /// Shown to people only.
    pub description: String,
    /// Text for the system prompt; may be empty.
    pub instructions: String,
    /// The agent's layer of settings.
    pub settings: Settings,
}

impl Agent {
    pub(crate) fn read(field: &Field<'_>, names: &Names) -> Self {
        let mut map = field.map();
        let agent = Self {
            description: map.text("description").unwrap_or_default(),
            instructions: map.text("instructions").unwrap_or_default(),
            settings: Settings::read(&mut map, names),
        };
        map.finish();
        agent
    }
}
