//! Freezes of all changes: no approval counts and none is used while one lasts.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use tarsy_core::approvals::{Choice, Refusal};
use tarsy_core::execution::entry::ApprovalOutcome;
use tarsy_engine::ports::{Freeze, FreezeChange, Journal, StoreError, Votes, WaitingCalls};
use uuid::Uuid;

use super::{Waiting, closes};

fn change(change: Freeze) -> FreezeChange {
    FreezeChange {
        id: Uuid::new_v4(),
        age: Duration::ZERO,
        person: "ana".to_owned(),
        change,
        reason: Some("sale".to_owned()),
    }
}

#[tokio::test]
async fn while_a_freeze_lasts_no_approval_counts_and_a_denial_does() {
    let waiting = Waiting::new().await;
    let begin = change(Freeze::Begin(None));
    waiting.store.record_freeze(begin.clone()).await.unwrap();
    waiting.store.record_freeze(begin.clone()).await.unwrap();
    let outcomes = waiting
        .store
        .outcomes(waiting.request.session)
        .await
        .unwrap();
    assert!(outcomes.is_frozen);
    assert_eq!(
        waiting.vote("ana", Choice::Approve).await.refused,
        Some(Refusal::Frozen)
    );
    let frozen = waiting.store.approval_freeze().await.unwrap().unwrap();
    assert_eq!(
        (
            frozen.freeze_id,
            frozen.person.as_str(),
            frozen.reason.as_deref()
        ),
        (begin.id, "ana", Some("sale"))
    );

    let end = change(Freeze::End);
    waiting.store.record_freeze(end.clone()).await.unwrap();
    assert_eq!(waiting.store.approval_freeze().await.unwrap(), None);
    // An end that is delivered again ends no later freeze.
    waiting
        .store
        .record_freeze(change(Freeze::Begin(None)))
        .await
        .unwrap();
    waiting.store.record_freeze(end).await.unwrap();
    assert!(waiting.store.approval_freeze().await.unwrap().is_some());
    // Nor does one that was sent before it began.
    let late = FreezeChange {
        age: Duration::from_secs(60),
        ..change(Freeze::End)
    };
    waiting.store.record_freeze(late).await.unwrap();
    assert!(waiting.store.approval_freeze().await.unwrap().is_some());
    let denied = waiting.vote("ana", Choice::Deny).await;
    assert_eq!(
        (denied.refused, denied.outcome.as_deref()),
        (None, Some("denied"))
    );
    assert_eq!(waiting.store.approval_freezes().await.unwrap().len(), 2);
}

#[tokio::test]
async fn an_approved_call_does_not_start_during_a_freeze_and_ends_as_frozen() {
    let waiting = Waiting::new().await;
    waiting.vote("ana", Choice::Approve).await;
    let until = Utc::now() + TimeDelta::hours(1);
    waiting
        .store
        .record_freeze(change(Freeze::Begin(Some(until))))
        .await
        .unwrap();
    let start = closes(waiting.execution, 2, ApprovalOutcome::Approved);
    let written = waiting.store.append(waiting.lease, start.clone()).await;
    assert!(
        matches!(written, Err(StoreError::Undecided(_))),
        "{written:?}"
    );
    // Its time is over.
    waiting
        .database
        .execute("UPDATE approval_freezes SET until = clock_timestamp() - interval '1 s'");
    assert!(
        !waiting
            .store
            .outcomes(waiting.request.session)
            .await
            .unwrap()
            .is_frozen
    );
    waiting.store.append(waiting.lease, start).await.unwrap();

    let waiting = Waiting::new().await;
    waiting.vote("ana", Choice::Approve).await;
    waiting
        .store
        .record_freeze(change(Freeze::Begin(None)))
        .await
        .unwrap();
    let frozen = closes(waiting.execution, 2, ApprovalOutcome::Frozen);
    waiting.store.append(waiting.lease, frozen).await.unwrap();
    assert!(waiting.holds("SELECT closed_as = 'frozen' FROM approvals"));
}
