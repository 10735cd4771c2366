//! A session that waits for people: parked, woken by a decision, found after an expiry.

use std::time::Duration;

use tarsy_core::approvals::Choice;
use tarsy_core::execution::entry::ApprovalOutcome;
use tarsy_engine::ports::{
    Claim, Claimed, Journal, Parking, Renewal, Sessions, StoreError, Sweep, Swept, Votes,
    WaitingCalls,
};
use tarsy_store::Store;

use super::{RESTART, Waiting, asked, asks, closes, request_of, vote};
use crate::adapters::store::fixture::{LEASE, claim_request, running_session};
use crate::adapters::store::lost_replies::store_behind_a_relay;
use crate::support::postgres::TestDatabase;

const SWEEP: Sweep = Sweep {
    interval: Duration::from_secs(15),
    min_age: Duration::from_secs(60),
    limit: 100,
};

async fn taken(store: &Store, waiting: &Waiting) -> Claimed {
    match store
        .claim(waiting.request.session, claim_request("w2"))
        .await
    {
        Ok(Claim::Taken(claimed)) => claimed,
        other => panic!("not taken: {other:?}"),
    }
}

#[tokio::test]
async fn a_parked_session_has_no_owner_and_a_claim_says_that_it_waits() {
    let waiting = Waiting::new().await;
    let id = waiting.request.session;
    waiting.park().await;
    assert!(waiting.holds(
        "SELECT lease_owner IS NULL AND lease_epoch = 2 AND attempts = 0 AND status = 'running' \
         AND release_reason = '2 waiting_for_approval' \
         AND lease_expires_at = (SELECT expires_at FROM approvals) \
         AND deadline_at - lease_expires_at BETWEEN '2300 s' AND '2400 s' FROM alert_sessions"
    ));
    assert!(waiting.holds(
        "SELECT session_seq = event_seq AND event_type = 'session_waiting' AND metadata ? 'until' \
         FROM timeline_events JOIN alert_sessions USING (session_id) ORDER BY session_seq DESC LIMIT 1"
    ));
    assert_eq!(
        waiting.store.claim(id, claim_request("w2")).await,
        Ok(Claim::Waiting)
    );
    let renewals = waiting.store.renew(vec![waiting.lease], LEASE).await;
    assert_eq!(renewals, Ok(vec![Renewal::Lost]));
    let close = closes(waiting.execution, 2, ApprovalOutcome::Denied);
    let written = waiting.store.append(waiting.lease, close).await;
    assert!(
        matches!(written, Err(StoreError::LeaseLost { .. })),
        "{written:?}"
    );
}

#[tokio::test]
async fn the_decision_wakes_a_parked_session_with_its_remaining_time() {
    let waiting = Waiting::new().await;
    waiting.park().await;
    let decision = vote(waiting.request, "ana", Choice::Approve);
    let record = waiting.store.record_vote(decision.clone()).await.unwrap();
    let alert = record.wakes.unwrap();
    assert_eq!(
        (
            alert.alert_id,
            alert.subject.as_str(),
            alert.undecided,
            alert.stream_sequence
        ),
        (waiting.request.session, "tarsy.alerts.high.disk", false, 7)
    );
    assert_eq!(
        alert.body,
        Some(waiting.request.session.to_string().into_bytes())
    );
    // The recorder died before it queued the alert: the vote comes again, and returns it again.
    let again = waiting.store.record_vote(decision.clone()).await.unwrap();
    assert!(again.is_repeated && again.wakes.is_some());

    let claimed = taken(&waiting.store, &waiting).await;
    assert_eq!((claimed.lease.epoch, claimed.attempts), (3, 0));
    assert!(
        claimed.remaining > Duration::from_secs(2_300),
        "{:?}",
        claimed.remaining
    );
    assert!(waiting.holds(
        "SELECT metadata ->> 'release_reason' = 'waiting_for_approval' FROM timeline_events \
         WHERE event_type = 'session_resumed'"
    ));
    let after = waiting.store.record_vote(decision).await.unwrap();
    assert_eq!(
        (after.is_repeated, after.wakes),
        (true, None),
        "it has an owner"
    );
    let start = closes(waiting.execution, 2, ApprovalOutcome::Approved);
    waiting.store.append(claimed.lease, start).await.unwrap();
}

#[tokio::test]
async fn a_vote_that_decides_nothing_does_not_wake() {
    let waiting = Waiting::with(tarsy_engine::ports::AskedApproval {
        quorum: 2,
        ..asked("c1", RESTART)
    })
    .await;
    waiting.park().await;
    assert_eq!(waiting.vote("ana", Choice::Approve).await.wakes, None);
    assert_eq!(
        waiting
            .store
            .claim(waiting.request.session, claim_request("w2"))
            .await,
        Ok(Claim::Waiting)
    );
    assert!(waiting.vote("ben", Choice::Approve).await.wakes.is_some());
}

#[tokio::test]
async fn an_approval_of_a_later_call_of_an_answer_is_stored_and_does_not_wake() {
    let waiting = Waiting::new().await;
    let more = asks(waiting.execution, 2, vec![asked("c2", RESTART)]);
    waiting.store.append(waiting.lease, more).await.unwrap();
    waiting.park().await;
    let later = request_of(&waiting.database, waiting.request.session, "c2");
    let vote = |request| vote(request, "ana", Choice::Approve);
    let record = waiting.store.record_vote(vote(later)).await.unwrap();
    assert_eq!((record.refused, record.wakes), (None, None));
    let record = waiting
        .store
        .record_vote(vote(waiting.request))
        .await
        .unwrap();
    assert!(record.wakes.is_some());
}

#[tokio::test]
async fn a_request_behind_one_that_expired_wakes_and_its_own_expiry_wakes_nothing_before() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    let mut short = asked("c2", RESTART);
    short.timeout = Duration::from_secs(1);
    let calls = vec![asked("c1", RESTART), short];
    store
        .append(lease, asks(executions[0], 1, calls))
        .await
        .unwrap();
    // The time of the later call has passed: the execution waits for the first one.
    database.execute(
        "UPDATE approvals SET expires_at = clock_timestamp() - interval '1 s' WHERE call_id = 'c2'",
    );
    let seen = store.outcomes(lease.session_id).await.unwrap().event_seq;
    assert_eq!(store.park(lease, seen).await, Ok(Parking::Parked));
    assert!(database.holds(
        "SELECT lease_expires_at = (SELECT expires_at FROM approvals WHERE call_id = 'c1') FROM alert_sessions"
    ));
    // The first one was closed without a decision; then a decision about the other one wakes.
    database.execute(
        "UPDATE approvals SET closed_at = now(), closed_as = 'expired' WHERE call_id = 'c1'; \
         UPDATE approvals SET expires_at = clock_timestamp() + interval '1 h' WHERE call_id = 'c2'",
    );
    let later = request_of(&database, lease.session_id, "c2");
    let record = store
        .record_vote(vote(later, "ana", Choice::Deny))
        .await
        .unwrap();
    assert!(record.wakes.is_some());
}

#[tokio::test]
async fn a_park_compares_the_event_number_and_writes_nothing_after_a_change() {
    let waiting = Waiting::new().await;
    let seen = waiting.seq().await;
    waiting.vote("ana", Choice::Approve).await;
    assert_eq!(
        waiting.store.park(waiting.lease, seen).await,
        Ok(Parking::Changed)
    );
    // Nothing is left to wait for.
    let seen = waiting.seq().await;
    assert_eq!(
        waiting.store.park(waiting.lease, seen).await,
        Ok(Parking::Changed)
    );
    assert!(
        waiting.holds("SELECT lease_owner IS NOT NULL AND lease_epoch = 1 FROM alert_sessions")
    );
    let mut other = waiting.lease;
    other.epoch = 0;
    let parked = waiting.store.park(other, seen).await;
    assert!(
        matches!(parked, Err(StoreError::LeaseLost { .. })),
        "{parked:?}"
    );
}

#[tokio::test]
async fn a_session_that_is_cancelled_or_past_its_first_expiry_is_not_parked() {
    let waiting = Waiting::new().await;
    waiting.age(3_601);
    let seen = waiting.seq().await;
    assert_eq!(
        waiting.store.park(waiting.lease, seen).await,
        Ok(Parking::Changed)
    );
    let waiting = Waiting::new().await;
    waiting
        .store
        .request_cancel(waiting.request.session)
        .await
        .unwrap();
    let seen = waiting.seq().await;
    assert_eq!(
        waiting.store.park(waiting.lease, seen).await,
        Ok(Parking::Changed)
    );
}

#[tokio::test]
async fn a_park_whose_reply_was_lost_has_happened_once() {
    let database = TestDatabase::create().await;
    let (relay, store) = store_behind_a_relay(&database).await;
    let (lease, executions) = running_session(&store, 1).await;
    let asks = asks(executions[0], 1, vec![asked("c1", RESTART)]);
    store.append(lease, asks).await.unwrap();
    let seen = store.outcomes(lease.session_id).await.unwrap().event_seq;
    relay.lose_reply_to(lease.session_id.0);
    assert_eq!(store.park(lease, seen).await, Ok(Parking::Parked));
    assert_eq!(
        database
            .number("SELECT count(*) FROM timeline_events WHERE event_type = 'session_waiting'"),
        1
    );
}

#[tokio::test]
async fn the_sweep_ignores_a_parked_session_and_finds_it_after_its_expiry() {
    let waiting = Waiting::new().await;
    waiting.park().await;
    assert_eq!(waiting.store.sweep(SWEEP).await, Ok(vec![]));
    waiting.age(3_500);
    assert_eq!(waiting.store.sweep(SWEEP).await, Ok(vec![]));
    waiting.age(116);
    let swept = waiting.store.sweep(SWEEP).await.unwrap();
    assert!(
        matches!(swept.as_slice(), [Swept::Idle(idle)] if idle.alert_id == waiting.request.session),
        "{swept:?}"
    );
    // The deadline did not count while the session waited.
    let claimed = taken(&waiting.store, &waiting).await;
    let remaining = claimed.remaining.as_secs();
    assert!((2_350..=2_400).contains(&remaining), "{remaining}");
    let seen = waiting.seq().await;
    let mut expired = closes(waiting.execution, 2, ApprovalOutcome::Expired);
    expired.closed[0].seen = Some(seen);
    waiting.store.append(claimed.lease, expired).await.unwrap();
}
