//! The settings of the streams that an operator may choose.

use std::time::Duration;

use async_nats::jetstream::stream::{Placement, StorageType};

use crate::names::{ALERTS, DEAD_LETTERS, PEOPLE, TIMELINE};
use tarsy_config::{StreamLimits, StreamPlacement, StreamStorage, Streams};

/// A bound of a stream: an age, or a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound<T> {
    /// `tarsy migrate` sets this value, even if it is smaller than the current one.
    Exactly(T),
    /// `tarsy migrate` raises a smaller value to this one, and sets it where no limit of bytes exists; a larger value
    /// stays.
    AtLeast(T),
}

impl<T> Bound<T> {
    pub(super) fn value(self) -> T {
        match self {
            Self::Exactly(value) | Self::AtLeast(value) => value,
        }
    }
}

/// The settings of the streams that an operator may choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologySettings {
    /// The configured limits; an absent one has a default, which an existing stream may exceed.
    pub streams: Streams,
    /// The lease: a claimed alert without a heartbeat is delivered again after this time.
    pub ack_wait: Duration,
    /// The use of the stream of what people send.
    pub people: PeopleStream,
}

/// The use of the stream [`PEOPLE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeopleStream {
    /// No person decides: the stream is neither made nor needed.
    #[default]
    Unused,
    Needed,
}

/// The limits of a stream that the configuration does not name.
static NO_LIMITS: StreamLimits = StreamLimits {
    max_age: None,
    max_bytes: None,
    storage: None,
    placement: None,
};

impl Default for TopologySettings {
    fn default() -> Self {
        Self {
            streams: Streams::default(),
            ack_wait: Duration::from_secs(30),
            people: PeopleStream::Unused,
        }
    }
}

impl TopologySettings {
    /// The least number of replicas, 1 to 5; a stream with more keeps them. Three in production.
    pub(super) fn replicas(&self) -> usize {
        let configured = self.streams.replicas;
        configured
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(1)
    }

    /// NATS cannot change the storage of a stream.
    pub(super) fn storage(&self, stream: &str) -> StorageType {
        match self.limits(stream).storage.or(self.streams.storage) {
            None | Some(StreamStorage::File) => StorageType::File,
            Some(StreamStorage::Memory) => StorageType::Memory,
        }
    }

    /// `None` leaves the servers to NATS and to the operator.
    pub(super) fn placement(&self, stream: &str) -> Option<Placement> {
        let own = self.limits(stream).placement.as_ref();
        let StreamPlacement { cluster, tags } = own.or(self.streams.placement.as_ref())?.clone();
        Some(Placement { cluster, tags })
    }

    /// The size at which the queue of alerts is full, and at which other streams drop their oldest messages.
    pub(super) fn max_bytes(&self, stream: &str) -> Bound<i64> {
        // NATS reserves the maximum of each stream. Together 1 GiB, so that a small disk is enough for a first try.
        const MIB: i64 = 1024 * 1024;
        let default = match stream {
            ALERTS => 256 * MIB,
            TIMELINE => 512 * MIB,
            DEAD_LETTERS => 192 * MIB,
            PEOPLE => 32 * MIB,
            _ => 64 * MIB,
        };
        match self.limits(stream).max_bytes {
            Some(bytes) => Bound::Exactly(i64::try_from(bytes).unwrap_or(i64::MAX)),
            None => Bound::AtLeast(default),
        }
    }

    /// The time that the messages of a stream are kept; zero has no end.
    pub(super) fn max_age(&self, stream: &str) -> Bound<Duration> {
        const HOUR: Duration = Duration::from_secs(60 * 60);
        let default = match stream {
            // An alert waits until it is settled, a decision until it is recorded.
            ALERTS | PEOPLE => return Bound::Exactly(Duration::ZERO),
            TIMELINE => 72 * HOUR,
            DEAD_LETTERS => 30 * 24 * HOUR,
            _ => 24 * HOUR,
        };
        let configured = self.limits(stream).max_age;
        configured.map_or(Bound::AtLeast(default), Bound::Exactly)
    }

    fn limits(&self, stream: &str) -> &StreamLimits {
        match stream {
            ALERTS => &self.streams.alerts,
            TIMELINE => &self.streams.timeline,
            DEAD_LETTERS => &self.streams.dead_letters,
            PEOPLE => &NO_LIMITS,
            _ => &self.streams.control,
        }
    }
}
