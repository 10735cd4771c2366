//! The four durable consumers of the queue of alerts, one per priority.

use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::consumer::{
    self, AckPolicy, DeliverPolicy, IntoConsumerConfig, ReplayPolicy,
};

use super::fields::{Field, differences as field_differences, field};
use super::settings::TopologySettings;
use crate::difference::Difference;
use crate::names::Priority;

/// Claimed alerts and those that wait for a NAK's delay count; at the limit the priority delivers no alert.
const MAX_ACK_PENDING: i64 = 10_000;
/// Pull requests that may wait at the same time: one per worker.
const MAX_WAITING: i64 = 512;

const FIELDS: [Field; 20] = [
    field(
        "deliver_subject",
        "workers pull alerts when they have free slots",
    ),
    field("filter_subjects", "alerts and questions of the priority"),
    field(
        "filter_subject",
        "all of the priority's subjects are in filter_subjects",
    ),
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

pub(super) fn expected(priority: Priority, settings: &TopologySettings) -> Config {
    Config {
        durable_name: Some(priority.as_str().to_owned()),
        filter_subjects: priority.filters(),
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::Explicit,
        ack_wait: settings.ack_wait,
        max_deliver: -1,
        max_ack_pending: MAX_ACK_PENDING,
        max_waiting: MAX_WAITING,
        replay_policy: ReplayPolicy::Instant,
        ..Config::default()
    }
}

pub(super) fn differences(
    priority: Priority,
    found: &consumer::Config,
    expected: &Config,
) -> Vec<Difference> {
    field_differences(
        &priority.consumer(),
        &FIELDS,
        found,
        &expected.into_consumer_config(),
    )
}
