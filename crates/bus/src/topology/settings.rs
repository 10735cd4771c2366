//! The settings of the streams that an operator may choose.

use std::time::Duration;

use async_nats::jetstream::stream::{Placement, StorageType};

use crate::names::{ALERTS, DEAD_LETTERS, TIMELINE};
use tarsy_config::{StreamPlacement, StreamStorage};

/// A bound of a stream: an age, or a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound<T> {
    /// `tarsy migrate` sets this value, even if it is smaller than the current one.
    Exactly(T),
    /// `tarsy migrate` raises a smaller value to this one, and sets it where no limit of bytes exists; a larger value
    /// stays.
    AtLeast(T),
}

impl<T> Bound<T> {
    pub fn value(self) -> T {
        match self {
            Self::Exactly(value) | Self::AtLeast(value) => value,
        }
    }
}

/// The placement of a stream's copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// `None` represents files. NATS cannot change it.
    pub storage: Option<StreamStorage>,
    /// `None` leaves the servers to NATS and to the operator.
    pub placement: Option<StreamPlacement>,
}

/// The layout of each stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layouts {
    pub alerts: Layout,
    pub timeline: Layout,
    pub dead_letters: Layout,
    pub control: Layout,
}

impl Layouts {
    pub(super) fn of(&self, stream: &str) -> &Layout {
        match stream {
            ALERTS => &self.alerts,
            TIMELINE => &self.timeline,
            DEAD_LETTERS => &self.dead_letters,
            _ => &self.control,
        }
    }
}

impl Layout {
    pub(super) fn storage_type(&self) -> StorageType {
        match self.storage {
            None | Some(StreamStorage::File) => StorageType::File,
            Some(StreamStorage::Memory) => StorageType::Memory,
        }
    }

    pub(super) fn servers(&self) -> Option<Placement> {
        let StreamPlacement { cluster, tags } = self.placement.clone()?;
        Some(Placement { cluster, tags })
    }
}

/// The settings of the streams that an operator may choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologySettings {
    /// The least number of replicas, 1 to 5; a stream with more keeps them. Three in production.
    pub replicas: usize,
    pub layouts: Layouts,
    /// The size at which the queue of alerts is full.
    pub alerts_max_bytes: Bound<i64>,
    /// The lease: a claimed alert without a heartbeat is delivered again after this time.
    pub ack_wait: Duration,
    /// The time that timeline events stay on the stream.
    pub timeline_max_age: Bound<Duration>,
    /// The size at which the stream drops its oldest timeline events; the store keeps them.
    pub timeline_max_bytes: Bound<i64>,
    /// The time that dead letters are kept.
    pub dead_letters_max_age: Bound<Duration>,
    /// The size at which the stream drops its oldest dead letters.
    pub dead_letters_max_bytes: Bound<i64>,
    /// The time that cancel requests are kept.
    pub control_max_age: Bound<Duration>,
    /// The size at which the stream drops its oldest cancel requests.
    pub control_max_bytes: Bound<i64>,
}

impl Default for TopologySettings {
    fn default() -> Self {
        const HOUR: Duration = Duration::from_secs(60 * 60);
        // NATS reserves the maximum of each stream. Together 1 GiB, so that a small disk is enough for a first try.
        const MIB: i64 = 1024 * 1024;
        Self {
            replicas: 1,
            layouts: Layouts::default(),
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
