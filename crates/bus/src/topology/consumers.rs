//! The durable consumers: one per priority of the queue of alerts, and the one of what people send.

use std::time::Duration;

use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::consumer::{
    self, AckPolicy, DeliverPolicy, IntoConsumerConfig, ReplayPolicy,
};

use super::fields::{Field, differences as field_differences, field};
use super::settings::{PeopleStream, TopologySettings};
use crate::difference::Difference;
use crate::names::{ALERTS, PEOPLE, Priority, RECORDER};

/// The time in which a worker records a decision; then another one gets it.
const RECORD_WAIT: Duration = Duration::from_secs(30);
/// Claimed alerts and those that wait for a NAK's delay count; at the limit the priority delivers no alert.
const MAX_ACK_PENDING: i64 = 10_000;
/// Pull requests that may wait at the same time: one per worker.
const MAX_WAITING: i64 = 512;

const FIELDS: [Field; 20] = [
    field(
        "deliver_subject",
        "workers pull alerts when they have free slots",
    ),
    field(
        "filter_subjects",
        "alerts and questions of the priority; every message of people",
    ),
    field("filter_subject", "all subjects are in filter_subjects"),
    field("deliver_policy", "every alert in the queue"),
    field("ack_policy", "an alert stays until it is settled"),
    field(
        "ack_wait",
        "the lease: a dead worker's alert comes again after it",
    ),
    field(
        "max_deliver",
        "attempts are counted in the database; a limit here strands alerts",
    ),
    field("max_ack_pending", "delayed alerts must not block new ones"),
    field("max_waiting", "one waiting request a worker"),
    field("backoff", "it overrides ack_wait"),
    field("replay_policy", "alerts are delivered at once"),
    field("headers_only", "an alert is its body"),
    field("max_batch", "a worker asks for all of its free slots"),
    field("max_bytes", "a worker asks for all of its free slots"),
    field("max_expires", "a worker waits up to 10 s"),
    field(
        "inactive_threshold",
        "an idle weekend must not remove the consumer",
    ),
    field("num_replicas", "as many copies as the stream has"),
    field(
        "mem_storage",
        "a restarted server must know what is claimed",
    ),
    field("priority_groups", "they rank workers, not alerts"),
    field("pause_until", "a paused consumer delivers nothing"),
];

/// A durable consumer of tarsy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durable {
    /// The alerts and questions of a priority.
    Queue(Priority),
    /// The messages of people.
    Recorder,
}

impl Durable {
    /// The consumers that a configuration needs.
    pub(super) fn needed(settings: &TopologySettings) -> Vec<Self> {
        let recorder = match settings.people {
            PeopleStream::Unused => None,
            PeopleStream::Needed => Some(Self::Recorder),
        };
        let queues = Priority::ALL.into_iter().map(Self::Queue);
        queues.chain(recorder).collect()
    }

    pub(super) fn stream(self) -> &'static str {
        match self {
            Self::Queue(_) => ALERTS,
            Self::Recorder => PEOPLE,
        }
    }

    pub(super) fn durable_name(self) -> &'static str {
        match self {
            Self::Queue(priority) => priority.as_str(),
            Self::Recorder => RECORDER,
        }
    }

    /// The name with that of its stream, for people: `TARSY_ALERTS/critical`.
    pub(super) fn name(self) -> String {
        format!("{}/{}", self.stream(), self.durable_name())
    }

    pub(super) fn expected(self, settings: &TopologySettings) -> Config {
        Config {
            durable_name: Some(self.durable_name().to_owned()),
            filter_subjects: match self {
                Self::Queue(priority) => priority.filters(),
                Self::Recorder => Vec::new(),
            },
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::Explicit,
            ack_wait: match self {
                Self::Queue(_) => settings.ack_wait,
                Self::Recorder => RECORD_WAIT,
            },
            max_deliver: -1,
            max_ack_pending: MAX_ACK_PENDING,
            max_waiting: MAX_WAITING,
            replay_policy: ReplayPolicy::Instant,
            ..Config::default()
        }
    }

    pub(super) fn differences(
        self,
        found: &consumer::Config,
        settings: &TopologySettings,
    ) -> Vec<Difference> {
        let expected = self.expected(settings).into_consumer_config();
        field_differences(&self.name(), &FIELDS, found, &expected)
    }
}
