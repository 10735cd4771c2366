//! `scope` of a server: the sessions that share one connection to it.

use serde::Serialize;

use crate::read::reader::Map;

/// The sessions that share a connection to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerScope {
    /// All sessions of a worker share one connection.
    #[default]
    Worker,
    /// Each session has a separate connection, from its first call until the worker ends or releases it.
    Session,
}

impl ServerScope {
    const ALL: [Self; 2] = [Self::Worker, Self::Session];

    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Session => "session",
        }
    }

    pub(super) fn read(map: &mut Map<'_>) -> Self {
        map.get("scope")
            .and_then(|field| field.choice(&Self::ALL, Self::as_str))
            .unwrap_or_default()
    }
}
