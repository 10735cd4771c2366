//! `streams`: copies, ages and sizes of the streams that `tarsy migrate` creates in NATS.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::config::read::reader::Map;
use crate::config::write::{bytes, is_default, written};

const HOUR: u64 = 3_600;
/// Ten years.
const MAX_SECS: u64 = 87_600 * HOUR;
const MIB: u64 = 1024 * 1024;
/// A pebibyte.
const MAX_BYTES: u64 = 1024 * 1024 * 1024 * MIB;

/// The configured limits of the streams. An absent limit has a default, which an existing stream may exceed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Streams {
    /// The smallest number of copies of each message.
    #[serde(skip_serializing_if = "is_default")]
    pub replicas: Option<u32>,
    /// The size at which the queue of alerts is full, in bytes.
    #[serde(rename = "alerts", serialize_with = "as_max_bytes", skip_serializing_if = "is_default")]
    pub alerts_max_bytes: Option<u64>,
    /// Limits of the stream of timeline events.
    #[serde(skip_serializing_if = "is_default")]
    pub timeline: Kept,
    /// Limits of the stream of dead letters.
    #[serde(skip_serializing_if = "is_default")]
    pub dead_letters: Kept,
    /// Limits of the stream of cancel requests.
    #[serde(skip_serializing_if = "is_default")]
    pub control: Kept,
}

/// The limits of a stream; the oldest messages are deleted first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kept {
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub max_age: Option<Duration>,
    #[serde(serialize_with = "bytes", skip_serializing_if = "is_default")]
    pub max_bytes: Option<u64>,
}

impl Streams {
    pub(crate) fn read(map: &mut Map<'_>) -> Self {
        Self {
            replicas: map.number("replicas", 1..=5),
            alerts_max_bytes: map.section("alerts", max_bytes),
            timeline: map.section("timeline", Kept::read),
            dead_letters: map.section("dead_letters", Kept::read),
            control: map.section("control", Kept::read),
        }
    }
}

impl Kept {
    fn read(map: &mut Map<'_>) -> Self {
        Self { max_age: map.duration("max_age", HOUR..=MAX_SECS), max_bytes: max_bytes(map) }
    }
}

fn max_bytes(map: &mut Map<'_>) -> Option<u64> {
    map.bytes("max_bytes", MIB..=MAX_BYTES)
}

/// The limit of a stream that has no other one.
fn as_max_bytes<S: Serializer>(limit: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    Kept { max_age: None, max_bytes: *limit }.serialize(serializer)
}
