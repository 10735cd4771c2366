//! Tests of alerts in the store until their disposition: received, opened, joined, ended, given up and settled.

mod limits;
mod statuses;

use serde_json::json;
use tarsy_core::alert::{Alert, AlertStatus};
use tarsy_core::alert_update::Change;
use tarsy_core::timeline::TimelineEvent;
use tarsy_engine::ports::{
    DeadLetter, DeadReason, Disposition, Journal, OpenRequest, Opened, Outbox, Refusal, Sessions,
    SettlementStatus, StoreError, StoredMessage,
};
use tarsy_store::{CancelAnswer, IdMatch, SessionFilter};

use super::fixture::{alert, completed, new_id, open_request, open_session, received, settled};
use crate::support::postgres::TestDatabase;

fn summaries(events: &[TimelineEvent]) -> Vec<(u32, &str, serde_json::Value)> {
    events
        .iter()
        .map(|e| (e.session_seq, e.event_type.as_str(), e.metadata.clone()))
        .collect()
}

fn refusal(reason: DeadReason) -> Refusal {
    Refusal {
        reason,
        detail: "byte 0 is not UTF-8".into(),
    }
}

fn resolved(fingerprint: &str, request: OpenRequest) -> OpenRequest {
    OpenRequest {
        alert: Alert {
            status: AlertStatus::Resolved,
            ..alert(fingerprint)
        },
        ..request
    }
}

#[tokio::test]
async fn each_delivery_is_counted_and_another_body_under_the_id_is_reported() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let id = new_id();
    assert_eq!(
        store.receive(received(id, b"one")).await,
        Ok(Disposition::Undecided { attempts: 1 })
    );
    assert_eq!(
        store.receive(received(id, b"two")).await,
        Ok(Disposition::UsedId)
    );
    assert_eq!(
        store.receive(received(id, b"one")).await,
        Ok(Disposition::Undecided { attempts: 2 })
    );
    assert!(database.holds("SELECT raw = 'one' AND stream_sequence = 7 FROM alerts"));
}

#[tokio::test]
async fn a_later_delivery_finds_the_session_that_its_alert_opened() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let id = new_id();
    assert_eq!(
        store.receive(received(id, b"one")).await,
        Ok(Disposition::Undecided { attempts: 1 })
    );
    let request = open_request(id, "fp");
    let Ok(Opened::Session(claimed)) = store.open(request.clone()).await else {
        panic!("not opened")
    };
    assert_eq!(
        (claimed.lease.epoch, claimed.lease.token, claimed.attempts),
        (1, request.token, 0)
    );
    assert!(
        claimed.remaining.as_secs() > 2390 && claimed.remaining.as_secs() <= 2400,
        "{:?}",
        claimed.remaining
    );

    // After a lost reply the same request finds its own session; a request of another worker lost the race.
    let Ok(Opened::Session(again)) = store.open(request).await else {
        panic!("not found again")
    };
    assert_eq!(again.lease, claimed.lease);
    assert_eq!(store.open(open_request(id, "fp")).await, Ok(Opened::Raced));
    assert_eq!(
        store.receive(received(id, b"one")).await,
        Ok(Disposition::Opened)
    );

    let events = store.events(id, 0, 10).await.unwrap();
    assert_eq!(
        summaries(&events),
        [(1, "session_started", json!({"worker": "w1"}))]
    );
    assert_eq!(store.load(id).await.unwrap().plan, super::fixture::plan());
}

#[tokio::test]
async fn an_alert_of_the_same_fingerprint_joins_the_open_session() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (open, late, over) = (new_id(), new_id(), new_id());
    open_session(&store, open, "fp").await;
    store.receive(received(late, b"late")).await.unwrap();
    assert_eq!(
        store.open(open_request(late, "fp")).await,
        Ok(Opened::Joined(open))
    );
    assert_eq!(
        store.open(open_request(late, "fp")).await,
        Ok(Opened::Joined(open))
    );
    assert_eq!(
        store.receive(received(late, b"late")).await,
        Ok(Disposition::Joined(open))
    );
    store.receive(received(over, b"over")).await.unwrap();
    let updated = Opened::Updated {
        session: open,
        changes: vec![Change::Resolved],
    };
    assert_eq!(
        store.open(resolved("fp", open_request(over, "fp"))).await,
        Ok(updated)
    );

    let events = store.events(open, 1, 10).await.unwrap();
    let joined = |alert| json!({"alert_id": alert, "severity": "high"});
    let resolution = json!({"alert_id": over, "severity": "high", "update": 1});
    assert_eq!(
        summaries(&events),
        [
            (2, "alert_joined", joined(late)),
            (3, "alert_resolved", resolution)
        ]
    );
    let own = store.events(late, 0, 10).await.unwrap();
    assert_eq!(
        summaries(&own),
        [(
            1,
            "joined",
            json!({"joined_session_id": open, "fingerprint": "fp"})
        )]
    );
    let status = store.standing(late).await.unwrap();
    assert_eq!(
        status,
        SettlementStatus {
            over: true,
            settled: false,
            last_seq: 1,
            owes: None,
            ..status.clone()
        }
    );
    assert_eq!(
        store.request_cancel(late).await.unwrap(),
        CancelAnswer::Joined(open)
    );
}

#[tokio::test]
async fn from_the_tenth_join_on_only_some_joins_have_an_event() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let open = new_id();
    open_session(&store, open, "fp").await;
    let mut joined = Vec::new();
    for firing in [true; 60].into_iter().chain([false; 11]) {
        let id = new_id();
        store.receive(received(id, b"storm")).await.unwrap();
        let request = open_request(id, "fp");
        let request = if firing {
            request
        } else {
            resolved("fp", request)
        };
        let opened = store.open(request.clone()).await;
        let is_new = !firing && joined.len() == 60;
        assert_eq!(
            matches!(opened, Ok(Opened::Updated { .. })),
            is_new,
            "{opened:?}"
        );
        assert_eq!(
            store.open(request).await,
            Ok(Opened::Joined(open)),
            "a repeated request is not counted again"
        );
        joined.push(id);
    }
    let events = store.events(open, 1, 100).await.unwrap();
    let numbers: Vec<u32> = events.iter().map(|event| event.session_seq).collect();
    assert_eq!(numbers, (2..=23).collect::<Vec<_>>(), "without a gap");
    let counts = (1..10)
        .chain([10, 20, 50])
        .map(|n| ("alert_joined", n, joined[n - 1]));
    let counts = counts.chain((1..=10).map(|n| ("alert_resolved", n, joined[59 + n])));
    let expected: Vec<(&str, serde_json::Value)> = counts
        .map(|(kind, count, id)| match count {
            10.. => (
                kind,
                json!({"alert_id": id, "severity": "high", "count": count}),
            ),
            1 if kind == "alert_resolved" => (
                kind,
                json!({"alert_id": id, "severity": "high", "update": 1}),
            ),
            _ => (kind, json!({"alert_id": id, "severity": "high"})),
        })
        .collect();
    let found: Vec<_> = summaries(&events)
        .into_iter()
        .map(|(_, kind, metadata)| (kind, metadata))
        .collect();
    assert_eq!(found, expected);
    assert!(database.holds(
        "SELECT event_seq = 23 AND joined_alerts = 60 AND resolved_alerts = 11 FROM alert_sessions"
    ));
    assert_eq!(
        database.number("SELECT count(*) FROM alerts WHERE place = 'joined'"),
        71,
        "every alert has its disposition"
    );
}

#[tokio::test]
async fn a_resolved_alert_without_an_open_session_ends_at_once() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let id = new_id();
    store.receive(received(id, b"over")).await.unwrap();
    let request = resolved("fp", open_request(id, "fp"));
    assert_eq!(
        store.open(request.clone()).await,
        Ok(Opened::NotInvestigated)
    );
    assert_eq!(store.open(request).await, Ok(Opened::NotInvestigated));
    assert_eq!(
        store.receive(received(id, b"over")).await,
        Ok(Disposition::Ended)
    );
    let events = store.events(id, 0, 10).await.unwrap();
    let end = json!({
        "stop_reason": "not_investigated", "title": "disk full on db-1", "severity": "high", "status": "resolved",
    });
    assert_eq!(
        summaries(&events),
        [(1, "session_completed", end)],
        "the event has the title of the alert"
    );
    assert_eq!(database.number("SELECT count(*) FROM alert_sessions"), 0);
}

#[tokio::test]
async fn no_alert_joins_a_session_that_is_being_cancelled() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (open, late) = (new_id(), new_id());
    let lease = open_session(&store, open, "fp").await.lease;
    assert_eq!(
        store.request_cancel(open).await.unwrap(),
        CancelAnswer::Requested
    );
    store.receive(received(late, b"late")).await.unwrap();
    assert_eq!(
        store.open(open_request(late, "fp")).await,
        Ok(Opened::TargetCancelling(open))
    );
    assert_eq!(
        store.receive(received(late, b"late")).await,
        Ok(Disposition::Undecided { attempts: 2 })
    );
    assert!(
        database.holds(
            "SELECT count(*) = 1 AND max(event_seq) = 1 FROM alert_sessions, timeline_events"
        )
    );
    store.finish(lease, completed()).await.unwrap();
    assert!(matches!(
        store.open(open_request(late, "fp")).await,
        Ok(Opened::Session(_))
    ));
}

#[tokio::test]
async fn an_alert_that_was_given_up_has_a_pending_dead_letter_until_settled() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let id = new_id();
    store.receive(received(id, b"\xff\0")).await.unwrap();
    assert!(matches!(
        settled(&store, id).await,
        Err(StoreError::Conflict(_))
    ));
    store
        .give_up(id, refusal(DeadReason::Undecodable))
        .await
        .unwrap();
    store
        .give_up(id, refusal(DeadReason::Undecodable))
        .await
        .unwrap();
    assert_eq!(
        store.receive(received(id, b"\xff\0")).await,
        Ok(Disposition::Dead(DeadReason::Undecodable))
    );
    let owed = DeadLetter {
        alert_id: id,
        reason: DeadReason::Undecodable,
        detail: "byte 0 is not UTF-8".into(),
        body: b"\xff\0".to_vec(),
        headers: json!({"Tarsy-Alert-Type": "disk"}),
        subject: "tarsy.alerts.high.disk".into(),
        stream_sequence: 7,
        deliveries: 2,
    };
    let status = store.standing(id).await.unwrap();
    let expected = SettlementStatus {
        over: true,
        settled: false,
        last_seq: 1,
        last_event: None,
        message: StoredMessage {
            headers: owed.headers.clone(),
            subject: owed.subject.clone(),
        },
        owes: Some(owed),
    };
    assert_eq!(status, expected);
    let events = store.events(id, 0, 10).await.unwrap();
    assert_eq!(
        summaries(&events),
        [(1, "session_failed", json!({"dead_letter": "undecodable"}))]
    );

    settled(&store, id).await.unwrap();
    settled(&store, id).await.unwrap();
    let status = store.standing(id).await.unwrap();
    assert_eq!(
        status,
        SettlementStatus {
            over: true,
            settled: true,
            last_seq: 1,
            owes: None,
            ..status.clone()
        }
    );
    assert!(database.holds("SELECT raw IS NULL AND settled_at IS NOT NULL FROM alerts"));
}

#[tokio::test]
async fn a_decided_alert_cannot_be_given_up() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let id = new_id();
    open_session(&store, id, "fp").await;
    assert!(matches!(
        store.give_up(id, refusal(DeadReason::Empty)).await,
        Err(StoreError::Conflict(_))
    ));
    assert!(matches!(
        store.give_up(new_id(), refusal(DeadReason::Empty)).await,
        Err(StoreError::Conflict(_))
    ));
}

#[tokio::test]
async fn an_id_is_found_by_either_end() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (a, b) = (new_id(), new_id());
    open_session(&store, a, "fp-a").await;
    open_session(&store, b, "fp-b").await;
    assert_eq!(store.resolve(&a.short()).await.unwrap(), IdMatch::One(a));
    assert_eq!(
        store.resolve(&b.to_string()).await.unwrap(),
        IdMatch::One(b)
    );
    let shared = &a.to_string()[..6];
    assert_eq!(
        store.resolve(shared).await.unwrap(),
        IdMatch::Many(vec![b, a])
    );
    assert_eq!(store.resolve("ffffffffff").await.unwrap(), IdMatch::None);
    assert_eq!(store.resolve("%%%%%%%").await.unwrap(), IdMatch::Invalid);
    let listed = store
        .list_sessions(SessionFilter {
            limit: 10,
            ..SessionFilter::default()
        })
        .await
        .unwrap();
    assert_eq!(
        listed.iter().map(|s| s.session_id).collect::<Vec<_>>(),
        [b, a]
    );
    assert_eq!(
        store.report(a).await.unwrap().unwrap().title.as_deref(),
        Some("disk full on db-1")
    );
    assert_eq!(store.report(new_id()).await.unwrap(), None);
}
