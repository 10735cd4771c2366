//! Streams and consumers: created, verified field by field, and repaired.

use serde_json::{Value, json};
use tarsy_bus::TopologyStatus::{self, Differs, Fine, Missing, Unreadable, Weak};
use tarsy_bus::{
    Difference, Error, Nats, NewAlert, Priority, TopologyChanges, TopologyReport, TopologySettings,
    Weakness,
};
use tarsy_config::{StreamLimits, Streams};
use tarsy_engine::ports::Delivery;

use super::{connect, outsider, prepared, request_api};
use crate::support::nats::NatsServer;
use crate::support::nats::topology::{full_at, with_streams};

fn edited(config: &Value, edit: &Value) -> Value {
    let mut config = config.clone();
    for (field, value) in edit.as_object().unwrap() {
        config[field] = value.clone();
    }
    config
}

async fn differences(nats: &Nats) -> Vec<Difference> {
    match nats.verify_topology(&TopologySettings::default()).await {
        Ok(()) => Vec::new(),
        Err(Error::Topology(differences)) => differences,
        Err(other) => panic!("{other}"),
    }
}

/// Asserts that the edited field is reported; some edits change further fields.
async fn assert_found(nats: &Nats, object: &str, edit: &Value, field: &str) {
    let found = differences(nats).await;
    let fields: Vec<&str> = found
        .iter()
        .filter(|difference| difference.object == object)
        .filter_map(|difference| difference.field.as_ref().map(|field| field.name))
        .collect();
    assert!(
        fields.contains(&field),
        "{object}: {field} was edited to {edit}, found {found:?}"
    );
    let message = Error::Topology(found).to_string();
    assert!(
        message.contains(&format!("\n  {object}: {field} is ")),
        "{message}"
    );
}

#[tokio::test]
async fn missing_streams_and_consumers_are_created_once() {
    let server = NatsServer::start().await;
    let nats = connect(&server).await;
    let settings = TopologySettings::default();
    let missing = nats
        .verify_topology(&settings)
        .await
        .unwrap_err()
        .to_string();
    assert!(missing.contains("\n  TARSY_ALERTS: missing\n"), "{missing}");
    assert!(
        missing.contains("\n  TARSY_ALERTS/low: missing"),
        "{missing}"
    );

    let first = nats.ensure_topology(&settings).await.unwrap();
    assert_eq!(
        first,
        TopologyChanges {
            created: 8,
            updated: 0,
            unchanged: 0
        }
    );
    let second = nats.ensure_topology(&settings).await.unwrap();
    assert_eq!(
        second,
        TopologyChanges {
            created: 0,
            updated: 0,
            unchanged: 8
        }
    );
    assert_eq!(differences(&nats).await, []);
}

#[tokio::test]
async fn a_difference_is_reported_with_both_values_and_repaired() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let mut config = jetstream
        .get_stream("TARSY_ALERTS")
        .await
        .unwrap()
        .cached_info()
        .config
        .clone();
    config.discard = async_nats::jetstream::stream::DiscardPolicy::Old;
    config.max_message_size = 1000;
    config
        .metadata
        .insert("owner".into(), "platform team".into());
    jetstream.update_stream(&config).await.unwrap();

    let lines: Vec<String> = differences(&nats)
        .await
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        lines,
        [
            r#"TARSY_ALERTS: discard is "old", must be "new" (a full queue must refuse new alerts, never drop old ones)"#,
            "TARSY_ALERTS: max_msg_size is 1000, must be 983040 (64 KiB under the server's max_payload, so that every dead letter fits; 16 KiB for decisions)",
        ]
    );
    let repaired = nats
        .ensure_topology(&TopologySettings::default())
        .await
        .unwrap();
    assert_eq!(
        repaired,
        TopologyChanges {
            created: 0,
            updated: 1,
            unchanged: 7
        }
    );
    let config = jetstream
        .get_stream("TARSY_ALERTS")
        .await
        .unwrap()
        .cached_info()
        .config
        .clone();
    assert_eq!(
        config.metadata.get("owner").map(String::as_str),
        Some("platform team"),
        "the operator's metadata is kept"
    );
}

const OBJECTS: [&str; 8] = [
    "TARSY_ALERTS",
    "TARSY_TIMELINE",
    "TARSY_DEAD_LETTERS",
    "TARSY_CONTROL",
    "TARSY_ALERTS/critical",
    "TARSY_ALERTS/high",
    "TARSY_ALERTS/normal",
    "TARSY_ALERTS/low",
];

#[tokio::test]
async fn each_stream_and_consumer_is_inspected_on_its_own() {
    let server = NatsServer::start().await;
    let nats = connect(&server).await;
    let settings = TopologySettings::default();
    let all = |status: TopologyStatus| {
        OBJECTS.map(|name| TopologyReport {
            name: name.into(),
            status: status.clone(),
        })
    };
    assert_eq!(
        nats.inspect_topology(&settings).await.unwrap(),
        all(Missing)
    );
    nats.ensure_topology(&settings).await.unwrap();
    assert_eq!(nats.inspect_topology(&settings).await.unwrap(), all(Fine));

    let (_, jetstream) = outsider(&server).await;
    jetstream.delete_stream("TARSY_CONTROL").await.unwrap();
    jetstream
        .delete_consumer_from_stream("low", "TARSY_ALERTS")
        .await
        .unwrap();
    let mut config = jetstream
        .get_stream("TARSY_ALERTS")
        .await
        .unwrap()
        .cached_info()
        .config
        .clone();
    config.discard = async_nats::jetstream::stream::DiscardPolicy::Old;
    jetstream.update_stream(&config).await.unwrap();
    let mut expected = all(Fine);
    expected[0].status = Differs(
        differences(&nats)
            .await
            .into_iter()
            .filter(|d| d.field.is_some())
            .collect(),
    );
    expected[3].status = Missing;
    expected[7].status = Missing;
    assert_eq!(nats.inspect_topology(&settings).await.unwrap(), expected);
    let Differs(found) = &expected[0].status else {
        unreachable!()
    };
    assert_eq!(found.len(), 1);
}

#[tokio::test]
async fn an_object_that_may_not_be_read_does_not_hide_the_others() {
    let denied = "authorization { users: [ { user: u, password: p, permissions: { publish: {
        deny: [\"$JS.API.STREAM.INFO.TARSY_TIMELINE\", \"$JS.API.CONSUMER.INFO.TARSY_ALERTS.high\"] } } } ] }";
    let mut server = NatsServer::start().await;
    connect(&server)
        .await
        .ensure_topology(&TopologySettings::default())
        .await
        .unwrap();
    server.restart_with(denied).await;
    let nats = super::connect_to(server.url().replace("nats://", "nats://u:p@")).await;
    let reports = super::within(
        "the inspection",
        nats.inspect_topology(&TopologySettings::default()),
    )
    .await
    .unwrap();
    for (index, TopologyReport { name, status }) in reports.into_iter().enumerate() {
        match status {
            Fine => assert!(![1, 5].contains(&index), "{name} cannot be read"),
            Unreadable(reason) => {
                assert!(
                    [1, 5].contains(&index) && reason.contains(": cannot read: "),
                    "{name}: {reason}"
                );
            }
            Missing | Weak(_) | Differs(_) => panic!("{name}: {status:?}"),
        }
    }
    server.kill();
    nats.inspect_topology(&TopologySettings::default())
        .await
        .unwrap_err();
}

#[tokio::test]
async fn migrate_adds_the_subjects_of_questions_and_keeps_waiting_alerts() {
    let server = NatsServer::start().await;
    let nats = connect(&server).await;
    let (client, jetstream) = outsider(&server).await;
    nats.ensure_topology(&TopologySettings::default())
        .await
        .unwrap();
    // Recreates the consumers of the previous version.
    for priority in Priority::ALL {
        let name = priority.as_str();
        let info = request_api(
            &client,
            format!("CONSUMER.INFO.TARSY_ALERTS.{name}"),
            &json!({}),
        )
        .await
        .unwrap();
        let subject = format!("tarsy.alerts.{name}");
        let config = edited(
            &info["config"],
            &json!({"filter_subjects": [subject, format!("{subject}.>")]}),
        );
        let request = json!({"stream_name": "TARSY_ALERTS", "config": config, "action": "update"});
        request_api(
            &client,
            format!("CONSUMER.CREATE.TARSY_ALERTS.{name}"),
            &request,
        )
        .await
        .unwrap();
    }
    let mut stream = jetstream
        .get_stream("TARSY_ALERTS")
        .await
        .unwrap()
        .cached_info()
        .config
        .clone();
    stream
        .subjects
        .retain(|subject| subject.starts_with("tarsy.alerts."));
    jetstream.update_stream(stream).await.unwrap();
    let message = NewAlert {
        priority: Priority::High,
        suffix: None,
        body: b"x".to_vec(),
        headers: json!({}),
    };
    nats.publish_alert(message.clone()).await.unwrap();
    let mut claims = super::claims::start(&nats, 2);
    let alert = super::claims::next(&mut claims).await;
    let refused = nats
        .publish_question(message.clone())
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("tarsy migrate"), "{refused}");

    let ensured = nats
        .ensure_topology(&TopologySettings::default())
        .await
        .unwrap();
    assert_eq!(
        (ensured.created, ensured.updated),
        (0, 5),
        "the stream and its four consumers"
    );
    nats.publish_question(message).await.unwrap();
    // A worker that is running gets both, and keeps its claimed alerts.
    let question = super::claims::next(&mut claims).await;
    assert_eq!(
        (
            question.job.received.subject.as_str(),
            question.job.received.stream_sequence
        ),
        ("tarsy.questions.high", 2)
    );
    assert_eq!(alert.job.received.stream_sequence, 1);
    alert.job.delivery.ack().await.unwrap();
    claims.stop().await;
}

#[tokio::test]
async fn every_edited_field_of_a_stream_is_found() {
    let server = NatsServer::start().await;
    let nats = connect(&server).await;
    let (client, jetstream) = outsider(&server).await;
    let other = async_nats::jetstream::stream::Config {
        name: "OTHER".into(),
        ..Default::default()
    };
    jetstream.create_stream(other).await.unwrap();
    let alerts = "TARSY_ALERTS";
    let edits = [
        (
            alerts,
            "subjects",
            json!({"subjects": ["tarsy.alerts.critical", "tarsy.alerts.critical.>"]}),
        ),
        (alerts, "retention", json!({"retention": "limits"})),
        (alerts, "storage", json!({"storage": "memory"})),
        (alerts, "discard", json!({"discard": "old"})),
        (
            alerts,
            "discard_new_per_subject",
            json!({"discard_new_per_subject": true, "max_msgs_per_subject": 1}),
        ),
        (alerts, "max_bytes", json!({"max_bytes": 1_000_000})),
        (alerts, "max_msgs", json!({"max_msgs": 10})),
        (
            alerts,
            "max_msgs_per_subject",
            json!({"max_msgs_per_subject": 10}),
        ),
        (alerts, "max_msg_size", json!({"max_msg_size": 1_000_000})),
        (alerts, "max_age", json!({"max_age": 3_600_000_000_000_u64})),
        (alerts, "max_consumers", json!({"max_consumers": 9})),
        (alerts, "no_ack", json!({"no_ack": true})),
        (alerts, "sealed", json!({"sealed": true})),
        (
            alerts,
            "duplicate_window",
            json!({"duplicate_window": 1_000_000_000_u64}),
        ),
        (
            alerts,
            "allow_rollup_hdrs",
            json!({"allow_rollup_hdrs": true}),
        ),
        (alerts, "allow_msg_ttl", json!({"allow_msg_ttl": true})),
        (
            alerts,
            "subject_transform",
            json!({"subject_transform": {"src": "tarsy.>", "dest": "elsewhere.>"}}),
        ),
        (
            alerts,
            "mirror",
            json!({"mirror": {"name": "OTHER"}, "subjects": [], "retention": "limits"}),
        ),
        (alerts, "sources", json!({"sources": [{"name": "OTHER"}]})),
        (
            "TARSY_TIMELINE",
            "allow_direct",
            json!({"allow_direct": false}),
        ),
        (
            "TARSY_TIMELINE",
            "max_age",
            json!({"max_age": 3_600_000_000_000_u64}),
        ),
        (
            "TARSY_DEAD_LETTERS",
            "max_age",
            json!({"max_age": 3_600_000_000_000_u64}),
        ),
        (
            "TARSY_CONTROL",
            "max_msgs_per_subject",
            json!({"max_msgs_per_subject": 2}),
        ),
    ];
    for (stream, field, edit) in edits {
        nats.ensure_topology(&TopologySettings::default())
            .await
            .unwrap();
        let info = request_api(&client, format!("STREAM.INFO.{stream}"), &json!({}))
            .await
            .unwrap();
        let config = edited(&info["config"], &edit);
        if request_api(&client, format!("STREAM.UPDATE.{stream}"), &config)
            .await
            .is_err()
        {
            jetstream.delete_stream(stream).await.unwrap();
            request_api(&client, format!("STREAM.CREATE.{stream}"), &config)
                .await
                .unwrap();
        }
        assert_found(&nats, stream, &edit, field).await;
        jetstream.delete_stream(stream).await.unwrap();
    }

    nats.ensure_topology(&TopologySettings::default())
        .await
        .unwrap();
    let three = with_streams(Streams {
        replicas: Some(3),
        ..Streams::default()
    });
    let message = nats.verify_topology(&three).await.unwrap_err().to_string();
    assert!(
        message.contains("TARSY_CONTROL: num_replicas is 1, must be at least 3 "),
        "{message}"
    );
}

#[tokio::test]
async fn every_edited_field_of_a_consumer_is_found() {
    let server = NatsServer::start().await;
    let nats = connect(&server).await;
    let (client, jetstream) = outsider(&server).await;
    let second = 1_000_000_000_u64;
    let edits = [
        (
            "deliver_subject",
            json!({"deliver_subject": "x", "max_waiting": 0}),
        ),
        (
            "filter_subjects",
            json!({"filter_subjects": ["tarsy.alerts.high"]}),
        ),
        (
            "filter_subject",
            json!({"filter_subjects": [], "filter_subject": "tarsy.alerts.high"}),
        ),
        ("deliver_policy", json!({"deliver_policy": "new"})),
        (
            "ack_policy",
            json!({"ack_policy": "none", "ack_wait": 0, "max_ack_pending": 0, "max_deliver": 0}),
        ),
        ("ack_wait", json!({"ack_wait": 5 * second})),
        ("max_deliver", json!({"max_deliver": 5})),
        ("max_ack_pending", json!({"max_ack_pending": 1000})),
        ("max_waiting", json!({"max_waiting": 2})),
        ("backoff", json!({"backoff": [second, 2 * second]})),
        ("replay_policy", json!({"replay_policy": "original"})),
        ("headers_only", json!({"headers_only": true})),
        ("max_batch", json!({"max_batch": 1})),
        ("max_bytes", json!({"max_bytes": 100})),
        ("max_expires", json!({"max_expires": second})),
        (
            "inactive_threshold",
            json!({"inactive_threshold": 300 * second}),
        ),
        ("num_replicas", json!({"num_replicas": 1})),
        ("mem_storage", json!({"mem_storage": true})),
        (
            "priority_groups",
            json!({"priority_groups": ["a"], "priority_policy": "overflow"}),
        ),
        (
            "pause_until",
            json!({"pause_until": "2099-01-01T00:00:00Z"}),
        ),
    ];
    for (field, edit) in edits {
        nats.ensure_topology(&TopologySettings::default())
            .await
            .unwrap();
        let info = request_api(
            &client,
            "CONSUMER.INFO.TARSY_ALERTS.high".into(),
            &json!({}),
        )
        .await
        .unwrap();
        let request =
            json!({"stream_name": "TARSY_ALERTS", "config": edited(&info["config"], &edit)});
        let create = "CONSUMER.CREATE.TARSY_ALERTS.high".to_owned();
        let direct = request_api(&client, create.clone(), &request).await;
        let stands = request_api(
            &client,
            "CONSUMER.INFO.TARSY_ALERTS.high".into(),
            &json!({}),
        )
        .await
        .unwrap();
        if direct.is_err() || stands["config"] == info["config"] {
            // Some fields cannot be edited in place, and some values are invalid for a work queue.
            let stream = request_api(&client, "STREAM.INFO.TARSY_ALERTS".into(), &json!({}))
                .await
                .unwrap();
            jetstream.delete_stream("TARSY_ALERTS").await.unwrap();
            let limits = edited(&stream["config"], &json!({"retention": "limits"}));
            request_api(&client, "STREAM.CREATE.TARSY_ALERTS".into(), &limits)
                .await
                .unwrap();
            request_api(&client, create, &request)
                .await
                .unwrap_or_else(|error| panic!("{field}: {error}"));
        }
        assert_found(&nats, "TARSY_ALERTS/high", &edit, field).await;
        jetstream.delete_stream("TARSY_ALERTS").await.unwrap();
    }
}

#[tokio::test]
async fn a_field_that_cannot_be_changed_is_an_error_that_names_the_stream() {
    let (server, nats) = prepared().await;
    let (client, jetstream) = outsider(&server).await;
    let info = request_api(&client, "STREAM.INFO.TARSY_TIMELINE".into(), &json!({}))
        .await
        .unwrap();
    jetstream.delete_stream("TARSY_TIMELINE").await.unwrap();
    let queue = edited(&info["config"], &json!({"retention": "workqueue"}));
    request_api(&client, "STREAM.CREATE.TARSY_TIMELINE".into(), &queue)
        .await
        .unwrap();
    let message = nats
        .ensure_topology(&TopologySettings::default())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        message.starts_with("TARSY_TIMELINE: cannot update: "),
        "{message}"
    );
}

#[tokio::test]
async fn a_publish_that_is_not_stored_is_an_error_with_the_cause() {
    let server = NatsServer::start().await;
    let nats = connect(&server).await;
    let alert = |bytes: usize| NewAlert {
        priority: Priority::Normal,
        suffix: "disk-full".parse().ok(),
        body: vec![b'x'; bytes],
        headers: json!({}),
    };
    let error = nats.publish_alert(alert(10)).await.unwrap_err();
    assert!(matches!(error, Error::NoStream(_)), "{error}");

    nats.ensure_topology(&full_at(100_000)).await.unwrap();
    let published = nats.publish_alert(alert(60_000)).await.unwrap();
    assert_eq!(
        (published.subject.as_str(), published.sequence),
        ("tarsy.alerts.normal.disk-full", 1)
    );
    let error = nats.publish_alert(alert(60_000)).await.unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    let error = nats.publish_alert(alert(1_000_000)).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    let error = nats.publish_alert(alert(2_000_000)).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn larger_replicas_ages_and_sizes_than_expected_are_accepted_and_kept() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let config = async |name: &str| {
        jetstream
            .get_stream(name)
            .await
            .unwrap()
            .cached_info()
            .config
            .clone()
    };
    let hours = |hours: u64| std::time::Duration::from_secs(hours * 3600);
    let mut timeline = config("TARSY_TIMELINE").await;
    (timeline.max_age, timeline.max_bytes) = (hours(100), 1_100_000_000);
    jetstream.update_stream(&timeline).await.unwrap();
    let mut letters = config("TARSY_DEAD_LETTERS").await;
    (letters.max_age, letters.max_bytes) = (std::time::Duration::ZERO, 1000);
    jetstream.update_stream(&letters).await.unwrap();

    let lines: Vec<String> = differences(&nats)
        .await
        .iter()
        .map(ToString::to_string)
        .collect();
    let least = "TARSY_DEAD_LETTERS: max_bytes is 1000, must be at least 201326592 (the bound of `streams` in the configuration)";
    assert_eq!(lines, [least], "only smaller values differ");
    let ensured = nats
        .ensure_topology(&TopologySettings::default())
        .await
        .unwrap();
    assert_eq!(
        ensured,
        TopologyChanges {
            created: 0,
            updated: 1,
            unchanged: 7
        }
    );
    let kept = config("TARSY_TIMELINE").await;
    assert_eq!(
        (kept.max_age, kept.max_bytes),
        (hours(100), 1_100_000_000),
        "larger bounds of the operator are kept"
    );
    let kept = config("TARSY_DEAD_LETTERS").await;
    assert_eq!(
        (kept.max_age, kept.max_bytes),
        (std::time::Duration::ZERO, 201_326_592)
    );

    let timeline = StreamLimits {
        max_age: Some(hours(2)),
        max_bytes: Some(1 << 20),
        ..StreamLimits::default()
    };
    let configured = with_streams(Streams {
        timeline,
        ..Streams::default()
    });
    nats.verify_topology(&configured)
        .await
        .expect("a worker accepts larger values than its configuration has");
    nats.ensure_topology(&configured).await.unwrap();
    let shrunk = config("TARSY_TIMELINE").await;
    assert_eq!(
        (shrunk.max_age, shrunk.max_bytes),
        (hours(2), 1 << 20),
        "a configured value is set"
    );
}

#[tokio::test]
async fn a_stream_of_an_older_version_gets_a_limit_that_drops_no_message() {
    let server = NatsServer::start().await;
    let nats = connect(&server).await;
    nats.ensure_topology(&TopologySettings::default())
        .await
        .unwrap();
    let (client, jetstream) = outsider(&server).await;
    for name in ["TARSY_TIMELINE", "TARSY_DEAD_LETTERS"] {
        let info = request_api(&client, format!("STREAM.INFO.{name}"), &json!({}))
            .await
            .unwrap();
        let config = edited(&info["config"], &json!({"max_bytes": -1}));
        request_api(&client, format!("STREAM.UPDATE.{name}"), &config)
            .await
            .unwrap();
    }
    // More than the default of 192 MiB.
    for number in 0..204 {
        let subject = format!("tarsy.dead.empty.{number}");
        jetstream
            .publish(subject, vec![b'x'; 1_000_000].into())
            .await
            .unwrap()
            .await
            .unwrap();
    }
    let settings = TopologySettings::default();
    nats.verify_topology(&settings)
        .await
        .expect("a worker does not need the bound");
    let reports = nats.inspect_topology(&settings).await.unwrap();
    let weak: Vec<&str> = reports
        .iter()
        .filter(|object| object.status == Weak(Weakness::Unbounded))
        .map(|object| object.name.as_str())
        .collect();
    assert_eq!(
        weak,
        ["TARSY_TIMELINE", "TARSY_DEAD_LETTERS"],
        "doctor reports it"
    );

    let ensured = nats.ensure_topology(&settings).await.unwrap();
    assert_eq!(
        ensured,
        TopologyChanges {
            created: 0,
            updated: 2,
            unchanged: 6
        }
    );
    let letters = jetstream.get_stream("TARSY_DEAD_LETTERS").await.unwrap();
    let (state, bound) = (
        &letters.cached_info().state,
        letters.cached_info().config.max_bytes,
    );
    assert_eq!(state.messages, 204, "no dead letter is lost");
    assert!((204_000_000..205_000_000).contains(&bound), "{bound}");
    let timeline = jetstream.get_stream("TARSY_TIMELINE").await.unwrap();
    assert_eq!(timeline.cached_info().config.max_bytes, 512 << 20);
}

#[tokio::test]
async fn a_stream_without_room_on_the_server_is_an_error_that_names_the_setting() {
    let server = NatsServer::start().await;
    let error = connect(&server)
        .await
        .ensure_topology(&full_at(1 << 40))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("TARSY_ALERTS")
            && error.contains("lower max_bytes of the stream in `streams`"),
        "{error}"
    );
}
