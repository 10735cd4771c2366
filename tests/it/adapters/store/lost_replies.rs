//! A statement whose reply is lost is sent again: its effect happens once.

use std::time::Duration;

use tarsy_core::alert::Severity;
use tarsy_engine::ports::{
    Disposition, Journal, OpenRequest, Opened, Outbox, SessionEnd, Sessions,
};
use tarsy_store::{ConnectOptions, Store};

use super::fixture::{completed, investigated, new_id, open_request, open_session, received};
use crate::proofs::checkpoints::relay::Relay;
use crate::support::postgres::TestDatabase;

pub(crate) async fn store_behind_a_relay(database: &TestDatabase) -> (Relay, Store) {
    let relay = Relay::start(database.url()).await;
    let options = ConnectOptions {
        pool_size: 2,
        ..ConnectOptions::new(relay.url(database.url()))
    };
    let store = Store::new(&options).unwrap();
    (relay, store)
}

#[tokio::test]
async fn a_delivery_and_its_refund_count_once_however_often_they_are_sent() {
    let database = TestDatabase::create().await;
    let (relay, store) = store_behind_a_relay(&database).await;
    let id = new_id();
    for attempts in 1..=3 {
        relay.lose_reply_to(id.0);
        assert_eq!(
            store.receive(received(id, b"one")).await,
            Ok(Disposition::Undecided { attempts })
        );
    }
    relay.lose_reply_to(id.0);
    store.refund_attempt(id).await.unwrap();
    assert!(database.holds("SELECT attempts = 2 AND deliveries = 3 FROM alerts"));
    assert_eq!(
        store.receive(received(id, b"one")).await,
        Ok(Disposition::Undecided { attempts: 3 })
    );
    for _ in 0..5 {
        store.refund_attempt(id).await.unwrap();
    }
    assert_eq!(database.number("SELECT attempts::bigint FROM alerts"), 0);
    assert_eq!(
        store.receive(received(id, b"another body")).await,
        Ok(Disposition::UsedId)
    );
    assert_eq!(
        store.receive(received(id, b"one")).await,
        Ok(Disposition::Undecided { attempts: 1 })
    );

    // The alert is decided: a delivery is still counted, and no attempt.
    store.open(open_request(id, "fp")).await.unwrap();
    assert_eq!(
        store.receive(received(id, b"one")).await,
        Ok(Disposition::Opened)
    );
    store.refund_attempt(id).await.unwrap();
    store.refund_attempt(new_id()).await.unwrap();
    assert!(database.holds("SELECT attempts = 1 AND deliveries = 6 FROM alerts"));
}

#[tokio::test]
async fn an_alert_whose_disposition_was_not_received_finds_it_again() {
    let database = TestDatabase::create().await;
    let (relay, store) = store_behind_a_relay(&database).await;
    let target = investigated(&store, "fp", Severity::High, completed()).await;
    let (late, forced, joining) = (new_id(), new_id(), new_id());
    for id in [late, forced, joining] {
        store
            .receive(received(id, id.to_string().as_bytes()))
            .await
            .unwrap();
    }
    let request = |id| OpenRequest {
        cooldown: Duration::from_secs(3600),
        ..open_request(id, "fp")
    };
    relay.lose_reply_to(late.0);
    assert_eq!(
        store.open(request(late)).await,
        Ok(Opened::CoveredByCooldown(target))
    );
    relay.lose_reply_to(forced.0);
    let again = OpenRequest {
        force: true,
        ..request(forced)
    };
    assert!(
        matches!(store.open(again).await, Ok(Opened::Session(claimed)) if claimed.lease.epoch == 1)
    );
    relay.lose_reply_to(joining.0);
    assert_eq!(
        store.open(request(joining)).await,
        Ok(Opened::Joined(forced))
    );
    for (id, events) in [(late, 1), (joining, 1), (forced, 2), (target, 2)] {
        assert_eq!(store.events(id, 0, 10).await.unwrap().len(), events);
    }
}

#[tokio::test]
async fn an_end_whose_reply_was_lost_has_its_summary_and_its_last_event_once() {
    let database = TestDatabase::create().await;
    let (relay, store) = store_behind_a_relay(&database).await;
    let id = new_id();
    let lease = open_session(&store, id, "fp").await.lease;
    relay.lose_reply_to(id.0);
    let end = SessionEnd {
        executive_summary: Some("Cause: logs".into()),
        ..completed()
    };
    store.finish(lease, end).await.unwrap();
    let events = store.events(id, 1, 10).await.unwrap();
    let seen: Vec<_> = events
        .iter()
        .map(|event| (event.event_type.as_str(), event.content.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            ("executive_summary", "Cause: logs"),
            ("session_completed", "done")
        ]
    );
    assert_eq!(
        events[1].metadata,
        serde_json::json!({"tokens": 16, "stop_reason": "final_answer"})
    );
    assert!(
        database.holds(
            "SELECT event_seq = 3 AND executive_summary = 'Cause: logs' FROM alert_sessions"
        )
    );
}

#[tokio::test]
async fn a_sequence_whose_confirmation_was_lost_is_stored() {
    let database = TestDatabase::create().await;
    let (relay, store) = store_behind_a_relay(&database).await;
    let id = new_id();
    open_session(&store, id, "fp").await;
    relay.lose_reply_to(id.0);
    store.requeued(id, 4711).await.unwrap();
    assert_eq!(database.number("SELECT stream_sequence FROM alerts"), 4711);
    assert!(store.requeued(new_id(), 1).await.is_err());
}
