//! Cancels, joins and recoveries of sessions that wait for people; old workers beside them.

use tarsy_core::alert::AlertStatus;
use tarsy_core::alert::policy::OnResolved;
use tarsy_core::approvals::Choice;
use tarsy_core::plan::{APPROVALS_VERSION, WhenResolved};
use tarsy_engine::ports::{
    AskedApproval, Claim, Journal, Lease, OpenRequest, Opened, Sessions, StoreError,
};
use tarsy_store::{CancelAnswer, Store};

use super::{RESTART, Waiting, asked};
use crate::adapters::store::fixture::{
    checkpoint, claim_request, new_id, open_request, received, settled,
};

#[tokio::test]
async fn a_session_that_waits_is_cancelled_at_once_and_one_with_an_owner_is_asked() {
    let waiting = Waiting::new().await;
    let id = waiting.request.session;
    assert_eq!(
        waiting.store.request_cancel(id).await.unwrap(),
        CancelAnswer::Requested
    );
    let waiting = Waiting::new().await;
    let id = waiting.request.session;
    waiting.park().await;
    assert_eq!(
        waiting.store.request_cancel(id).await.unwrap(),
        CancelAnswer::Cancelled
    );
    assert!(waiting.holds(
        "SELECT status = 'cancelled' AND lease_epoch = 3 AND (SELECT bool_and(status = 'cancelled') \
         FROM agent_executions) FROM alert_sessions"
    ));
    let claim = waiting.store.claim(id, claim_request("w2")).await;
    assert_eq!(claim, Ok(Claim::Ended { settled: false }));
    settled(&waiting.store, id).await.unwrap();
}

/// Sends a resolution of the session's alert, as a worker does: again with the judgement of the core.
pub(super) async fn resolve(store: &Store, waiting: &Waiting) -> Opened {
    let id = new_id();
    store
        .receive(received(id, id.to_string().as_bytes()))
        .await
        .unwrap();
    let fingerprint = waiting
        .database
        .text("SELECT fingerprint FROM alert_sessions");
    let mut request: OpenRequest = open_request(id, &fingerprint);
    request.alert.status = AlertStatus::Resolved;
    store.open(request).await.unwrap()
}

#[tokio::test]
async fn a_resolution_wakes_what_waits_for_a_request_that_it_withdraws() {
    let waiting = Waiting::new().await;
    waiting.park().await;
    let before = waiting.seq().await;
    let opened = resolve(&waiting.store, &waiting).await;
    assert!(matches!(opened, Opened::Updated { .. }), "{opened:?}");
    assert_eq!(waiting.seq().await, before + 1);
    assert!(waiting.holds(
        "SELECT lease_expires_at <= clock_timestamp() AND cancel_requested_at IS NULL \
         AND deadline_at - lease_expires_at BETWEEN '2300 s' AND '2400 s' FROM alert_sessions"
    ));
    let claim = waiting
        .store
        .claim(waiting.request.session, claim_request("w2"))
        .await;
    assert!(matches!(claim, Ok(Claim::Taken(_))), "{claim:?}");
}

#[tokio::test]
async fn a_resolution_does_not_wake_what_waits_for_a_request_that_it_keeps() {
    let waiting = Waiting::with(AskedApproval {
        on_resolved: WhenResolved::Keep,
        ..asked("c1", RESTART)
    })
    .await;
    waiting.park().await;
    resolve(&waiting.store, &waiting).await;
    let claim = waiting
        .store
        .claim(waiting.request.session, claim_request("w2"))
        .await;
    assert_eq!(claim, Ok(Claim::Waiting));
    // A person who did not see the resolution cannot approve; a denial counts.
    let refused = waiting.vote("ana", Choice::Approve).await.refused;
    assert_eq!(refused, Some(tarsy_core::approvals::Refusal::Changed));
    assert!(waiting.vote("ana", Choice::Deny).await.wakes.is_some());
}

#[tokio::test]
async fn a_resolution_that_cancels_wakes_what_waits() {
    let waiting = Waiting::with(AskedApproval {
        on_resolved: WhenResolved::Keep,
        ..asked("c1", RESTART)
    })
    .await;
    let word = serde_json::to_string(&OnResolved::Cancel).unwrap();
    waiting.database.execute(&format!(
        "UPDATE session_plans SET plan = jsonb_set(plan, '{{on_resolved}}', '{word}')"
    ));
    waiting.park().await;
    resolve(&waiting.store, &waiting).await;
    let claim = waiting
        .store
        .claim(waiting.request.session, claim_request("w2"))
        .await;
    assert!(
        matches!(&claim, Ok(Claim::Taken(claimed)) if claimed.cancel_requested),
        "{claim:?}"
    );
}

#[tokio::test]
async fn the_eleventh_resolution_has_an_event_if_it_is_an_update() {
    let waiting = Waiting::new().await;
    waiting
        .database
        .execute("UPDATE alert_sessions SET resolved_alerts = 10");
    let seen = waiting.seq().await;
    let opened = resolve(&waiting.store, &waiting).await;
    assert!(matches!(opened, Opened::Updated { .. }), "{opened:?}");
    let parked = tarsy_engine::ports::WaitingCalls::park(&waiting.store, waiting.lease, seen).await;
    assert_eq!(parked, Ok(tarsy_engine::ports::Parking::Changed));
}

#[tokio::test]
async fn a_worker_that_does_not_know_the_plan_finds_it_incompatible_also_while_it_waits() {
    let waiting = Waiting::new().await;
    waiting.park().await;
    // As the plan is written: this worker knows it, one of the version before compares with a smaller number.
    assert!(i64::from(tarsy_core::plan::NEWEST_VERSION) >= i64::from(APPROVALS_VERSION));
    waiting.database.execute(&format!(
        "UPDATE session_plans SET format_version = {}",
        tarsy_core::plan::NEWEST_VERSION + 1
    ));
    let claim = waiting
        .store
        .claim(waiting.request.session, claim_request("w2"))
        .await;
    assert_eq!(claim, Ok(Claim::Incompatible));
    let cancelled = waiting.store.request_cancel(waiting.request.session).await;
    assert_eq!(cancelled.unwrap(), CancelAnswer::Cancelled);
}

#[tokio::test]
async fn a_superseded_owner_cannot_ask() {
    let waiting = Waiting::new().await;
    waiting.park().await;
    let stale: Lease = waiting.lease;
    let written = waiting
        .store
        .append(stale, checkpoint(waiting.execution, 2))
        .await;
    assert!(
        matches!(written, Err(StoreError::LeaseLost { .. })),
        "{written:?}"
    );
}
