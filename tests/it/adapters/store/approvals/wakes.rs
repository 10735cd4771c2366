//! The causes that wake a waiting session, as the sweep names them, and the numbers of what waits.

use std::time::Duration;

use tarsy_core::approvals::Choice;
use tarsy_engine::ports::{Claim, Journal, Sessions, Sweep, Swept, Votes, WakeCause};
use tarsy_store::WaitingForPeople;

use super::ends::resolve;
use super::{RESTART, Waiting, asked, asks, request_of, vote};
use crate::adapters::store::fixture::{claim_request, running_session};

/// The seconds of one interval of the sweep.
const INTERVAL: u32 = 15;
/// The seconds until a request expires.
const TIMEOUT: u32 = 3_600;

/// The cause that the sweep names for the session that it finds, an interval later.
async fn cause(waiting: &Waiting) -> Option<WakeCause> {
    waiting.age(INTERVAL + 1);
    let sweep = Sweep {
        interval: Duration::from_secs(u64::from(INTERVAL)),
        min_age: Duration::from_secs(60),
        limit: 100,
    };
    let swept = waiting.store.sweep(sweep).await.unwrap();
    match swept.as_slice() {
        [Swept::Idle(idle)] => idle.woken_by,
        other => panic!("one session is found: {other:?}"),
    }
}

#[tokio::test]
async fn the_sweep_names_the_decision_the_expiry_or_the_resolution_that_woke_a_session() {
    let decided = Waiting::new().await;
    decided.park().await;
    decided.vote("ana", Choice::Approve).await;
    assert_eq!(cause(&decided).await, Some(WakeCause::Decision));

    let expired = Waiting::new().await;
    expired.park().await;
    expired.age(TIMEOUT);
    assert_eq!(cause(&expired).await, Some(WakeCause::Expiry));

    let resolved = Waiting::new().await;
    resolved.park().await;
    resolve(&resolved.store, &resolved).await;
    assert_eq!(cause(&resolved).await, Some(WakeCause::Resolved));
}

#[tokio::test]
async fn an_expiry_is_the_cause_where_people_have_decided_about_a_later_call_only() {
    let waiting = Waiting::new().await;
    let later = asks(waiting.execution, 2, vec![asked("c2", RESTART)]);
    waiting.store.append(waiting.lease, later).await.unwrap();
    waiting.park().await;
    let later = request_of(&waiting.database, waiting.request.session, "c2");
    let record = waiting.store.record_vote(vote(later, "ana", Choice::Deny));
    assert_eq!(record.await.unwrap().wakes, None);
    waiting.age(TIMEOUT);
    assert_eq!(cause(&waiting).await, Some(WakeCause::Expiry));
}

#[tokio::test]
async fn a_session_that_a_worker_has_claimed_since_was_woken_by_nothing() {
    let waiting = Waiting::new().await;
    let id = waiting.request.session;
    waiting.park().await;
    waiting.age(TIMEOUT);
    let claim = waiting.store.claim(id, claim_request("w2")).await;
    let Ok(Claim::Taken(claimed)) = claim else {
        panic!("not taken: {claim:?}")
    };
    waiting.store.release(claimed.lease, "drain").await.unwrap();
    assert_eq!(cause(&waiting).await, None);
}

#[tokio::test]
async fn what_waits_for_people_is_counted_with_the_largest_part_of_a_time_that_is_over() {
    let waiting = Waiting::new().await;
    let counts = async || {
        let WaitingForPeople {
            requests,
            sessions,
            oldest_ratio,
        } = waiting.store.waiting_for_people().await.unwrap();
        let percent = format!("{:.0}", oldest_ratio * 100.0);
        format!("{requests} requests, {sessions} sessions, {percent} %")
    };
    assert_eq!(counts().await, "1 requests, 0 sessions, 0 %");
    waiting.park().await;
    assert_eq!(counts().await, "1 requests, 1 sessions, 0 %");
    waiting.age(TIMEOUT / 2);
    assert_eq!(counts().await, "1 requests, 1 sessions, 50 %");

    // A younger one with less of its time left counts more.
    let mut short = asked("c1", RESTART);
    short.timeout = Duration::from_secs(100);
    let (lease, executions) = running_session(&waiting.store, 1).await;
    let asks = asks(executions[0], 1, vec![short]);
    waiting.store.append(lease, asks).await.unwrap();
    waiting.database.execute(&format!(
        "UPDATE approvals SET asked_at = asked_at - interval '80 s', expires_at = expires_at - interval '80 s' \
         WHERE session_id = '{}'",
        lease.session_id
    ));
    assert_eq!(counts().await, "2 requests, 1 sessions, 80 %");

    // Neither one that people have decided, nor one whose session is being cancelled, nor one that has expired.
    waiting.vote("ana", Choice::Deny).await;
    assert_eq!(counts().await, "1 requests, 0 sessions, 80 %");
    waiting
        .store
        .request_cancel(lease.session_id)
        .await
        .unwrap();
    assert_eq!(counts().await, "0 requests, 0 sessions, 0 %");
    let expired = Waiting::new().await;
    expired.age(TIMEOUT);
    let found = expired.store.waiting_for_people().await.unwrap();
    assert_eq!((found.requests, found.sessions), (0, 0));
}
