//! Tests that the events that a write passes to the publisher equal those of the table.

use serde_json::json;
use tarsy_core::timeline::{EventDraft, EventType};
use tarsy_engine::ports::{
    Journal as _, Outbox as _, RunStatus, SessionStep, StageChange, StageEnd,
};

use super::super::fixture::{checkpoint, completed, now, running_session};
use crate::support::postgres::TestDatabase;

#[tokio::test]
async fn the_tail_of_a_session_has_the_rows_of_the_table() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 2).await;
    let id = lease.session_id;
    let (before, tail) = (
        store.events(id, 0, 100).await.unwrap().len(),
        store.tail(id),
    );
    let odd = json!({"zz": {"bb": 1e18, "a": [-0.0, 1e-7, 1e25, "\0", null]}, "b": 2, "": 1.50, "ä": -1e17, "ab": 12.0});
    let mut first = checkpoint(executions[0], 1);
    first
        .events
        .push(EventDraft::new(EventType::ToolResult, "a\0b", odd.clone()).failed());
    first
        .events
        .push(EventDraft::new(EventType::Error, "", json!(null)));
    store.append(lease, first).await.unwrap();
    let mut second = checkpoint(executions[1], 1);
    (second.iteration, second.attempt) = (0, 0);
    store.append(lease, second).await.unwrap();
    let mut without = checkpoint(executions[0], 2);
    without.events.clear();
    without.entries.truncate(1);
    store.append(lease, without).await.unwrap();
    let end = StageEnd {
        stage_no: 1,
        status: RunStatus::Completed,
        error: None,
    };
    let events = vec![EventDraft::new(EventType::StageCompleted, "over", odd)];
    store
        .step(
            lease,
            SessionStep {
                number: 2,
                at: now(),
                change: StageChange::End(end),
                events,
            },
        )
        .await
        .unwrap();
    store.finish(lease, completed()).await.unwrap();

    let table = store
        .events(id, u32::try_from(before).unwrap(), 100)
        .await
        .unwrap();
    let passed_on = tail.take();
    assert_eq!(passed_on.committed, table);
    assert_eq!(table.len(), 8);
    // Their texts are the same, too: the stream gets the bytes that a read of the table would give.
    let texts = |events: &mut dyn Iterator<Item = &tarsy_core::timeline::TimelineEvent>| {
        events
            .map(|event| serde_json::to_string(event).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        texts(&mut passed_on.committed.iter()),
        texts(&mut table.iter())
    );
    assert!(!passed_on.overflowed);
}

#[tokio::test]
async fn a_tail_that_is_not_read_says_that_the_table_has_more() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    let tail = store.tail(lease.session_id);
    for number in 1..=33 {
        store
            .append(lease, checkpoint(executions[0], number))
            .await
            .unwrap();
    }
    let passed_on = tail.take();
    assert!(passed_on.overflowed && passed_on.committed.is_empty());
    store
        .append(lease, checkpoint(executions[0], 34))
        .await
        .unwrap();
    assert_eq!(tail.take().committed.len(), 2);
}
