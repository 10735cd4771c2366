//! `streams`: copies, ages and sizes of the streams in NATS, as `tarsy migrate` makes them.

use std::time::Duration;

use crate::config::read::reader::Map;

const HOUR: u64 = 3_600;
/// Ten years.
const MAX_SECS: u64 = 87_600 * HOUR;
const MIB: u64 = 1024 * 1024;
/// A pebibyte.
const MAX_BYTES: u64 = 1024 * 1024 * 1024 * MIB;

/// What the file says of the streams. What it leaves out has a default that a stream may exceed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    /// The least number of copies of each message.
    pub replicas: Option<u32>,
    /// Where the queue of alerts is full, in bytes.
    pub alerts_max_bytes: Option<u64>,
    /// Events of investigations.
    pub timeline: Kept,
    /// Alerts that were given up.
    pub dead_letters: Kept,
    /// Requests to sessions.
    pub control: Kept,
}

/// How much of a stream is kept; the oldest messages leave it first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// How long.
    pub max_age: Option<Duration>,
    /// How many bytes.
    pub max_bytes: Option<u64>,
}

impl Streams {
    pub(crate) fn read(mut map: Map<'_>) -> Self {
        let replicas = map.get("replicas").and_then(|field| field.number(1, 5));
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
        let kept = Self { max_age: map.duration("max_age", HOUR, MAX_SECS), max_bytes: max_bytes(&mut map) };
        map.finish();
        kept
    }
}

fn max_bytes(map: &mut Map<'_>) -> Option<u64> {
    map.get("max_bytes")?.bytes(MIB, MAX_BYTES)
}
