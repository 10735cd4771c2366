//! The feed publishes what its own process commits without a read of the table.

use std::sync::Arc;

use tarsy_core::timeline::TimelineEvent;
use tarsy_engine::ports::{EventIdentity, Feed};

use super::super::table::{Table, event, new_session, on_stream, until_on_stream};
use super::super::{feed, outsider, prepared, within};

#[tokio::test]
async fn committed_events_are_published_without_a_read_of_the_table() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let session = new_session();
    let table = Arc::new(Table::new(vec![event(session, 1)]));
    let feed = feed(&nats, &table);
    feed.notify(session);
    within("the first event", until_on_stream(&jetstream, session, 1)).await;
    let reads = table.reads();
    for seq in 2..=20 {
        table.commit(event(session, seq));
        feed.committed(session);
        within(
            "the event",
            until_on_stream(&jetstream, session, seq as usize),
        )
        .await;
    }
    assert!(
        feed.has_published(session, &EventIdentity::new(&event(session, 20)))
            .await
    );
    assert_eq!(
        on_stream(&jetstream, session).await,
        (1..=20).map(|seq| event(session, seq)).collect::<Vec<_>>()
    );
    assert_eq!(table.reads(), reads);
    feed.close().await;
}

#[tokio::test]
async fn a_gap_in_what_was_committed_is_filled_from_the_table() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let session = new_session();
    let table = Arc::new(Table::new(vec![event(session, 1)]));
    let feed = feed(&nats, &table);
    feed.notify(session);
    within("the first event", until_on_stream(&jetstream, session, 1)).await;
    // Another worker has written event 2, without a notification.
    table.add(event(session, 2));
    table.commit(event(session, 3));
    within("all events", until_on_stream(&jetstream, session, 3)).await;
    assert_eq!(
        on_stream(&jetstream, session).await,
        (1..=3).map(|seq| event(session, seq)).collect::<Vec<_>>()
    );
    feed.close().await;
}

#[tokio::test]
async fn another_event_with_a_published_number_is_not_published() {
    let (server, nats) = prepared().await;
    let (_, jetstream) = outsider(&server).await;
    let session = new_session();
    let table = Arc::new(Table::new(vec![event(session, 1), event(session, 2)]));
    let feed = feed(&nats, &table);
    feed.notify(session);
    within("two events", until_on_stream(&jetstream, session, 2)).await;
    // The database has lost event 2 and gives its number to another one.
    let other = TimelineEvent {
        created_at: event(session, 9).created_at,
        ..event(session, 2)
    };
    table.replace(vec![event(session, 1)]);
    table.commit(other.clone());
    table.commit(event(session, 3));
    assert!(
        !feed
            .has_published(session, &EventIdentity::new(&event(session, 3)))
            .await
    );
    assert_eq!(
        on_stream(&jetstream, session).await,
        [event(session, 1), event(session, 2)]
    );
    feed.close().await;
}
