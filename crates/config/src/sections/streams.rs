//! `streams`: copies, servers, storage, ages and sizes of the streams that `tarsy migrate` creates in NATS.

use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::declared::forms::{As, Bytes, Secs};
use crate::declared::texts::Text;
use crate::write::is_default;

/// An hour to ten years.
type Age = Secs<3_600, { 87_600 * 3_600 }>;
/// A mebibyte to a pebibyte.
type Size = Bytes<{ 1 << 20 }, { 1 << 50 }>;

/// The configured settings of the streams. An absent limit has a default, which an existing stream may exceed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Streams {
    /// The smallest number of copies of each message.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(min = 1, max = 5))]
    pub replicas: Option<u32>,
    /// The storage of each stream without its own.
    #[serde(skip_serializing_if = "is_default")]
    pub storage: Option<StreamStorage>,
    /// The servers of each stream without its own.
    #[serde(skip_serializing_if = "is_default")]
    pub placement: Option<StreamPlacement>,
    /// The queue of alerts. It has no age: an alert waits until it is settled.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(schema_with = "without_age")]
    pub alerts: StreamLimits,
    /// The stream of timeline events.
    #[serde(skip_serializing_if = "is_default")]
    pub timeline: StreamLimits,
    /// The stream of dead letters.
    #[serde(skip_serializing_if = "is_default")]
    pub dead_letters: StreamLimits,
    /// The stream of cancel requests.
    #[serde(skip_serializing_if = "is_default")]
    pub control: StreamLimits,
}

/// The settings of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct StreamLimits {
    /// Older messages are deleted.
    #[serde(with = "As::<Age>", skip_serializing_if = "is_default")]
    pub max_age: Option<Duration>,
    /// The size at which the queue of alerts refuses new ones; other streams delete their oldest messages.
    #[serde(with = "Size", skip_serializing_if = "is_default")]
    pub max_bytes: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    pub storage: Option<StreamStorage>,
    #[serde(skip_serializing_if = "is_default")]
    pub placement: Option<StreamPlacement>,
}

/// The storage of a stream. NATS cannot change it later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamStorage {
    File,
    /// Lost when all servers that have a copy are down at the same time.
    Memory,
}

/// The servers that may have the copies of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("anyOf" = [{"required": ["tags"]}, {"required": ["cluster"]}]))]
pub struct StreamPlacement {
    /// The name of their cluster, in a super-cluster.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub cluster: Option<String>,
    /// Each server has all of these `server_tags`.
    #[serde(with = "As::<Vec<Text>>", skip_serializing_if = "is_default")]
    #[schemars(extend("x-accepted" = "the `server_tags` that each server has to have, or `cluster`"))]
    pub tags: Vec<String>,
}

impl StreamStorage {
    /// The word in the configuration and in NATS.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Memory => "memory",
        }
    }
}

/// The queue of alerts has no age.
fn without_age(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = StreamLimits::json_schema(generator);
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.shift_remove("max_age");
    }
    schema
}
