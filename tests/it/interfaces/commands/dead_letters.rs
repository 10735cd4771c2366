//! `tarsy dead-letters`.

use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer};
use futures_util::StreamExt as _;
use serde_json::json;
use tarsy_bus::{CHAIN, NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use uuid::Uuid;

use super::run;
use crate::support::system::TestSystem;

/// Publishes an alert that becomes a dead letter. Returns when the stream has it.
async fn publish_undeliverable(system: &TestSystem, body: &[u8], chain: Option<&str>) -> SessionId {
    let session = SessionId(Uuid::now_v7());
    let headers = json!({SESSION_ID: session.to_string(), CHAIN: chain});
    let alert = NewAlert {
        priority: Priority::High,
        suffix: "ci".parse().ok(),
        body: body.to_vec(),
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    let stream = system
        .jetstream()
        .await
        .get_stream("TARSY_DEAD_LETTERS")
        .await
        .unwrap();
    let filter_subject = format!("tarsy.dead.*.{session}");
    let config = Config {
        ack_policy: AckPolicy::None,
        filter_subject,
        ..Config::default()
    };
    let consumer: PullConsumer = stream.create_consumer(config).await.unwrap();
    let mut messages = consumer.messages().await.unwrap();
    let stored = tokio::time::timeout(super::COMMAND_TIMEOUT, messages.next()).await;
    stored.expect("no dead letter is stored").unwrap().unwrap();
    session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_listed_shown_retried_and_dropped() {
    let system = TestSystem::start(&[]).await;
    let empty = run(&system, &["dead-letters", "list"]).await.exits(0);
    assert_eq!(
        (empty.out.as_str(), empty.err.as_str()),
        ("", "no dead letters\n")
    );

    let (_worker, _) = system.worker("w1").await;
    let misrouted = publish_undeliverable(
        &system,
        b"{\"alertname\": \"NodeNotReady\"}",
        Some("k8s-prod"),
    )
    .await;
    let broken = publish_undeliverable(&system, b"\x00\xff", None).await;
    let (first, second) = (misrouted.short(), broken.short());

    let listed = run(&system, &["dead-letters", "list"]).await.exits(0);
    let reasons: Vec<&str> = listed
        .out
        .lines()
        .skip(1)
        .map(|line| &line[23..36])
        .collect();
    assert_eq!(
        reasons,
        ["undecodable  ", "unknown_chain"],
        "{}",
        listed.out
    );
    let listed = run(&system, &["dead-letters", "list", "--json", "--limit", "1"])
        .await
        .exits(0)
        .json();
    assert_eq!(
        (
            listed.len(),
            &listed[0]["alert_id"],
            &listed[0]["body_bytes"]
        ),
        (1, &json!(broken), &json!(2))
    );

    let shown = run(&system, &["dead-letters", "show", &first])
        .await
        .exits(0);
    for part in [
        "reason unknown_chain",
        "from tarsy.alerts.high.ci, sequence 1, delivery 1",
        "\"k8s-prod\"",
        "[--chain default]",
        "NodeNotReady",
    ] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
    let body = run(&system, &["dead-letters", "show", &first, "--body"])
        .await
        .exits(0);
    assert_eq!(body.out, "{\"alertname\": \"NodeNotReady\"}");

    // What would become the same dead letter again is not published.
    let same = run(&system, &["dead-letters", "retry", &second])
        .await
        .exits(1);
    let words = format!(
        "alert {second} would become the same dead letter: body is no text, and not compressed with gzip or deflate; tarsy dead-letters"
    );
    assert!(same.err.contains(&words), "{same:?}");
    let config = std::fs::read_to_string(system.file("tarsy.yaml")).unwrap();
    let chains = "agent_chains: {db: {default: true, stages: [{agents: [{name: sre}]}]}}\n";
    std::fs::write(system.file("tarsy.yaml"), config.clone() + chains).unwrap();
    for chain in [&[][..], &["--chain", "k8s"]] {
        let arguments = [&["dead-letters", "retry", &first], chain].concat();
        let refused = run(&system, &arguments).await.exits(1);
        assert!(
            refused.err.contains("there is no chain \"k8s") && refused.err.contains(": db"),
            "{refused:?}"
        );
    }
    std::fs::write(system.file("tarsy.yaml"), config).unwrap();

    let again = run(
        &system,
        &[
            "dead-letters",
            "retry",
            &first,
            "--chain",
            "default",
            "--watch",
        ],
    )
    .await
    .exits(0);
    assert!(
        again.err.contains(&format!("retry of {first}")) && again.out.contains("completed"),
        "{again:?}"
    );
    let gone = run(&system, &["dead-letters", "retry", &first])
        .await
        .exits(1);
    assert!(gone.err.contains("no dead letter's alert has"), "{gone:?}");

    let dropped = run(&system, &["dead-letters", "drop", &second])
        .await
        .exits(0);
    assert_eq!(
        dropped.out,
        format!("dropped alert {second} (undecodable, from tarsy.alerts.high.ci, 2 B)\n")
    );
    run(&system, &["dead-letters", "show", &second])
        .await
        .exits(1);
    let gone = run(&system, &["dead-letters", "drop", &broken.to_string()])
        .await
        .exits(1);
    let words = format!(
        "alert {second} has no dead letter: it was never given up, or has been retried or dropped"
    );
    assert!(gone.err.contains(&words), "{gone:?}");
    run(&system, &["dead-letters", "drop", "@999"])
        .await
        .exits(1);
    let empty = run(&system, &["dead-letters", "list", "--json"])
        .await
        .exits(0);
    assert_eq!(empty.out, "");
}
