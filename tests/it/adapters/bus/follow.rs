//! Followers: all get the same events, whenever they start and whatever fails; deltas arrive in order and in time.

use std::sync::Arc;

use serde_json::json;
use tarsy_bus::{Follower, Nats, TimelineUpdate, live_subject};
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::timeline::{Delta, DeltaKind, EventType, TimelineEvent};
use tarsy_engine::ports::Feed;

use super::table::{Table, end, event, history, new_session, on_stream, until_on_stream};
use super::{feed, outsider, prepared, within};

fn without_table(nats: &Nats, session: SessionId, after: u32) -> Follower {
    Follower::start(nats, session, after, None::<Arc<Table>>)
}

async fn next(follower: &mut Follower) -> TimelineUpdate {
    within("an update", follower.next())
        .await
        .expect("not the end")
}

async fn rest(mut follower: Follower) -> Vec<TimelineEvent> {
    let mut events = Vec::new();
    while let Some(update) = within("the end", follower.next()).await {
        match update {
            TimelineUpdate::Event(event) => events.push(event),
            TimelineUpdate::Delta(delta) => panic!("{delta:?}"),
        }
    }
    events
}

fn delta(session_id: SessionId, epoch: u32, iteration: u32, offset: u64, text: &str) -> Delta {
    Delta {
        session_id,
        execution_id: ExecutionId::derive(session_id, 1, 1),
        agent: None,
        epoch,
        iteration,
        attempt: 1,
        kind: DeltaKind::Text,
        offset,
        delta: text.into(),
    }
}

#[tokio::test]
async fn watchers_that_join_at_the_start_in_the_middle_or_at_the_end_see_the_same() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let session = new_session();
    let rows = history(session, 30);
    let table = Arc::new(Table::default());
    let feed = feed(&nats, &table);

    let first = without_table(&nats, session, 0);
    for row in &rows[..15] {
        table.add(row.clone());
        feed.notify(session);
    }
    within(
        "half of the events",
        until_on_stream(&jetstream, session, 15),
    )
    .await;
    let middle = without_table(&nats, session, 0);
    let middle_with_table = Follower::start(&nats, session, 0, Some(Arc::clone(&table)));
    let later = without_table(&nats, session, 12);
    for row in &rows[15..] {
        table.add(row.clone());
        feed.notify(session);
    }
    feed.drain(session, 30).await.unwrap();
    let last = without_table(&nats, session, 0);
    let last_with_table = Follower::start(&nats, session, 29, Some(Arc::clone(&table)));

    assert_eq!(rest(first).await, rows);
    assert_eq!(rest(middle).await, rows);
    assert_eq!(rest(middle_with_table).await, rows);
    assert_eq!(rest(later).await, rows[12..]);
    assert_eq!(rest(last).await, rows);
    assert_eq!(rest(last_with_table).await, rows[29..]);
    assert_eq!(rest(without_table(&nats, session, 30)).await, []);
    assert_eq!(
        rest(Follower::start(&nats, session, 30, Some(table))).await,
        []
    );
}

#[tokio::test]
async fn a_server_killed_in_the_middle_hides_and_repeats_no_event() {
    for with_table in [false, true] {
        let (mut server, nats) = prepared().await;
        let session = new_session();
        let rows = history(session, 2000);
        let table = Arc::new(Table::new(rows[..1000].to_vec()));
        let feed = feed(&nats, &table);
        let known = with_table.then(|| Arc::clone(&table));
        let mut follower = Follower::start(&nats, session, 0, known);
        feed.notify(session);
        let mut seen = Vec::new();
        while seen.len() < 100 {
            match next(&mut follower).await {
                TimelineUpdate::Event(event) => seen.push(event),
                TimelineUpdate::Delta(delta) => panic!("{delta:?}"),
            }
        }
        server.restart().await;
        for row in &rows[1000..] {
            table.add(row.clone());
        }
        within("the drain", feed.drain(session, 2000))
            .await
            .unwrap();
        seen.extend(rest(follower).await);
        assert_eq!(seen, rows, "with a table: {with_table}");
        assert_eq!(on_stream(&outsider(&server).await.1, session).await, rows);
    }
}

#[tokio::test]
async fn a_gap_on_the_stream_is_filled_from_the_table() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let session = new_session();
    let rows = history(session, 6);
    let full = Arc::new(Table::new(rows.clone()));
    // A stream with a gap, which no publisher of tarsy leaves.
    for row in [&rows[0], &rows[1], &rows[4], &rows[5]] {
        let payload = serde_json::to_vec(row).unwrap();
        jetstream
            .publish(tarsy_bus::timeline_subject(session), payload.into())
            .await
            .unwrap()
            .await
            .unwrap();
    }
    assert_eq!(
        rest(Follower::start(&nats, session, 0, Some(full))).await,
        rows
    );
    let without = rest(without_table(&nats, session, 0)).await;
    let numbers: Vec<u32> = without.iter().map(|event| event.session_seq).collect();
    assert_eq!(
        numbers,
        [1, 2, 5, 6],
        "an event that neither stream nor table has is skipped"
    );
}

#[tokio::test]
async fn a_lost_stream_only_delays_a_watcher_with_a_table() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let session = new_session();
    let table = Arc::new(Table::new(vec![event(session, 1)]));
    let mut follower = Follower::start(&nats, session, 0, Some(Arc::clone(&table)));
    assert_eq!(
        next(&mut follower).await,
        TimelineUpdate::Event(event(session, 1))
    );
    jetstream.delete_stream("TARSY_TIMELINE").await.unwrap();
    table.add(end(session, 2));
    assert_eq!(rest(follower).await, [end(session, 2)]);
}

#[tokio::test]
async fn a_stream_that_was_lost_and_filled_again_is_read_again() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let (session, other) = (new_session(), new_session());
    let table = Arc::new(Table::new(
        (1..50)
            .map(|seq| event(other, seq))
            .chain([event(session, 1)])
            .collect(),
    ));
    let feed = feed(&nats, &table);
    feed.drain(other, 49).await.unwrap();
    feed.drain(session, 1).await.unwrap();
    let mut follower = without_table(&nats, session, 0);
    assert_eq!(
        next(&mut follower).await,
        TimelineUpdate::Event(event(session, 1))
    );
    jetstream.delete_stream("TARSY_TIMELINE").await.unwrap();
    nats.ensure_topology(&tarsy_bus::TopologySettings::default())
        .await
        .unwrap();
    table.add(end(session, 2));
    feed.drain(session, 2).await.unwrap();
    assert_eq!(rest(follower).await, [end(session, 2)]);
}

#[tokio::test]
async fn deltas_are_joined_emitted_in_order_and_replaced_by_the_durable_event() {
    let (_server, nats) = prepared().await;
    let session = new_session();
    let table = Arc::new(Table::new(vec![TimelineEvent {
        event_type: EventType::SessionStarted,
        iteration: None,
        ..event(session, 1)
    }]));
    let feed = feed(&nats, &table);
    let mut follower = without_table(&nats, session, 0);
    feed.drain(session, 1).await.unwrap();
    assert!(
        matches!(next(&mut follower).await, TimelineUpdate::Event(_)),
        "the follower receives deltas from here on"
    );

    let mut text = String::new();
    for word in ["The ", "disk ", "is ", "full"] {
        feed.delta(delta(session, 1, 2, text.len() as u64, word));
        text.push_str(word);
    }
    let mut shown = String::new();
    let mut pieces = 0;
    while shown != text {
        match next(&mut follower).await {
            TimelineUpdate::Delta(delta) => {
                assert_eq!(delta.offset, shown.len() as u64);
                shown.push_str(&delta.delta);
                pieces += 1;
            }
            TimelineUpdate::Event(event) => panic!("{event:?}"),
        }
    }
    assert!(pieces < 4, "{pieces} pieces for 4 words sent at once");

    // The durable event of iteration 2 arrives, then a late delta of it, then one of iteration 3.
    table.add(event(session, 2));
    feed.drain(session, 2).await.unwrap();
    assert_eq!(
        next(&mut follower).await,
        TimelineUpdate::Event(event(session, 2))
    );
    feed.delta(delta(session, 1, 2, 16, " late"));
    feed.delta(delta(session, 1, 3, 0, "next"));
    assert_eq!(
        next(&mut follower).await,
        TimelineUpdate::Delta(delta(session, 1, 3, 0, "next"))
    );
}

#[tokio::test]
async fn a_delta_of_a_superseded_worker_is_dropped() {
    let (server, nats) = prepared().await;
    let (client, _) = outsider(&server).await;
    let session = new_session();
    let resumed = TimelineEvent {
        event_type: EventType::SessionResumed,
        iteration: None,
        metadata: json!({"epoch": 2}),
        ..event(session, 1)
    };
    let table = Arc::new(Table::new(vec![resumed.clone()]));
    let feed = feed(&nats, &table);
    feed.drain(session, 1).await.unwrap();
    let mut follower = without_table(&nats, session, 0);
    assert_eq!(next(&mut follower).await, TimelineUpdate::Event(resumed));
    for sent in [
        delta(session, 1, 5, 0, "old"),
        delta(session, 2, 5, 0, "new"),
    ] {
        client
            .publish(
                live_subject(session),
                serde_json::to_vec(&sent).unwrap().into(),
            )
            .await
            .unwrap();
    }
    assert_eq!(
        next(&mut follower).await,
        TimelineUpdate::Delta(delta(session, 2, 5, 0, "new"))
    );
}
