//! The streams: their expected configuration, and how `tarsy migrate` changes an existing one.

use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy, Info, RetentionPolicy};

use super::fields::{Field, differences as field_differences, field};
use super::settings::{Bound, PeopleStream, TopologySettings};
use crate::difference::Difference;
use crate::names::{
    ALERTS, ALL_CONTROL, ALL_DEAD_LETTERS, ALL_DECISIONS, ALL_TIMELINES, ALL_VERDICTS, CONTROL,
    DEAD_LETTERS, PEOPLE, Priority, TIMELINE,
};

/// The size that the headers of a dead letter or of a copy may add to an alert.
const COPY_HEADROOM_BYTES: usize = 64 * 1024;
/// A decision is a few hundred bytes, with a comment of at most 2,000 characters.
const MAX_PEOPLE_MESSAGE_BYTES: i32 = 16 * 1024;
/// The messages that may wait on one subject: no session has more votes.
const MAX_PEOPLE_MESSAGES_PER_SUBJECT: i64 = 100;
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

const FIELDS: [Field; 22] = [
    field(
        "subjects",
        "an alert on another subject would be lost, and further subjects belong to other streams",
    ),
    field(
        "retention",
        "alerts are removed when they are acknowledged, events and dead letters when they are old",
    ),
    field("storage", "a restarted server must find its messages"),
    field(
        "discard",
        "a full queue must refuse new alerts, never drop old ones",
    ),
    field(
        "discard_new_per_subject",
        "a second alert on a subject must be stored; a decision beyond 100 on a subject must be refused",
    ),
    field("max_bytes", "the bound of `streams` in the configuration"),
    field("max_msgs", "only bytes and age bound a stream"),
    field(
        "max_msgs_per_subject",
        "all of a session's events are kept, one control request a session, 100 decisions a subject",
    ),
    field(
        "max_msg_size",
        "64 KiB under the server's max_payload, so that every dead letter fits; 16 KiB for decisions",
    ),
    field("max_age", "how long messages are kept"),
    field("max_consumers", "every watcher needs one"),
    field(
        "num_replicas",
        "the copies of `streams.replicas` in the configuration",
    ),
    field(
        "placement",
        "the servers of `placement` in `streams` in the configuration",
    ),
    field("no_ack", "published means acknowledged"),
    field("sealed", "a sealed stream takes no message"),
    field("duplicate_window", "a producer may repeat a publish"),
    field(
        "allow_direct",
        "a watcher reads the last event of a session",
    ),
    field("allow_rollup_hdrs", "a message must not remove others"),
    field("allow_msg_ttl", "a message must not remove itself"),
    field("mirror", "a mirror takes no message"),
    field("sources", "messages of another stream do not belong here"),
    field(
        "subject_transform",
        "consumers filter by the subject that the producer chose",
    ),
];

/// The expected streams on a server with this `max_payload`.
pub(super) fn expected(settings: &TopologySettings, max_payload: usize) -> Vec<Config> {
    let stream = |name: &str, description: &str, subjects: Vec<String>| Config {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        subjects,
        storage: settings.storage(name),
        placement: settings.placement(name),
        retention: RetentionPolicy::Limits,
        discard: DiscardPolicy::Old,
        max_bytes: settings.max_bytes(name).value(),
        max_age: settings.max_age(name).value(),
        max_messages: -1,
        max_messages_per_subject: -1,
        max_message_size: -1,
        max_consumers: -1,
        num_replicas: settings.replicas(),
        duplicate_window: DUPLICATE_WINDOW,
        allow_direct: true,
        ..Config::default()
    };
    let queue = Priority::ALL
        .into_iter()
        .flat_map(Priority::filters)
        .collect();
    let people = match settings.people {
        PeopleStream::Unused => None,
        PeopleStream::Needed => Some(Config {
            retention: RetentionPolicy::WorkQueue,
            discard: DiscardPolicy::New,
            discard_new_per_subject: true,
            max_messages_per_subject: MAX_PEOPLE_MESSAGES_PER_SUBJECT,
            max_message_size: MAX_PEOPLE_MESSAGE_BYTES,
            ..stream(
                PEOPLE,
                "decisions and verdicts of people that wait for their record",
                vec![ALL_DECISIONS.to_owned(), ALL_VERDICTS.to_owned()],
            )
        }),
    };
    let always = [
        Config {
            retention: RetentionPolicy::WorkQueue,
            discard: DiscardPolicy::New,
            max_message_size: i32::try_from(max_payload.saturating_sub(COPY_HEADROOM_BYTES))
                .unwrap_or(i32::MAX),
            ..stream(ALERTS, "alerts that wait for an investigation", queue)
        },
        stream(
            TIMELINE,
            "events of investigations; the store has all of them",
            vec![ALL_TIMELINES.to_owned()],
        ),
        stream(
            DEAD_LETTERS,
            "alerts that were given up, with the reason",
            vec![ALL_DEAD_LETTERS.to_owned()],
        ),
        Config {
            max_messages_per_subject: 1,
            ..stream(
                CONTROL,
                "requests to sessions",
                vec![ALL_CONTROL.to_owned()],
            )
        },
    ];
    always.into_iter().chain(people).collect()
}

/// The expected configuration, with the larger values and the placement of the server accepted: a worker needs no
/// certain servers, and must not stop when an operator moves a stream.
pub(super) fn at_least(found: &Config, expected: &Config) -> Config {
    Config {
        num_replicas: found.num_replicas.max(expected.num_replicas),
        max_bytes: larger(found.max_bytes, expected.max_bytes),
        max_age: longer(found.max_age, expected.max_age),
        placement: found.placement.clone(),
        ..expected.clone()
    }
}

/// The configuration that `tarsy migrate` gives to an existing stream. Replicas are never removed, and a placement that
/// is not configured stays. A default limit may be larger, but must exist; a new limit drops no message that the stream
/// has already.
pub(super) fn target(found: &Info, expected: Config, settings: &TopologySettings) -> Config {
    let held = i64::try_from(found.state.bytes).unwrap_or(i64::MAX);
    let max_bytes = match settings.max_bytes(&expected.name) {
        Bound::AtLeast(least) if found.config.max_bytes <= 0 => least.max(held),
        Bound::AtLeast(least) => least.max(found.config.max_bytes),
        Bound::Exactly(bytes) => bytes,
    };
    let max_age = match settings.max_age(&expected.name) {
        Bound::AtLeast(least) => longer(found.config.max_age, least),
        Bound::Exactly(age) => age,
    };
    let placement = expected.placement.clone();
    Config {
        num_replicas: found.config.num_replicas.max(expected.num_replicas),
        placement: placement.or_else(|| found.config.placement.clone()),
        max_bytes,
        max_age,
        ..expected
    }
}

/// NATS represents "no limit" by -1, and sometimes by 0.
fn larger(one: i64, other: i64) -> i64 {
    if one <= 0 || other <= 0 {
        -1
    } else {
        one.max(other)
    }
}

/// Zero means no limit of age.
fn longer(one: Duration, other: Duration) -> Duration {
    if one.is_zero() || other.is_zero() {
        Duration::ZERO
    } else {
        one.max(other)
    }
}

pub(super) fn differences(found: &Config, expected: &Config) -> Vec<Difference> {
    field_differences(&expected.name, &FIELDS, found, expected)
}

/// The expected configuration, with the settings that are up to the operator taken from the stream.
pub(super) fn merged(found: Config, expected: Config) -> Config {
    Config {
        metadata: found.metadata,
        compression: found.compression,
        consumer_limits: found.consumer_limits,
        first_sequence: found.first_sequence,
        republish: found.republish,
        ..expected
    }
}
