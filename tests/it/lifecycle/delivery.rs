//! Delivery of alerts: from the stream to their disposition.

use std::path::Path;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::{self, Context};
use futures_util::StreamExt as _;
use serde_json::Value;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventType, TimelineEvent};
use tarsy_engine::ports::{DeadReason, Outbox};
use uuid::Uuid;

use crate::support::process::metric_is;
use crate::support::system::TestSystem;
use crate::support::wait::eventually;

type Headers<'a> = &'a [(&'a str, &'a str)];

const TIMEOUT: Duration = Duration::from_secs(30);

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures/alerts")
            .join(name),
    )
    .unwrap()
}

/// A producer without tarsy's code.
struct Producer {
    jetstream: Context,
}

impl Producer {
    async fn connect(system: &TestSystem) -> Self {
        Self {
            jetstream: jetstream::new(async_nats::connect(system.nats.url()).await.unwrap()),
        }
    }

    /// Publishes an alert; returns its derived id.
    async fn publish(
        &self,
        subject: &'static str,
        headers: Headers<'_>,
        body: Vec<u8>,
    ) -> SessionId {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, *value);
        }
        let ack = self
            .jetstream
            .publish_with_headers(subject, map, body.into())
            .await
            .unwrap()
            .await
            .unwrap();
        let stream = self.jetstream.get_stream("TARSY_ALERTS").await.unwrap();
        let stored = stream.get_raw_message(ack.sequence).await;
        // An alert that was acknowledged before is no longer there; its id is not needed.
        stored.map_or(SessionId(Uuid::nil()), |message| {
            let at = u64::try_from(message.time.unix_timestamp_nanos() / 1_000_000).unwrap();
            SessionId::of_delivery("TARSY_ALERTS", ack.sequence, at)
        })
    }

    /// The next dead letter: reason, alert id, headers and body.
    async fn dead_letter(&self, after: u64) -> (String, HeaderMap, Vec<u8>) {
        let stream = self
            .jetstream
            .get_stream("TARSY_DEAD_LETTERS")
            .await
            .unwrap();
        let config = jetstream::consumer::pull::OrderedConfig {
            deliver_policy: jetstream::consumer::DeliverPolicy::ByStartSequence {
                start_sequence: after + 1,
            },
            ..Default::default()
        };
        let mut letters = stream
            .create_consumer(config)
            .await
            .unwrap()
            .messages()
            .await
            .unwrap();
        let letter = tokio::time::timeout(TIMEOUT, letters.next())
            .await
            .expect("no dead letter")
            .unwrap()
            .unwrap();
        let reason = letter.subject.split('.').nth(2).unwrap().to_owned();
        (
            reason,
            letter.headers.clone().unwrap(),
            letter.payload.to_vec(),
        )
    }
}

async fn investigated(system: &TestSystem, session: SessionId) -> Vec<TimelineEvent> {
    let mut timeline = system.follow(session).await;
    timeline.finish().await;
    timeline.seen
}

fn prompt_of(system: &TestSystem, session: SessionId) -> String {
    let sql = format!(
        "SELECT content FROM entries WHERE session_id = '{}' AND kind = 'prompt' AND role = 'user'",
        session.0
    );
    system.database.text(&sql)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn captured_alerts_are_investigated_and_a_resolved_one_costs_no_model_call() {
    let system = TestSystem::start(&[]).await;
    let producer = Producer::connect(&system).await;
    // No worker can claim the alert yet, so its derived id can be read from the stream.
    let firing = producer
        .publish(
            "tarsy.alerts.critical",
            &[],
            fixture("01_alertmanager_v4_firing_truncated.json"),
        )
        .await;
    let (worker, _) = system.worker("w1").await;

    let seen = investigated(&system, firing).await;
    assert_eq!(seen.last().unwrap().event_type, EventType::SessionCompleted);
    assert_eq!(seen[0].metadata["alert_type"], "TargetDown");
    assert_eq!(seen[0].metadata["severity"], "critical");
    let prompt = prompt_of(&system, firing);
    for port in 39_201..=39_205 {
        assert!(prompt.contains(&format!("127.0.0.1:{port}")), "{prompt}");
    }
    assert!(
        prompt.contains('3'),
        "the prompt has the number of alerts that were cut off"
    );

    worker.terminate();
    let mut worker = worker;
    worker.finished().await;
    let mixed = producer
        .publish(
            "tarsy.alerts.high",
            &[],
            fixture("02_alertmanager_v4_mixed_firing_resolved.json"),
        )
        .await;
    let resolved = producer
        .publish(
            "tarsy.alerts.low.any",
            &[],
            fixture("03_alertmanager_v4_resolved.json"),
        )
        .await;
    let (_worker, _) = system.worker("w2").await;
    let seen = investigated(&system, mixed).await;
    assert_eq!(seen.last().unwrap().event_type, EventType::SessionCompleted);
    let prompt = prompt_of(&system, mixed);
    let body: Value =
        serde_json::from_slice(&fixture("02_alertmanager_v4_mixed_firing_resolved.json")).unwrap();
    let at = |status: &str| {
        let alerts = body["alerts"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|alert| alert["status"] == status);
        alerts
            .map(|alert| {
                prompt
                    .find(alert["labels"]["instance"].as_str().unwrap())
                    .unwrap()
            })
            .collect::<Vec<_>>()
    };
    assert!(
        at("firing").iter().max() < at("resolved").iter().min(),
        "firing first, resolved as context:\n{prompt}"
    );

    let paid: u32 = system.model_calls().values().sum();
    let seen = investigated(&system, resolved).await;
    assert_eq!(
        system.model_calls().values().sum::<u32>(),
        paid,
        "a resolved alert costs no model call"
    );
    let last = seen.last().unwrap();
    match last.event_type {
        EventType::SessionCompleted => assert_eq!(last.metadata["stop_reason"], "not_investigated"),
        // The session of the second alert was still open when this one arrived.
        EventType::Joined => assert_eq!(last.metadata["joined_session_id"], mixed.to_string()),
        ref other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_dead_letter_has_its_reason_is_counted_and_the_next_alert_is_handled() {
    let system = TestSystem::start(&[]).await;
    let (_worker, metrics) = system.worker("w1").await;
    let producer = Producer::connect(&system).await;
    let used = SessionId(Uuid::now_v7()).to_string();
    let id = [("Tarsy-Session-Id", used.as_str())];
    producer
        .publish("tarsy.alerts.normal", &id, b"first of this id".to_vec())
        .await;
    investigated(&system, SessionId::parse(&used).unwrap()).await;

    let chain = [("Tarsy-Chain", "no-such-chain")];
    let no_id = [("Tarsy-Session-Id", "42")];
    let foreign = [
        ("Nats-Msg-Id", "m1"),
        ("X-Other", "o"),
        ("Tarsy-Alert-Type", "t"),
    ];
    let cases: [(DeadReason, Headers<'_>, Vec<u8>); 5] = [
        (
            DeadReason::Undecodable,
            &foreign,
            vec![0x00, 0xff, 0x00, 0x80],
        ),
        (DeadReason::Empty, &[], b"  \n".to_vec()),
        (DeadReason::UsedId, &id, b"second of this id".to_vec()),
        (DeadReason::InvalidId, &no_id, b"whose id is none".to_vec()),
        (
            DeadReason::UnknownChain,
            &chain,
            b"whose chain is none".to_vec(),
        ),
    ];
    for (index, (reason, headers, body)) in (0_u64..).zip(cases) {
        producer
            .publish("tarsy.alerts.normal.any", headers, body.clone())
            .await;
        let (arrived, headers, kept) = producer.dead_letter(index).await;
        assert_eq!(arrived, reason.as_str());
        assert_eq!(
            headers.get("Tarsy-Dead-Reason").unwrap().as_str(),
            reason.as_str()
        );
        assert_ne!(headers.get("Tarsy-Dead-Detail").unwrap().as_str(), "");
        assert_eq!(
            headers.get("Tarsy-Dead-Subject").unwrap().as_str(),
            "tarsy.alerts.normal.any"
        );
        assert!(headers.get("X-Other").is_none() && headers.get("Nats-Msg-Id").is_none());
        assert_eq!(kept, body);
        let label = format!("reason=\"{}\"", reason.as_str());
        metric_is(&metrics, "tarsy_dead_letters_total", &label, 1.0).await;

        let next = SessionId(Uuid::now_v7()).to_string();
        let text = format!("alert after {}", reason.as_str()).into_bytes();
        producer
            .publish("tarsy.alerts.normal", &[("Tarsy-Session-Id", &next)], text)
            .await;
        let seen = investigated(&system, SessionId::parse(&next).unwrap()).await;
        assert_eq!(seen.last().unwrap().event_type, EventType::SessionCompleted);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_alert_of_a_fingerprint_joins_and_its_watcher_follows_the_first() {
    let mut system = TestSystem::start(&["answer-0-middle"]).await;
    let (_worker, _) = system.worker("w1").await;
    let first = system.publish().await;
    let waiting = system.gates.next().await;
    let second = system.publish().await;
    let mut watch = system.tarsy("watch", &["watch", &second.to_string(), "--json"]);
    let joined: TimelineEvent = serde_json::from_str(&watch.line_with("\"joined\"").await).unwrap();
    assert_eq!(joined.metadata["joined_session_id"], first.to_string());
    assert_eq!((joined.session_id, joined.session_seq), (second, 1));
    system.gates.open_all();
    waiting.open().await;
    let (code, rest) = watch.finished().await;
    assert_eq!(code, 0);
    let events: Vec<TimelineEvent> = rest
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let stored = system
        .database
        .store()
        .events(first, 0, 1000)
        .await
        .unwrap();
    assert_eq!(
        events, stored,
        "watch --json prints the events of the table"
    );
    let joins = events
        .iter()
        .filter(|event| event.event_type == EventType::AlertJoined);
    assert_eq!(
        joins
            .map(|event| event.metadata["alert_id"].clone())
            .collect::<Vec<_>>(),
        [second.to_string()]
    );
    assert_eq!(
        system.model_calls().values().sum::<u32>(),
        4,
        "one investigation"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submit_and_watch_from_a_shell_end_with_the_investigation() {
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let alert = system.file("disk.txt");
    std::fs::write(&alert, "disk /data of db-1 is 97 % full").unwrap();
    let mut submit = system.tarsy("submit", &["submit", alert.to_str().unwrap(), "--watch"]);
    let (code, shown) = submit.finished().await;
    assert_eq!(code, 0, "{}", submit.log());
    assert!(
        shown.contains("Cause:") && shown.contains("disk /data of db-1"),
        "{shown}"
    );
    assert!(
        submit.log().contains("published to tarsy.alerts.normal"),
        "{}",
        submit.log()
    );

    let mut detached = system.tarsy("submit", &["submit", alert.to_str().unwrap()]);
    let (code, id) = detached.finished().await;
    assert_eq!(code, 0);
    let session = SessionId::parse(&id).unwrap();
    investigated(&system, session).await;
    let mut watch = system.tarsy("watch", &["watch", &session.short()]);
    let (code, again) = watch.finished().await;
    assert_eq!(code, 0, "{}", watch.log());
    assert!(again.contains("Cause:"), "{again}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_refuses_wrong_streams_and_an_incomplete_schema() {
    let system = TestSystem::start(&[]).await;
    let producer = Producer::connect(&system).await;
    let stream = producer.jetstream.get_stream("TARSY_ALERTS").await.unwrap();
    let mut config = stream.cached_info().config.clone();
    config.max_bytes = 1024;
    producer.jetstream.update_stream(config).await.unwrap();
    let mut worker = system.tarsy("w1", &["worker"]);
    assert_eq!(worker.finished().await.0, 1);
    assert!(
        worker.log().contains("TARSY_ALERTS: max_bytes is"),
        "{}",
        worker.log()
    );
    let mut migrate = system.tarsy("migrate", &["migrate"]);
    assert_eq!(migrate.finished().await.0, 0, "{}", migrate.log());

    system.database.execute(
        "DELETE FROM __diesel_schema_migrations WHERE version = (SELECT max(version) FROM __diesel_schema_migrations)",
    );
    let mut worker = system.tarsy("w1", &["worker"]);
    assert_eq!(worker.finished().await.0, 1);
    assert!(worker.log().contains("tarsy migrate"), "{}", worker.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_stopped_while_the_broker_is_unavailable_exits_cleanly() {
    let mut system = TestSystem::start(&[]).await;
    let (mut worker, _metrics) = system.worker("w1").await;
    system.nats.kill();
    worker.logged("nats is unavailable").await;
    worker.terminate();
    assert_eq!(worker.finished().await.0, 0, "{}", worker.log());
    assert!(
        worker.log().contains("worker is drained"),
        "{}",
        worker.log()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_in_an_alert_is_masked_everywhere_and_its_raw_body_is_deleted() {
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let producer = Producer::connect(&system).await;
    let session = SessionId(Uuid::now_v7()).to_string();
    let body = b"login to db-3 failed with password=hunter2-and-more".to_vec();
    producer
        .publish(
            "tarsy.alerts.normal",
            &[("Tarsy-Session-Id", &session)],
            body,
        )
        .await;
    let seen = investigated(&system, SessionId::parse(&session).unwrap()).await;
    assert_eq!(seen.last().unwrap().event_type, EventType::SessionCompleted);
    let events = serde_json::to_string(&seen).unwrap();
    assert!(
        events.contains("db-3") && !events.contains("hunter2"),
        "{events}"
    );
    for (table, text) in [
        ("alerts", "body || title"),
        ("entries", "content"),
        ("session_plans", "plan::text"),
    ] {
        let rows = system
            .database
            .number(&format!("SELECT count(*) FROM {table}"));
        let leaks = system.database.number(&format!(
            "SELECT count(*) FROM {table} WHERE {text} LIKE '%hunter2%'"
        ));
        assert!(rows > 0 && leaks == 0, "{leaks} of {rows} rows of {table}");
    }
    // The raw body is deleted when the alert is settled, just after the end event is on the stream.
    let raw = "SELECT count(*) FROM alerts WHERE raw IS NOT NULL";
    eventually("the raw body is deleted", async || {
        system.database.number(raw) == 0
    })
    .await;
}
