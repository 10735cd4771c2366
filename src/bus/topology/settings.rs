//! What an operator may choose about the streams.

use std::time::Duration;

/// A bound of a stream: an age, or a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound<T> {
    /// `tarsy migrate` sets it to this value, also when that makes it smaller.
    Exactly(T),
    /// `tarsy migrate` makes it no smaller than this; a larger one stays. Without any bound on bytes it becomes this one.
    AtLeast(T),
}

impl<T> Bound<T> {
    /// The value of either.
    pub fn value(self) -> T {
        match self {
            Self::Exactly(value) | Self::AtLeast(value) => value,
        }
    }
}

/// What an operator may choose about the streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologySettings {
    /// The least number of copies of each message, 1 to 5; a stream that has more keeps them. Three in production.
    pub replicas: usize,
    /// Where the queue of alerts is full.
    pub alerts_max_bytes: Bound<i64>,
    /// How long a claimed alert may be silent: the lease.
    pub ack_wait: Duration,
    /// How long timeline events stay on the stream.
    pub timeline_max_age: Bound<Duration>,
    /// Where the oldest timeline events leave the stream; the store keeps them.
    pub timeline_max_bytes: Bound<i64>,
    /// How long dead letters are kept.
    pub dead_letters_max_age: Bound<Duration>,
    /// Where the oldest dead letters leave the stream.
    pub dead_letters_max_bytes: Bound<i64>,
    /// How long a request to a session is kept.
    pub control_max_age: Bound<Duration>,
    /// Where the oldest requests leave the stream.
    pub control_max_bytes: Bound<i64>,
}

impl Default for TopologySettings {
    fn default() -> Self {
        const HOUR: Duration = Duration::from_secs(60 * 60);
        // NATS reserves what is bounded, whatever is in it: together 1 GiB, so that a small disk is enough for a first try.
        const MIB: i64 = 1024 * 1024;
        Self {
            replicas: 1,
            alerts_max_bytes: Bound::AtLeast(256 * MIB),
            ack_wait: Duration::from_secs(30),
            timeline_max_age: Bound::AtLeast(72 * HOUR),
            timeline_max_bytes: Bound::AtLeast(512 * MIB),
            dead_letters_max_age: Bound::AtLeast(30 * 24 * HOUR),
            dead_letters_max_bytes: Bound::AtLeast(192 * MIB),
            control_max_age: Bound::AtLeast(24 * HOUR),
            control_max_bytes: Bound::AtLeast(64 * MIB),
        }
    }
}
