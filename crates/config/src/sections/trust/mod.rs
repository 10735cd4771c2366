//! `receive` with its Slack app, a chain's `questions`, and `runbooks` in another file: how far input from outside is
//! trusted.

pub(crate) mod runbooks;
mod slack;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub use self::slack::SlackApp;
use crate::read::reader::Field;
use crate::write::is_default;

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
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Receive {
    /// The headers of a request that are published with an alert.
    #[schemars(schema_with = "receive_headers")]
    pub headers: Vec<String>,
    /// The number of connections that may be open at the same time. Each may hold a body of the maximum size in memory.
    #[schemars(range(min = 1, max = 65_536))]
    pub connections: u32,
    /// The number of connections that one address may open. A proxy in front of the receiver is one address.
    #[schemars(range(min = 1, max = 65_536))]
    pub connections_per_address: u32,
    /// The Slack app whose buttons and mentions `tarsy receive --slack-only` accepts.
    #[serde(skip_serializing_if = "is_default")]
    pub slack: Option<SlackApp>,
}

impl Receive {
    pub(crate) fn check(&mut self, field: &Field<'_>) {
        if let (Some(app), Some(field)) = (&self.slack, field.get("slack")) {
            app.check(&field);
        }
    }
}

fn receive_headers(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": {"enum": RECEIVE_HEADERS}})
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
            slack: None,
        }
    }
}

/// The rules for follow-up questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Questions {
    /// Whether the agent that answers may also call the allowed tools that change something.
    pub changes: bool,
}
