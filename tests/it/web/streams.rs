//! Streams of events: each number once and in order, whatever is cut off in between.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Sse, Web};
use crate::interfaces::commands::run_with;
use crate::support::process::metric_is;
use crate::support::process::ports::free_address;
use crate::support::system::TestSystem;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_has_every_event_of_watch_and_a_reader_that_has_the_end_gets_204() {
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let web = Web::start(&system, &[]).await;
    let session = system.publish().await;
    let path = format!("/api/v1/sessions/{session}/events");
    // Opened before a worker has seen the alert: the stream waits for it.
    let (mut early, mut all) = (
        web.stream(&path, &[]).await,
        web.stream("/api/v1/events", &[]).await,
    );
    for name in ["text/event-stream", "x-accel-buffering: no", "no-store"] {
        assert!(early.head.contains(name), "{name}: {}", early.head);
    }
    let mut seen = Vec::new();
    loop {
        let frame = early.next_event().await.expect("the end is an event");
        if frame.event == "end" {
            assert_eq!(
                (frame.id, frame.json()),
                (None, json!({"last_seq": seen.len()}))
            );
            break;
        }
        assert_eq!(
            (frame.event.as_str(), frame.id),
            ("timeline", Some(u32::try_from(seen.len()).unwrap() + 1))
        );
        seen.push(frame.data);
    }
    assert!(
        early.next().await.is_none(),
        "the server closes the connection"
    );
    let env = system.env(system.database.url());
    let watched = run_with(&env.each(), &["watch", "--json", &session.to_string()], b"")
        .await
        .exits(0);
    assert_eq!(seen.join("\n") + "\n", watched.out);
    for (number, event) in seen.iter().enumerate() {
        let frame = all.next().await.unwrap();
        assert_eq!((frame.id, &frame.data), (None, event), "{number}");
    }

    // A late reader, one with a number, and one that has everything.
    let mut late = web.stream(&format!("{path}?after=3"), &[]).await;
    assert_eq!(late.next().await.unwrap().id, Some(4));
    let mut resumed = web
        .stream(&format!("{path}?after=3"), &[("last-event-id", "6")])
        .await;
    assert_eq!(
        resumed.next().await.unwrap().id,
        Some(7),
        "Last-Event-ID precedes after"
    );
    let last = seen.len().to_string();
    let over = web.stream(&path, &[("last-event-id", &last)]).await;
    assert_eq!(over.status, 204);
    drop((late, resumed, all));
    metric_is(&web.metrics, "tarsy_web_streams", "", 0.0).await;
    metric_is(&web.metrics, "tarsy_web_followers", "", 0.0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_sees_each_event_once_while_the_web_server_is_killed_and_started() {
    let mut system =
        TestSystem::start(&["answer-1-middle", "answer-2-middle", "answer-3-middle"]).await;
    let (_worker, _) = system.worker("w1").await;
    let address = free_address();
    let mut web = Web::start_on(&system, &address, &[]).await;
    let session = system.publish().await;
    let path = format!("/api/v1/sessions/{session}/events");
    let (reader_path, reader_address) = (path.clone(), address.clone());
    let reader = tokio::spawn(async move {
        let mut seen: Vec<Value> = Vec::new();
        loop {
            let last = seen.len().to_string();
            let Some(mut stream) = Sse::try_open(
                &reader_address,
                &reader_path,
                &[("last-event-id", last.as_str())],
            )
            .await
            else {
                tokio::time::sleep(Duration::from_millis(50)).await; // as long as the server is not there
                continue;
            };
            if stream.status == 204 {
                return seen;
            }
            while let Some(frame) = stream.next_event().await {
                if frame.event == "timeline" {
                    assert_eq!(frame.id, Some(u32::try_from(seen.len()).unwrap() + 1));
                    seen.push(frame.json());
                }
            }
        }
    });
    let mut timeline = system.follow(session).await;
    for _ in 0..3 {
        let arrived = system.gates.next().await;
        web.process.kill().await;
        arrived.open().await;
        web = Web::start_on(&system, &address, &[]).await;
    }
    timeline.finish().await;
    let seen = tokio::time::timeout(Duration::from_secs(60), reader)
        .await
        .expect("an end in time")
        .unwrap();
    let events: Vec<Value> = timeline
        .seen
        .iter()
        .map(|event| serde_json::to_value(event).unwrap())
        .collect();
    assert_eq!(seen, events);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_a_session_share_one_follower_and_a_user_has_a_limit() {
    let system = TestSystem::start(&[]).await;
    std::fs::write(system.file("web.yaml"), "web: {streams_per_user: 5}\n").unwrap();
    let config = system.file("web.yaml").display().to_string();
    let web = Web::start(&system, &[("TARSY_CONFIG", &config)]).await;
    let session = system.publish().await;
    let path = format!("/api/v1/sessions/{session}/events");
    let mut readers = Vec::new();
    for _ in 0..5 {
        readers.push(web.stream(&path, &[]).await);
    }
    metric_is(&web.metrics, "tarsy_web_streams", "", 5.0).await;
    metric_is(&web.metrics, "tarsy_web_followers", "", 1.0).await;
    let refused = web.stream(&path, &[]).await;
    assert_eq!(
        (refused.status, refused.head.contains("retry-after: 3")),
        (429, true),
        "{}",
        refused.head
    );
    metric_is(
        &web.metrics,
        "tarsy_web_streams_cut_total",
        "reason=\"limit\"",
        1.0,
    )
    .await;
    // A stopped server ends its streams at once, so that their readers continue elsewhere.
    web.process.terminate();
    for reader in &mut readers {
        while reader.next().await.is_some() {}
    }
}
