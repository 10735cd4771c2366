//! The feed: publishes the table without a gap, through outages of the broker and with concurrent publishers.

mod tail;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tarsy_bus::{FeedSettings, JetStreamFeed, MAX_EVENT_BYTES, timeline_subject};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::TimelineEvent;
use tarsy_engine::ports::{DeadLetter, DeadReason, Feed};

use super::table::{Table, event, history, new_session, on_stream, until_on_stream};
use super::{connect, feed, outsider, prepared, recorder, within};

#[tokio::test]
async fn a_drain_publishes_and_counts_every_row_in_order() {
    let recorder = recorder();
    let _counting = metrics::set_default_local_recorder(&recorder);
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let session = new_session();
    let rows = history(session, 200);
    let table = Arc::new(Table::new(rows.clone()));
    let feed = feed(&nats, &table);
    feed.drain(session, 200).await.unwrap();
    assert_eq!(on_stream(&jetstream, session).await, rows);
    feed.drain(session, 200).await.unwrap();
    assert_eq!(on_stream(&jetstream, session).await, rows);
    let counted = recorder.handle().render();
    assert!(
        counted.contains("\ntarsy_events_published_total 200\n"),
        "{counted}"
    );
    assert!(
        counted.contains("\ntarsy_event_publish_duration_seconds_count 200\n"),
        "{counted}"
    );
    feed.close().await;
}

#[tokio::test]
async fn a_notification_publishes_in_the_background_even_after_an_idle_time() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let session = new_session();
    let table = Arc::new(Table::default());
    let settings = FeedSettings {
        idle_timeout: Duration::from_millis(20),
        ..FeedSettings::default()
    };
    let feed = JetStreamFeed::new(&nats, Arc::clone(&table), settings);
    for seq in 1..=20 {
        table.add(event(session, seq));
        feed.notify(session);
        within(
            "the event",
            until_on_stream(&jetstream, session, seq as usize),
        )
        .await;
        if seq % 5 == 0 {
            tokio::time::sleep(Duration::from_millis(30)).await; // the idle time itself: the publisher ends
        }
    }
    assert_eq!(
        on_stream(&jetstream, session).await,
        (1..=20).map(|seq| event(session, seq)).collect::<Vec<_>>()
    );
    feed.close().await;
}

#[tokio::test]
async fn a_server_killed_in_the_middle_causes_no_gap_and_no_duplicate() {
    let (mut server, nats) = prepared().await;
    let session = new_session();
    let rows = history(session, 3000);
    let table = Arc::new(Table::new(rows.clone()));
    let feed = feed(&nats, &table);
    let mut last_read = table.last_read();
    feed.notify(session);
    within("some events", last_read.wait_for(|after| *after >= 200))
        .await
        .unwrap();
    server.kill();
    let before = *last_read.borrow();
    assert!(
        before < 2900,
        "the kill came too late, after {before} events"
    );
    server.restart().await;
    within("the drain", feed.drain(session, 3000))
        .await
        .unwrap();
    assert_eq!(on_stream(&outsider(&server).await.1, session).await, rows);
    feed.close().await;
}

#[tokio::test]
async fn two_concurrent_publishers_cause_no_duplicate() {
    let (server, nats) = prepared().await;
    let session = new_session();
    let rows = history(session, 300);
    let table = Arc::new(Table::new(rows.clone()));
    let (one, other) = (feed(&nats, &table), feed(&connect(&server).await, &table));
    one.notify(session);
    other.notify(session);
    let (first, second) = tokio::join!(one.drain(session, 300), other.drain(session, 300));
    assert_eq!((first, second), (Ok(()), Ok(())));
    assert_eq!(on_stream(&outsider(&server).await.1, session).await, rows);
}

#[tokio::test]
async fn a_purged_stream_is_filled_again_from_the_first_event() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let session = new_session();
    let table = Arc::new(Table::new(
        (1..=10).map(|seq| event(session, seq)).collect(),
    ));
    let feed = feed(&nats, &table);
    feed.notify(session);
    within("ten events", until_on_stream(&jetstream, session, 10)).await;
    jetstream
        .get_stream("TARSY_TIMELINE")
        .await
        .unwrap()
        .purge()
        .await
        .unwrap();
    table.add(event(session, 11));
    feed.notify(session);
    within("eleven events", until_on_stream(&jetstream, session, 11)).await;
    assert_eq!(
        on_stream(&jetstream, session).await,
        (1..=11).map(|seq| event(session, seq)).collect::<Vec<_>>()
    );
    feed.close().await;
}

#[tokio::test]
async fn a_drain_that_fails_returns_the_cause_after_its_timeout() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    jetstream.delete_stream("TARSY_TIMELINE").await.unwrap();
    let session = new_session();
    let table = Arc::new(Table::new(history(session, 2)));
    let settings = FeedSettings {
        drain_timeout: Duration::from_millis(300),
        ..FeedSettings::default()
    };
    let feed = JetStreamFeed::new(&nats, table, settings);
    let error = feed.drain(session, 2).await.unwrap_err().to_string();
    assert!(
        error.starts_with(
            "broker is unavailable: events up to 2 are not all published after 300ms: "
        ),
        "{error}"
    );
    assert!(error.contains("stream not found"), "{error}");
}

#[tokio::test]
async fn an_event_of_a_megabyte_is_truncated_and_later_events_are_published() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let session = new_session();
    let big = TimelineEvent {
        content: "\u{1b}é".repeat(350_000),
        ..event(session, 1)
    };
    let table = Arc::new(Table::new(vec![big.clone(), event(session, 2)]));
    let feed = feed(&nats, &table);
    feed.drain(session, 2).await.unwrap();
    let events = on_stream(&jetstream, session).await;
    assert_eq!(events[1], event(session, 2));
    let cut = &events[0];
    assert!(serde_json::to_vec(cut).unwrap().len() <= MAX_EVENT_BYTES);
    let (kept, mark) = cut.content.split_once('\n').unwrap();
    assert!(
        big.content.starts_with(kept) && kept.len() > 50_000,
        "{} bytes kept",
        kept.len()
    );
    assert_eq!(
        mark,
        format!(
            "[cut here: {} of 1050000 bytes; the store has all of it]",
            kept.len()
        )
    );
    assert_eq!(
        *cut,
        TimelineEvent {
            content: cut.content.clone(),
            truncated: true,
            ..big
        }
    );
}

#[tokio::test]
async fn a_dead_letter_that_is_published_twice_is_one_message() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let feed = feed(&nats, &Arc::new(Table::default()));
    let alert_id: SessionId = new_session();
    let letter = DeadLetter {
        alert_id,
        reason: DeadReason::Undecodable,
        detail: "byte 0xff\nat 3".into(),
        body: vec![0xff, 1, 2],
        headers: json!({"Tarsy-Fingerprint": "f", "Nats-Msg-Id": "x", "Nats-Expected-Stream": "OTHER"}),
        subject: "tarsy.alerts.low.x".into(),
        stream_sequence: 7,
        deliveries: 2,
    };
    feed.publish_dead_letter(letter.clone()).await.unwrap();
    feed.publish_dead_letter(letter).await.unwrap();

    let stream = jetstream.get_stream("TARSY_DEAD_LETTERS").await.unwrap();
    assert_eq!(stream.cached_info().state.messages, 1);
    let message = stream
        .get_last_raw_message_by_subject(&format!("tarsy.dead.undecodable.{alert_id}"))
        .await
        .unwrap();
    assert_eq!(&message.payload[..], [0xff, 1, 2]);
    let mut headers: Vec<(String, String)> = message
        .headers
        .iter()
        .map(|(name, values)| (name.to_string(), values[0].to_string()))
        .collect();
    headers.sort();
    let expected = [
        ("Nats-Expected-Last-Subject-Sequence", "0"),
        ("Nats-Expected-Stream", "TARSY_DEAD_LETTERS"),
        ("Tarsy-Dead-Deliveries", "2"),
        ("Tarsy-Dead-Detail", "byte 0xff at 3"),
        ("Tarsy-Dead-Reason", "undecodable"),
        ("Tarsy-Dead-Sequence", "7"),
        ("Tarsy-Dead-Subject", "tarsy.alerts.low.x"),
        ("Tarsy-Fingerprint", "f"),
    ];
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(headers, expected);
}

#[tokio::test]
async fn an_alert_at_the_size_limit_fits_into_a_dead_letter() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let feed = feed(&nats, &Arc::new(Table::default()));
    let letter = DeadLetter {
        alert_id: new_session(),
        reason: DeadReason::AttemptsExhausted,
        detail: "x".repeat(10_000),
        body: vec![b'x'; 1_048_576 - 65_536],
        headers: json!({"Tarsy-Fingerprint": "f".repeat(30_000)}),
        subject: "tarsy.alerts.low".into(),
        stream_sequence: 1,
        deliveries: 1,
    };
    feed.publish_dead_letter(letter).await.unwrap();
    assert_eq!(
        jetstream
            .get_stream("TARSY_DEAD_LETTERS")
            .await
            .unwrap()
            .cached_info()
            .state
            .messages,
        1
    );
}

#[tokio::test]
async fn no_event_carries_a_message_id() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let session = new_session();
    let feed = feed(&nats, &Arc::new(Table::new(history(session, 1))));
    feed.drain(session, 1).await.unwrap();
    let stream = jetstream.get_stream("TARSY_TIMELINE").await.unwrap();
    let message = stream
        .get_last_raw_message_by_subject(&timeline_subject(session))
        .await
        .unwrap();
    assert!(message.headers.get("Nats-Msg-Id").is_none());
}
