//! `receive`, a chain's `questions`, and `runbooks` in another file: how far input from outside is trusted.

pub(crate) mod runbooks;

use serde::Serialize;

use crate::read::reader::Map;

/// The headers that a webhook may set. `Tarsy-Parent-Id` is not among them, because a webhook is never a question.
pub const RECEIVE_HEADERS: [&str; 11] = [
    "Tarsy-Alert-Type",
    "Tarsy-Title",
    "Tarsy-Runbook-Url",
    "Tarsy-Fingerprint",
    "Tarsy-Tenant",
    "traceparent",
    "Tarsy-Session-Id",
    "Tarsy-Chain",
    "Tarsy-Tools",
    "Tarsy-Force",
    "Tarsy-Retry-Of",
];

/// The first headers of the list only describe the alert; they are the default.
const DESCRIBING: usize = 6;

/// The headers that `tarsy receive` accepts and the connections that it permits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Receive {
    /// The headers that are published with an alert, each one of [`RECEIVE_HEADERS`].
    pub headers: Vec<String>,
    /// The number of connections that may be open at the same time. Each may hold a body of the maximum size in memory.
    pub connections: u32,
    /// The number of connections that one address may open. A proxy in front of the receiver is one address.
    pub connections_per_address: u32,
}

impl Default for Receive {
    fn default() -> Self {
        let headers = RECEIVE_HEADERS
            .iter()
            .take(DESCRIBING)
            .map(|name| (*name).to_owned())
            .collect();
        Self {
            headers,
            connections: 512,
            connections_per_address: 256,
        }
    }
}

impl Receive {
    pub(crate) fn read(map: &mut Map<'_>) -> Self {
        let built_in = Self::default();
        let headers = map
            .list("headers", |field| field.word(&RECEIVE_HEADERS))
            .unwrap_or(built_in.headers);
        let mut number = |key, default| map.number(key, 1..=65_536).unwrap_or(default);
        let connections = number("connections", built_in.connections);
        let connections_per_address =
            number("connections_per_address", built_in.connections_per_address);
        Self {
            headers,
            connections,
            connections_per_address,
        }
    }
}

/// The rules for follow-up questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Questions {
    /// Whether the agent that answers may also call the allowed tools that change something.
    pub changes: bool,
}

impl Questions {
    pub(super) fn read(map: &mut Map<'_>) -> Self {
        Self {
            changes: map.flag("changes").unwrap_or_default(),
        }
    }
}
