//! `streams`: copies, servers, storage, ages and sizes of the streams that `tarsy migrate` creates in NATS.

use std::time::Duration;

use serde::Serialize;

use crate::read::reader::Map;
use crate::write::{bytes, is_default, written};

const HOUR: u64 = 3_600;
/// Ten years.
const MAX_SECS: u64 = 87_600 * HOUR;
const MIB: u64 = 1024 * 1024;
/// A pebibyte.
const MAX_BYTES: u64 = 1024 * 1024 * 1024 * MIB;

/// The configured settings of the streams. An absent limit has a default, which an existing stream may exceed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Streams {
    /// The smallest number of copies of each message.
    #[serde(skip_serializing_if = "is_default")]
    pub replicas: Option<u32>,
    /// The storage of each stream without its own.
    #[serde(skip_serializing_if = "is_default")]
    pub storage: Option<StreamStorage>,
    /// The servers of each stream without its own.
    #[serde(skip_serializing_if = "is_default")]
    pub placement: Option<StreamPlacement>,
    /// The queue of alerts. It has no age: an alert waits until it is settled.
    #[serde(skip_serializing_if = "is_default")]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamLimits {
    /// Older messages are deleted.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub max_age: Option<Duration>,
    /// The size at which the queue of alerts refuses new ones; other streams delete their oldest messages.
    #[serde(serialize_with = "bytes", skip_serializing_if = "is_default")]
    pub max_bytes: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    pub storage: Option<StreamStorage>,
    #[serde(skip_serializing_if = "is_default")]
    pub placement: Option<StreamPlacement>,
}

/// The storage of a stream. NATS cannot change it later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamStorage {
    File,
    /// Lost when all servers that have a copy are down at the same time.
    Memory,
}

/// The servers that may have the copies of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamPlacement {
    /// The name of their cluster, in a super-cluster.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub cluster: Option<String>,
    /// Each server has all of these `server_tags`.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
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

impl Streams {
    pub(crate) fn read(map: &mut Map<'_>) -> Self {
        Self {
            replicas: map.number("replicas", 1..=5),
            storage: storage(map),
            placement: placement(map),
            alerts: map.section("alerts", StreamLimits::read),
            timeline: map.section("timeline", StreamLimits::read_with_age),
            dead_letters: map.section("dead_letters", StreamLimits::read_with_age),
            control: map.section("control", StreamLimits::read_with_age),
        }
    }
}

impl StreamLimits {
    fn read(map: &mut Map<'_>) -> Self {
        let max_bytes = map.bytes("max_bytes", MIB..=MAX_BYTES);
        Self {
            max_age: None,
            max_bytes,
            storage: storage(map),
            placement: placement(map),
        }
    }

    fn read_with_age(map: &mut Map<'_>) -> Self {
        Self {
            max_age: map.duration("max_age", HOUR..=MAX_SECS),
            ..Self::read(map)
        }
    }
}

fn storage(map: &mut Map<'_>) -> Option<StreamStorage> {
    map.get("storage")?.choice(
        &[StreamStorage::File, StreamStorage::Memory],
        StreamStorage::as_str,
    )
}

fn placement(map: &mut Map<'_>) -> Option<StreamPlacement> {
    map.get("placement")?.section(|map| {
        let placement = StreamPlacement {
            cluster: map.text("cluster"),
            tags: map.texts("tags"),
        };
        if placement == StreamPlacement::default() {
            map.missing(
                "tags",
                "the `server_tags` that each server has to have, or `cluster`",
            );
            return None;
        }
        Some(placement)
    })
}
