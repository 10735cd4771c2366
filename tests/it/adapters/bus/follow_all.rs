//! Following all sessions: each later event once, in the order of the stream, through restarts of the server.

use std::sync::Arc;

use tarsy_bus::{AllFollower, TopologySettings};
use tarsy_core::timeline::TimelineEvent;
use tarsy_engine::ports::Feed;

use super::table::{Table, event, history, new_session};
use super::{feed, outsider, prepared, within};

async fn take(follower: &mut AllFollower, count: usize) -> Vec<TimelineEvent> {
    let mut events = Vec::new();
    while events.len() < count {
        events.push(
            within("an event", follower.next())
                .await
                .expect("a further event"),
        );
    }
    events
}

/// The whole stream, as another client reads it.
async fn on_stream(jetstream: &async_nats::jetstream::Context) -> Vec<TimelineEvent> {
    let stream = jetstream.get_stream("TARSY_TIMELINE").await.unwrap();
    let state = &stream.cached_info().state;
    let mut events = Vec::new();
    for sequence in state.first_sequence..=state.last_sequence {
        events.push(
            serde_json::from_slice(&stream.get_raw_message(sequence).await.unwrap().payload)
                .unwrap(),
        );
    }
    events
}

#[tokio::test]
async fn a_server_killed_twice_hides_and_repeats_no_event_of_any_session() {
    const EACH: u32 = 600;
    let (mut server, nats) = prepared().await;
    let sessions = [new_session(), new_session(), new_session()];
    let table = Arc::new(Table::new(vec![event(sessions[0], 1)]));
    let feed = feed(&nats, &table);
    feed.drain(sessions[0], 1).await.unwrap();
    let mut follower = AllFollower::start(&nats).await.unwrap();
    let mut seen = Vec::new();
    for round in 0..3 {
        let (from, to) = (round * EACH / 3, (round + 1) * EACH / 3);
        for session in sessions {
            let new = history(session, EACH)
                .into_iter()
                .skip(from as usize)
                .take((to - from) as usize);
            new.filter(|event| (event.session_id, event.session_seq) != (sessions[0], 1))
                .for_each(|event| table.add(event));
            feed.notify(session);
        }
        seen.extend(take(&mut follower, 50).await);
        if round < 2 {
            server.restart().await;
        }
        for session in sessions {
            within("the drain", feed.drain(session, to)).await.unwrap();
        }
    }
    seen.extend(take(&mut follower, 3 * EACH as usize - 1 - seen.len()).await);
    let expected = on_stream(&outsider(&server).await.1).await;
    assert_eq!(expected.len(), 3 * EACH as usize);
    assert_eq!(
        seen,
        expected[1..],
        "every event after the follower started"
    );
    feed.close().await;
}

#[tokio::test]
async fn a_stream_that_was_filled_again_is_read_without_the_events_emitted_before() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let (first, second) = (new_session(), new_session());
    let table = Arc::new(Table::new((1..=5).map(|seq| event(first, seq)).collect()));
    let feed = feed(&nats, &table);
    let mut follower = AllFollower::start(&nats).await.unwrap();
    feed.drain(first, 5).await.unwrap();
    assert_eq!(
        take(&mut follower, 5).await,
        (1..=5).map(|seq| event(first, seq)).collect::<Vec<_>>()
    );

    jetstream.delete_stream("TARSY_TIMELINE").await.unwrap();
    nats.ensure_topology(&TopologySettings::default())
        .await
        .unwrap();
    // Filled from the first event of each session; the new stream becomes longer than the old one was.
    table.add(event(first, 6));
    table.add(event(second, 1));
    feed.drain(second, 1).await.unwrap();
    feed.drain(first, 6).await.unwrap();
    assert_eq!(
        take(&mut follower, 2).await,
        [event(second, 1), event(first, 6)]
    );
    table.add(event(first, 7));
    feed.drain(first, 7).await.unwrap();
    assert_eq!(take(&mut follower, 1).await, [event(first, 7)]);
    feed.close().await;
}

#[tokio::test]
async fn following_fails_without_a_stream() {
    let (server, nats) = prepared().await;
    outsider(&server)
        .await
        .1
        .delete_stream("TARSY_TIMELINE")
        .await
        .unwrap();
    let error = AllFollower::start(&nats).await.unwrap_err().to_string();
    assert!(error.contains("TARSY_TIMELINE"), "{error}");
}
