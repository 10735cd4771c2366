//! Tests of the effect of an alert's status: acknowledged, test, ignored, and a resolution that is too old or
//! cancels.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tarsy_core::alert::AlertStatus;
use tarsy_core::alert::policy::{OnAcknowledged, OnResolved};
use tarsy_core::alert_update::Change;
use tarsy_core::execution::entry::StopReason;
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{
    Journal, OpenRequest, Opened, Outbox, Renewal, RunStatus, SessionEnd, Sessions,
};
use tarsy_store::{CancelAnswer, Store};

use super::summaries;
use crate::adapters::store::fixture::{completed, new_id, open_request, received};
use crate::support::postgres::TestDatabase;

fn request(status: AlertStatus) -> OpenRequest {
    let mut request = open_request(new_id(), "fp");
    request.alert.status = status;
    request
}

/// The same at this second, by the clock of the sender.
fn at(second: i64, request: OpenRequest) -> OpenRequest {
    let mut request = request;
    request.alert.at = DateTime::<Utc>::from_timestamp(1_764_000_000 + second, 0);
    request
}

async fn open(store: &Store, request: OpenRequest) -> Opened {
    let id = request.alert_id;
    store
        .receive(received(id, id.to_string().as_bytes()))
        .await
        .unwrap();
    store.open(request).await.unwrap()
}

async fn opened(store: &Store, request: OpenRequest) -> SessionId {
    let Opened::Session(claimed) = open(store, request).await else {
        panic!("not opened")
    };
    claimed.lease.session_id
}

/// The last event of an alert or a session.
async fn last(store: &Store, id: SessionId) -> (String, String, Value) {
    let event = store.events(id, 0, 100).await.unwrap().pop().unwrap();
    (
        event.event_type.as_str().to_owned(),
        event.content,
        event.metadata,
    )
}

#[tokio::test]
async fn only_the_first_acknowledgement_has_an_event_and_changes_nothing() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let session = opened(&store, request(AlertStatus::Firing)).await;
    let first = request(AlertStatus::Acknowledged);
    let id = first.alert_id;
    assert_eq!(open(&store, first).await, Opened::Joined(session));
    for _ in 0..3 {
        assert_eq!(
            open(&store, request(AlertStatus::Acknowledged)).await,
            Opened::Joined(session)
        );
    }
    let events = store.events(session, 1, 10).await.unwrap();
    assert_eq!(
        summaries(&events),
        [(
            2,
            "alert_acknowledged",
            json!({"alert_id": id, "severity": "high"})
        )]
    );
    let counts = "SELECT (joined_alerts + resolved_alerts + updates)::bigint FROM alert_sessions";
    assert_eq!(database.number(counts), 0);
}

#[tokio::test]
async fn rivals_that_are_acknowledged_have_one_event() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let session = opened(&store, request(AlertStatus::Firing)).await;
    let mut rivals = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let store = store.clone();
        rivals.spawn(async move { open(&store, request(AlertStatus::Acknowledged)).await });
    }
    let joined = rivals.join_all().await;
    assert!(
        joined
            .iter()
            .all(|opened| *opened == Opened::Joined(session)),
        "{joined:?}"
    );
    let events = store.events(session, 0, 100).await.unwrap();
    assert_eq!(
        events
            .iter()
            .map(|event| event.session_seq)
            .collect::<Vec<_>>(),
        [1, 2]
    );
}

#[tokio::test]
async fn an_acknowledged_alert_is_investigated_only_if_operators_want_it() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let ends = request(AlertStatus::Acknowledged);
    let id = ends.alert_id;
    assert_eq!(open(&store, ends).await, Opened::NotInvestigated);
    let (kind, content, metadata) = last(&store, id).await;
    assert_eq!(
        (kind.as_str(), content.as_str()),
        ("session_completed", "acknowledged: a person has it")
    );
    assert_eq!(
        (&metadata["stop_reason"], &metadata["status"]),
        (&json!("not_investigated"), &json!("acknowledged"))
    );
    let on_acknowledged = OnAcknowledged::Investigate;
    let session = opened(
        &store,
        OpenRequest {
            on_acknowledged,
            ..request(AlertStatus::Acknowledged)
        },
    )
    .await;
    assert_eq!(
        open(&store, request(AlertStatus::Firing)).await,
        Opened::Joined(session)
    );
}

#[tokio::test]
async fn a_test_and_an_ignored_alert_end_beside_an_open_session() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let session = opened(&store, request(AlertStatus::Firing)).await;
    let mut ignored = request(AlertStatus::Ignored);
    ignored.alert.ignored_because = Some("a note".to_owned());
    for (request, content) in [
        (request(AlertStatus::Test), "test of json arrived"),
        (ignored, "ignored: a note"),
    ] {
        let id = request.alert_id;
        assert_eq!(open(&store, request.clone()).await, Opened::NotInvestigated);
        assert_eq!(
            store.open(request).await.unwrap(),
            Opened::NotInvestigated,
            "sent again after a lost reply"
        );
        assert_eq!(last(&store, id).await.1, content);
        let report = store.report(id).await.unwrap().unwrap();
        assert_eq!(report.dead_detail.as_deref(), Some(content));
    }
    assert_eq!(last(&store, session).await.0, "session_started");
}

#[tokio::test]
async fn a_resolution_that_is_older_than_the_last_firing_is_only_noted() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let session = opened(&store, at(10, request(AlertStatus::Firing))).await;
    assert_eq!(
        open(&store, at(30, request(AlertStatus::Firing))).await,
        Opened::Joined(session)
    );
    assert_eq!(
        open(&store, at(20, request(AlertStatus::Firing))).await,
        Opened::Joined(session)
    );
    let late = at(25, request(AlertStatus::Resolved));
    let id = late.alert_id;
    assert_eq!(open(&store, late).await, Opened::Joined(session));
    let (kind, _, metadata) = last(&store, session).await;
    assert_eq!(
        (kind.as_str(), &metadata["outdated"]),
        ("alert_joined", &json!(true))
    );
    let (kind, content, _) = last(&store, id).await;
    let expected = "joined an open investigation, but it was resolved before that alert fired last";
    assert_eq!((kind.as_str(), content.as_str()), ("joined", expected));
    assert_eq!(
        database.number("SELECT (updates + resolved_alerts)::bigint FROM alert_sessions"),
        0
    );

    let updated = Opened::Updated {
        session,
        changes: vec![Change::Resolved],
    };
    assert_eq!(
        open(&store, at(30, request(AlertStatus::Resolved))).await,
        updated,
        "not older"
    );
    let unknown = request(AlertStatus::Resolved);
    assert_eq!(open(&store, unknown).await, Opened::Joined(session));
    assert_eq!(
        last(&store, session).await.0,
        "alert_resolved",
        "without a time it counts"
    );
}

fn cancelling() -> OpenRequest {
    let mut request = request(AlertStatus::Firing);
    request.plan.on_resolved = OnResolved::Cancel;
    request
}

#[tokio::test]
async fn a_resolved_alert_cancels_a_session_whose_plan_wants_it() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let Opened::Session(claimed) = open(&store, at(10, cancelling())).await else {
        panic!("not opened")
    };
    let lease = claimed.lease;
    open(&store, at(5, request(AlertStatus::Resolved))).await;
    let renewed = |cancelled: bool| move |renewal: &Renewal| matches!(renewal, Renewal::Renewed { cancel_requested, .. } if *cancel_requested == cancelled);
    let period = std::time::Duration::from_secs(30);
    assert!(
        store
            .renew(vec![lease], period)
            .await
            .unwrap()
            .iter()
            .all(renewed(false)),
        "an older resolution"
    );
    open(&store, at(15, request(AlertStatus::Resolved))).await;
    assert!(
        store
            .renew(vec![lease], period)
            .await
            .unwrap()
            .iter()
            .all(renewed(true))
    );
    let waits = open(&store, request(AlertStatus::Firing)).await;
    assert_eq!(waits, Opened::TargetCancelling(lease.session_id));

    let event = RunStatus::Cancelled.end_event("Investigation cancelled".to_owned(), json!({}));
    let (status, reason) = (RunStatus::Cancelled, StopReason::Cancelled);
    let end = SessionEnd {
        status,
        reason,
        final_analysis: None,
        executive_summary: None,
        event,
        ..completed()
    };
    store.finish(lease, end).await.unwrap();
    let (kind, content, metadata) = last(&store, lease.session_id).await;
    assert_eq!(
        (kind.as_str(), content.as_str()),
        (
            "session_cancelled",
            "Investigation cancelled: its alert is resolved"
        )
    );
    assert_eq!(metadata["cancel_reason"], "alert_resolved");
}

#[tokio::test]
async fn a_session_without_an_owner_ends_with_the_reason_of_its_cancellation() {
    let database = TestDatabase::create().await;
    let store = database.store();
    for (is_over, content) in [
        (false, "Investigation cancelled"),
        (true, "Investigation cancelled: its alert is resolved"),
    ] {
        let session = opened(&store, cancelling()).await;
        if is_over {
            open(&store, request(AlertStatus::Resolved)).await;
        }
        database.execute("UPDATE alert_sessions SET lease_expires_at = now() - interval '1 s'");
        assert_eq!(
            store.request_cancel(session).await.unwrap(),
            CancelAnswer::Cancelled
        );
        assert_eq!(last(&store, session).await.1, content);
    }
}
