//! Rivals in each order: a lock is held, a second statement waits for it, and decides by what it finds afterwards.

use std::sync::Arc;

use diesel::connection::SimpleConnection;
use tarsy_core::approvals::{Choice, Refusal};
use tarsy_core::execution::entry::ApprovalOutcome;
use tarsy_engine::ports::{
    AskedApproval, CancelOutcome, Claim, Journal, Parking, Sessions, StoreError, Vote, VoteRecord,
    Votes, WaitingCalls,
};
use tarsy_store::{CancelAnswer, ConnectOptions, Store};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::{RESTART, Waiting, asked, closes, vote};
use crate::adapters::store::fixture::{claim_request, running_session, until_blocked};
use crate::adapters::store::writes::sub_agents::dispatch;
use crate::support::postgres::TestDatabase;

/// The changes that a vote makes, by a statement of a rival that is not committed yet.
const A_VOTE: &str = "BEGIN; SELECT 1 FROM alert_sessions FOR NO KEY UPDATE; \
     UPDATE approvals SET outcome = 'approved', outcome_at = clock_timestamp(), votes = 1, decided_by = '{eve}'; \
     UPDATE alert_sessions SET event_seq = event_seq + 1; \
     INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content) \
     SELECT session_id, now(), event_seq, 1, 'approval_decided', 'completed', '' FROM alert_sessions";

#[tokio::test]
async fn a_park_behind_an_uncommitted_vote_writes_nothing() {
    let waiting = Waiting::new().await;
    let seen = waiting.seq().await;
    let parking = waiting.named("parking");
    let mut rival = waiting.database.connection();
    rival.batch_execute(A_VOTE).unwrap();
    let lease = waiting.lease;
    let parked = tokio::spawn(async move { parking.park(lease, seen).await });
    until_blocked(&waiting.database, "parking").await;
    rival.batch_execute("COMMIT").unwrap();
    assert_eq!(parked.await.unwrap(), Ok(Parking::Changed));
    assert!(
        waiting.holds("SELECT lease_owner IS NOT NULL AND lease_epoch = 1 FROM alert_sessions")
    );
}

#[tokio::test]
async fn a_vote_behind_an_uncommitted_park_wakes() {
    let waiting = Waiting::new().await;
    let voting = waiting.named("voting");
    let mut rival = waiting.database.connection();
    // What park.sql changes.
    rival
        .batch_execute(
            "BEGIN; UPDATE alert_sessions SET lease_owner = NULL, lease_epoch = 2, attempts = 0, \
             event_seq = event_seq + 1, lease_expires_at = (SELECT expires_at FROM approvals), \
             deadline_at = (SELECT expires_at FROM approvals) + (deadline_at - clock_timestamp()); \
             INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content) \
             SELECT session_id, now(), event_seq, 2, 'session_waiting', 'completed', '' FROM alert_sessions",
        )
        .unwrap();
    let vote = vote(waiting.request, "ana", Choice::Approve);
    let voted = tokio::spawn(async move { voting.record_vote(vote).await.unwrap() });
    until_blocked(&waiting.database, "voting").await;
    rival.batch_execute("COMMIT").unwrap();
    assert!(voted.await.unwrap().wakes.is_some());
    let claim = waiting
        .store
        .claim(waiting.request.session, claim_request("w2"))
        .await;
    assert!(matches!(claim, Ok(Claim::Taken(_))), "{claim:?}");
}

#[tokio::test]
async fn a_vote_that_waited_for_a_rival_is_refused_by_the_decision_of_the_rival() {
    let waiting = Waiting::new().await;
    let voting = waiting.named("voting");
    let mut rival = waiting.database.connection();
    rival.batch_execute(A_VOTE).unwrap();
    let vote = vote(waiting.request, "ana", Choice::Deny);
    let voted = tokio::spawn(async move { voting.record_vote(vote).await.unwrap() });
    until_blocked(&waiting.database, "voting").await;
    rival.batch_execute("COMMIT").unwrap();
    assert_eq!(voted.await.unwrap().refused, Some(Refusal::Decided));
    assert!(waiting.holds("SELECT outcome = 'approved' AND decided_by = '{eve}' FROM approvals"));
}

#[tokio::test]
async fn an_expiry_behind_an_uncommitted_vote_is_refused() {
    let waiting = Waiting::new().await;
    let mut expires = closes(waiting.execution, 2, ApprovalOutcome::Expired);
    expires.closed[0].seen = Some(waiting.seq().await);
    let closing = waiting.named("closing");
    let mut rival = waiting.database.connection();
    rival.batch_execute(A_VOTE).unwrap();
    let lease = waiting.lease;
    let closed = tokio::spawn(async move { closing.append(lease, expires).await });
    until_blocked(&waiting.database, "closing").await;
    rival.batch_execute("COMMIT").unwrap();
    let closed = closed.await.unwrap();
    assert!(
        matches!(closed, Err(StoreError::Undecided(_))),
        "{closed:?}"
    );
    assert!(waiting.holds("SELECT closed_at IS NULL FROM approvals"));
}

#[tokio::test]
async fn a_vote_behind_an_uncommitted_cancel_is_refused_and_the_cancel_ends_what_waits() {
    let waiting = Waiting::new().await;
    waiting.park().await;
    let voting = waiting.named("voting");
    let mut rival = waiting.database.connection();
    rival
        .batch_execute(
            "BEGIN; UPDATE alert_sessions SET status = 'cancelled', finished_at = clock_timestamp()",
        )
        .unwrap();
    let vote = vote(waiting.request, "ana", Choice::Approve);
    let voted = tokio::spawn(async move { voting.record_vote(vote).await.unwrap() });
    until_blocked(&waiting.database, "voting").await;
    rival.batch_execute("COMMIT").unwrap();
    let record = voted.await.unwrap();
    assert_eq!((record.refused, record.wakes), (Some(Refusal::Ended), None));
}

#[tokio::test]
async fn a_cancel_behind_an_uncommitted_vote_ends_the_session_after_the_vote() {
    let waiting = Waiting::new().await;
    waiting.park().await;
    let cancelling = waiting.named("cancelling");
    let mut rival = waiting.database.connection();
    rival.batch_execute(A_VOTE).unwrap();
    let id = waiting.request.session;
    let cancelled = tokio::spawn(async move { cancelling.cancel(id, None).await });
    until_blocked(&waiting.database, "cancelling").await;
    rival.batch_execute("COMMIT").unwrap();
    assert_eq!(cancelled.await.unwrap(), Ok(CancelOutcome::Cancelled));
    assert!(waiting.holds(
        "SELECT (array_agg(event_type ORDER BY session_seq DESC))[1] = 'session_cancelled' \
         AND count(*) = max(session_seq) FROM timeline_events"
    ));
}

/// A forced cancel waits for a checkpoint that begins a sub-agent: its snapshot does not have the row of the sub-agent.
#[tokio::test]
async fn a_forced_cancel_leaves_no_execution_running_that_a_checkpoint_has_just_begun() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    let options = ConnectOptions {
        application_name: "cancelling".into(),
        ..ConnectOptions::new(database.url())
    };
    let cancelling = Store::new(&options).unwrap();
    let id = lease.session_id;
    // The checkpoint waits for the execution in front of the cancel, so it commits first.
    let mut held = database.connection();
    held.batch_execute("BEGIN; SELECT 1 FROM alert_sessions FOR NO KEY UPDATE")
        .unwrap();
    let writer = {
        let options = ConnectOptions {
            application_name: "writing".into(),
            ..ConnectOptions::new(database.url())
        };
        Store::new(&options).unwrap()
    };
    let begins = dispatch(executions[0], "one");
    let written = tokio::spawn(async move { writer.append(lease, begins).await });
    until_blocked(&database, "writing").await;
    let cancelled = tokio::spawn(async move { cancelling.cancel_unanswered(id).await.unwrap() });
    until_blocked(&database, "cancelling").await;
    held.batch_execute("COMMIT").unwrap();
    written.await.unwrap().unwrap();
    assert_eq!(cancelled.await.unwrap(), CancelAnswer::Cancelled);
    assert_eq!(
        database.number("SELECT count(*) FROM agent_executions WHERE status = 'cancelled'"),
        2
    );
    assert_eq!(
        database.text("SELECT status FROM alert_sessions"),
        "cancelled"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_four_rivals_of_three_people_two_make_the_quorum_and_two_are_refused() {
    for _ in 0..5 {
        let waiting = Waiting::with(AskedApproval {
            quorum: 2,
            ..asked("c1", RESTART)
        })
        .await;
        waiting.park().await;
        let barrier = Arc::new(Barrier::new(4));
        let mut rivals = JoinSet::new();
        for person in ["ana", "ana", "ben", "eve"] {
            let store = waiting.store.clone();
            let barrier = Arc::clone(&barrier);
            let vote = vote(waiting.request, person, Choice::Approve);
            rivals.spawn(async move {
                barrier.wait().await;
                store.record_vote(vote).await.unwrap()
            });
        }
        let records = rivals.join_all().await;
        let count =
            |is: fn(&VoteRecord) -> bool| records.iter().filter(|record| is(record)).count();
        assert_eq!(count(|record| record.refused.is_none()), 2, "{records:?}");
        assert_eq!(count(|record| record.wakes.is_some()), 1, "{records:?}");
        assert!(waiting.holds(
            "SELECT votes = 2 AND outcome = 'approved' AND cardinality(decided_by) = 2 FROM approvals"
        ));
        assert!(waiting.holds("SELECT count(*) = 4 FROM approval_votes"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_deliveries_of_one_vote_at_once_count_once() {
    let waiting = Waiting::new().await;
    waiting.park().await;
    let one: Vote = vote(waiting.request, "ana", Choice::Approve);
    let barrier = Arc::new(Barrier::new(8));
    let mut rivals = JoinSet::new();
    for _ in 0..8 {
        let store = waiting.store.clone();
        let barrier = Arc::clone(&barrier);
        let vote = one.clone();
        rivals.spawn(async move {
            barrier.wait().await;
            store.record_vote(vote).await.unwrap()
        });
    }
    let records = rivals.join_all().await;
    let first = records.iter().filter(|record| !record.is_repeated).count();
    assert_eq!(first, 1, "{records:?}");
    // Each may queue the alert: no worker has claimed it yet.
    assert!(
        records
            .iter()
            .all(|record| record.refused.is_none() && record.wakes.is_some())
    );
    assert!(waiting.holds("SELECT count(*) = 1 FROM approval_votes"));
}
