//! `streams`: copies, ages and sizes of the streams that `tarsy migrate` creates in NATS.

use std::time::Duration;

use crate::config::read::reader::Map;

const HOUR: u64 = 3_600;
/// Ten years.
const MAX_SECS: u64 = 87_600 * HOUR;
const MIB: u64 = 1024 * 1024;
/// A pebibyte.
const MAX_BYTES: u64 = 1024 * 1024 * 1024 * MIB;

/// The configured limits of the streams. An absent limit has a default, which an existing stream may exceed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    /// The smallest number of copies of each message.
    pub replicas: Option<u32>,
    /// The size at which the queue of alerts is full, in bytes.
    pub alerts_max_bytes: Option<u64>,
    /// Limits of the stream of timeline events.
    pub timeline: Kept,
    /// Limits of the stream of dead letters.
    pub dead_letters: Kept,
    /// Limits of the stream of cancel requests.
    pub control: Kept,
}

/// The limits of a stream; the oldest messages are deleted first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub max_age: Option<Duration>,
    pub max_bytes: Option<u64>,
}

impl Streams {
    pub(crate) fn read(mut map: Map<'_>) -> Self {
        let replicas = map.get("replicas").and_then(|field| field.number(1..=5));
        let alerts_max_bytes = map.get("alerts").and_then(|field| {
            let mut map = field.map();
            let bytes = max_bytes(&mut map);
            map.finish();
            bytes
        });
        let [timeline, dead_letters, control] =
            ["timeline", "dead_letters", "control"].map(|key| Kept::read(&mut map, key));
        map.finish();
        Self { replicas, alerts_max_bytes, timeline, dead_letters, control }
    }
}

impl Kept {
    fn read(map: &mut Map<'_>, key: &'static str) -> Self {
        let Some(field) = map.get(key) else { return Self::default() };
        let mut map = field.map();
        let kept = Self { max_age: map.duration("max_age", HOUR..=MAX_SECS), max_bytes: max_bytes(&mut map) };
        map.finish();
        kept
    }
}

fn max_bytes(map: &mut Map<'_>) -> Option<u64> {
    map.get("max_bytes")?.bytes(MIB..=MAX_BYTES)
}
