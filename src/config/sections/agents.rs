//! `agents`: who investigates.

use super::chains::Names;
use super::settings::Settings;
use crate::config::read::reader::Field;

/// An agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    /// For people.
    pub description: String,
    /// Goes into the system prompt; empty for nothing.
    pub instructions: String,
    /// Its layer of settings.
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
