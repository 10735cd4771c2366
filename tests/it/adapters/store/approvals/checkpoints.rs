//! A checkpoint makes requests under the numbers of their events, and closes each once, as approved only while that is
//! so.

use tarsy_core::approvals::Choice;
use tarsy_core::execution::entry::ApprovalOutcome;
use tarsy_engine::ports::{
    Checkpoint, Journal, Lease, Outbox as _, StoreError, Votes, WaitingCalls,
};

use super::{RESTART, Waiting, asked, asks, closes, request_of, vote};
use crate::adapters::store::fixture::running_session;
use crate::adapters::store::lost_replies::store_behind_a_relay;
use crate::support::postgres::TestDatabase;

#[tokio::test]
async fn each_request_has_the_number_of_its_event_and_everything_that_was_asked() {
    let waiting = Waiting::new().await;
    let events = waiting
        .store
        .events(waiting.request.session, 0, 100)
        .await
        .unwrap();
    let event = events
        .iter()
        .find(|event| event.session_seq == waiting.request.event);
    assert_eq!(event.unwrap().event_type.as_str(), "approval_requested");
    assert!(waiting.holds(
        "SELECT policy = 'default' AND tool = 'k8s.restart' AND arguments = '{\"pod\":\"db-1\"}' AND quorum = 1 \
         AND evidence = '{2,3}' AND channels = '{web,cli}' AND octet_length(call_sha256) = 32 \
         AND schema_sha256 = decode(repeat('09', 32), 'hex') AND on_resolved = 'withdraw' AND NOT other_person \
         AND expires_at - asked_at BETWEEN '59 min 59 s' AND '1 h' AND valid_for = '15 min' \
         AND outcome IS NULL AND origins @> '[{\"value\": \"db-1\"}]' FROM approvals"
    ));
    let outcomes = waiting
        .store
        .outcomes(waiting.request.session)
        .await
        .unwrap();
    let [request] = outcomes.requests.as_slice() else {
        panic!("{outcomes:?}")
    };
    assert_eq!(
        (
            request.event,
            request.execution_id,
            request.call_id.as_str()
        ),
        (waiting.request.event, waiting.execution, "c1")
    );
    assert!(request.decided.is_none() && !request.left.is_zero() && !outcomes.is_frozen);
}

#[tokio::test]
async fn a_request_without_an_event_is_not_written() {
    let waiting = Waiting::new().await;
    let mut checkpoint = asks(waiting.execution, 2, vec![asked("c2", RESTART)]);
    checkpoint.events.truncate(1);
    let written = waiting.store.append(waiting.lease, checkpoint).await;
    assert!(
        matches!(written, Err(StoreError::Conflict(_))),
        "{written:?}"
    );
}

#[tokio::test]
async fn requests_whose_reply_was_lost_are_made_once_and_a_close_happens_once() {
    let database = TestDatabase::create().await;
    let (relay, store) = store_behind_a_relay(&database).await;
    let (lease, executions) = running_session(&store, 1).await;
    let execution = executions[0];
    relay.lose_reply_to(execution.0);
    let calls = vec![asked("c1", RESTART), asked("c2", RESTART)];
    store
        .append(lease, asks(execution, 1, calls))
        .await
        .unwrap();
    assert_eq!(database.number("SELECT count(*) FROM approvals"), 2);

    let request = request_of(&database, lease.session_id, "c1");
    relay.lose_reply_to(lease.session_id.0);
    let approve = vote(request, "ana", Choice::Approve);
    let record = store.record_vote(approve).await.unwrap();
    assert!(record.is_repeated && record.refused.is_none());
    assert_eq!(record.outcome.as_deref(), Some("approved"));
    assert_eq!(
        database.number("SELECT sum(votes)::bigint FROM approvals"),
        1
    );

    relay.lose_reply_to(execution.0);
    let close = closes(execution, 2, ApprovalOutcome::Approved);
    store.append(lease, close.clone()).await.unwrap();
    store.append(lease, close).await.unwrap();
    assert!(database.holds(
        "SELECT count(*) = 1 FROM approvals WHERE closed_as = 'approved' AND closed_at IS NOT NULL"
    ));
    let again = closes(execution, 3, ApprovalOutcome::Approved);
    assert_undecided(&store, lease, again).await;
}

async fn assert_undecided(store: &tarsy_store::Store, lease: Lease, checkpoint: Checkpoint) {
    let written = store.append(lease, checkpoint).await;
    assert!(
        matches!(written, Err(StoreError::Undecided(_))),
        "{written:?}"
    );
}

#[tokio::test]
async fn a_call_starts_only_with_a_valid_approval_and_only_once() {
    let waiting = Waiting::new().await;
    let approved = || closes(waiting.execution, 2, ApprovalOutcome::Approved);
    assert_undecided(&waiting.store, waiting.lease, approved()).await;
    waiting.vote("ana", Choice::Approve).await;
    waiting
        .database
        .execute("UPDATE approvals SET outcome_at = outcome_at - interval '16 min'");
    assert_undecided(&waiting.store, waiting.lease, approved()).await;
    let outcomes = waiting
        .store
        .outcomes(waiting.request.session)
        .await
        .unwrap();
    let decided = outcomes.requests[0].decided.clone().unwrap();
    assert_eq!(decided.outcome, ApprovalOutcome::Lapsed);
    waiting
        .database
        .execute("UPDATE approvals SET outcome = 'denied', outcome_at = clock_timestamp()");
    assert_undecided(&waiting.store, waiting.lease, approved()).await;
    waiting
        .database
        .execute("UPDATE approvals SET outcome = 'approved'");
    waiting
        .store
        .append(waiting.lease, approved())
        .await
        .unwrap();
    let again = closes(waiting.execution, 3, ApprovalOutcome::Denied);
    assert_undecided(&waiting.store, waiting.lease, again).await;
    let outcomes = waiting
        .store
        .outcomes(waiting.request.session)
        .await
        .unwrap();
    assert_eq!(outcomes.requests, []);
    // Nothing was written by the refused ones, and a superseded lease is told apart.
    assert!(waiting.holds("SELECT checkpoint = 2 FROM agent_executions"));
    let mut stale = waiting.lease;
    stale.epoch = 0;
    let written = waiting
        .store
        .append(
            stale,
            closes(waiting.execution, 3, ApprovalOutcome::Approved),
        )
        .await;
    assert!(
        matches!(written, Err(StoreError::LeaseLost { .. })),
        "{written:?}"
    );
}

#[tokio::test]
async fn an_expiry_that_loses_against_a_vote_is_refused() {
    let waiting = Waiting::new().await;
    let seen = waiting.seq().await;
    let expires = |seen| {
        let mut checkpoint = closes(waiting.execution, 2, ApprovalOutcome::Expired);
        checkpoint.closed[0].seen = Some(seen);
        checkpoint
    };
    waiting.vote("ana", Choice::Approve).await;
    assert_undecided(&waiting.store, waiting.lease, expires(seen)).await;
    let seen = waiting.seq().await;
    waiting
        .store
        .append(waiting.lease, expires(seen))
        .await
        .unwrap();
    assert!(waiting.holds("SELECT closed_as = 'expired' FROM approvals"));
}

#[tokio::test]
async fn a_tool_that_a_person_denied_for_the_session_is_denied_without_asking() {
    let waiting = Waiting::new().await;
    let record = waiting.vote("ana", Choice::DenySession).await;
    assert_eq!(record.outcome.as_deref(), Some("denied_session"));
    let more = vec![asked("c2", RESTART), asked("c3", "k8s.delete")];
    waiting
        .store
        .append(waiting.lease, asks(waiting.execution, 2, more))
        .await
        .unwrap();
    let outcomes = waiting
        .store
        .outcomes(waiting.request.session)
        .await
        .unwrap();
    let decided: Vec<_> = outcomes
        .requests
        .iter()
        .map(|request| {
            request
                .decided
                .as_ref()
                .map(|decided| (decided.outcome, decided.by.clone()))
        })
        .collect();
    let denied = Some((ApprovalOutcome::DeniedSession, vec!["ana".to_owned()]));
    assert_eq!(decided, [denied.clone(), denied, None]);
}
