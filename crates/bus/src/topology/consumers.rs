//! The four durable consumers of the queue of alerts, one per priority.

use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::consumer::{
    self, AckPolicy, DeliverPolicy, IntoConsumerConfig, ReplayPolicy,
};

use super::fields::{Field, differences as field_differences};
use super::settings::TopologySettings;
use crate::difference::Difference;
use crate::names::Priority;

/// Claimed alerts and those that wait for a NAK's delay count; at the limit the priority delivers no alert.
const MAX_ACK_PENDING: i64 = 10_000;
/// Pull requests that may wait at the same time: one per worker.
const MAX_WAITING: i64 = 512;

const FIELDS: [Field; 20] = [
    Field {
        name: "deliver_subject",
        why: "workers pull alerts when they have free slots",
    },
    Field {
        name: "filter_subjects",
        why: "alerts and questions of the priority",
    },
    Field {
        name: "filter_subject",
        why: "all of the priority's subjects are in filter_subjects",
    },
    Field {
        name: "deliver_policy",
        why: "every alert in the queue",
    },
    Field {
        name: "ack_policy",
        why: "an alert stays until it is settled",
    },
    Field {
        name: "ack_wait",
        why: "the lease: a dead worker's alert comes again after it",
    },
    Field {
        name: "max_deliver",
        why: "attempts are counted in the database; a limit here strands alerts",
    },
    Field {
        name: "max_ack_pending",
        why: "delayed alerts must not block new ones",
    },
    Field {
        name: "max_waiting",
        why: "one waiting request a worker",
    },
    Field {
        name: "backoff",
        why: "it overrides ack_wait",
    },
    Field {
        name: "replay_policy",
        why: "alerts are delivered at once",
    },
    Field {
        name: "headers_only",
        why: "an alert is its body",
    },
    Field {
        name: "max_batch",
        why: "a worker asks for all of its free slots",
    },
    Field {
        name: "max_bytes",
        why: "a worker asks for all of its free slots",
    },
    Field {
        name: "max_expires",
        why: "a worker waits up to 10 s",
    },
    Field {
        name: "inactive_threshold",
        why: "an idle weekend must not remove the consumer",
    },
    Field {
        name: "num_replicas",
        why: "as many copies as the stream has",
    },
    Field {
        name: "mem_storage",
        why: "a restarted server must know what is claimed",
    },
    Field {
        name: "priority_groups",
        why: "they rank workers, not alerts",
    },
    Field {
        name: "pause_until",
        why: "a paused consumer delivers nothing",
    },
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
    let json = |config: &consumer::Config| serde_json::to_value(config).unwrap_or_default();
    field_differences(
        &priority.consumer(),
        &FIELDS,
        &json(found),
        &json(&expected.into_consumer_config()),
    )
}
