//! Checkpoints and steps are written once, completely, and without a gap in the event numbers.

mod stages;
pub(crate) mod sub_agents;
mod tails;

use diesel::connection::SimpleConnection;
use serde_json::json;
use tarsy_core::execution::entry::{Entry, Outcome, StopReason, ToolResult};
use tarsy_core::execution::event_refs::RecordedEntry;
use tarsy_core::timeline::{EventDraft, EventType};
use tarsy_engine::ports::{
    Checkpoint, ExecutionRecord, Journal, Outbox, RunStatus, SessionRecord, SessionStep,
    StageChange, StageEnd, StageRecord, StoreError,
};

use super::fixture::{begin_stage, checkpoint, now, plan, prompt, running_session};
use crate::support::postgres::TestDatabase;
use crate::support::wait::eventually;

#[tokio::test]
async fn a_checkpoint_that_is_sent_twice_is_written_once() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    let one = checkpoint(executions[0], 1);
    store.append(lease, one.clone()).await.unwrap();
    store.append(lease, one.clone()).await.unwrap();
    let (left, right) = (store.clone(), store.clone());
    let two = checkpoint(executions[0], 2);
    let (a, b) = tokio::join!(
        send(left, lease, two.clone()),
        send(right, lease, two.clone())
    );
    assert_eq!((a, b), (Ok(vec![None; 2]), Ok(vec![None; 2])));
    let recorded = |written: &Checkpoint| {
        RecordedEntry::all(written.entries.clone(), vec![], Some(written.at))
    };
    let expected: Vec<_> = recorded(&one).chain(recorded(&two)).collect();
    assert_eq!(
        store
            .entries(lease.session_id, executions[0])
            .await
            .unwrap(),
        expected
    );
    assert_eq!(
        store.events(lease.session_id, 0, 100).await.unwrap().len(),
        6
    );
    assert_eq!(database.number("SELECT count(*) FROM llm_interactions"), 2);
    assert_eq!(
        database.number("SELECT count(*) FROM tool_interactions WHERE state = 'done'"),
        2
    );

    let second_writer = checkpoint(executions[0], 2);
    assert!(matches!(
        store.append(lease, second_writer).await,
        Err(StoreError::Conflict(_))
    ));
}

#[tokio::test]
async fn a_result_has_the_number_of_its_event_also_when_sent_again_or_read_later() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 2).await;
    let result = |id: &str| {
        Entry::ToolResult(ToolResult {
            call_id: id.into(),
            tool: "k8s.get".into(),
            content: id.into(),
            is_error: false,
            whole_bytes: 0,
            not_sent: None,
            facts: None,
            spent: None,
        })
    };
    let event = |id: &str| EventDraft::new(EventType::ToolResult, id, json!({"call_id": id}));
    let mut results = checkpoint(executions[0], 1);
    // One event lies between the results, and one result has no event.
    results.entries = vec![result("a"), result("b"), result("c")];
    results.events = vec![
        event("a"),
        EventDraft::new(EventType::Error, "slow", json!(null)),
        event("b"),
    ];
    store
        .append(lease, prompt(executions[1], 1, "hello"))
        .await
        .unwrap();
    store
        .append(lease, checkpoint(executions[1], 2))
        .await
        .unwrap();

    let numbers = vec![Some(5), Some(7), None];
    assert_eq!(
        send(store.clone(), lease, results.clone()).await,
        Ok(numbers.clone())
    );
    assert_eq!(
        send(store.clone(), lease, results.clone()).await,
        Ok(numbers.clone()),
        "the reply was lost"
    );
    let events = store.events(lease.session_id, 4, 3).await.unwrap();
    assert_eq!(
        events
            .iter()
            .map(|e| (e.session_seq, e.content.as_str()))
            .collect::<Vec<_>>()[2],
        (7, "b")
    );
    let read = store
        .entries(lease.session_id, executions[0])
        .await
        .unwrap();
    assert_eq!(
        read,
        RecordedEntry::all(results.entries, numbers, Some(results.at)).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn a_refused_swap_takes_no_number() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    // Both wait for the session's row; the second must not draw numbers from its old snapshot.
    let mut rival = database.connection();
    rival
        .batch_execute("BEGIN; SELECT 1 FROM alert_sessions FOR UPDATE")
        .unwrap();
    let one = checkpoint(executions[0], 1);
    let sent = [
        tokio::spawn(send(store.clone(), lease, one.clone())),
        tokio::spawn(send(store.clone(), lease, one)),
    ];
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually("both are waiting", async || database.number(waiting) >= 2).await;
    rival.batch_execute("ROLLBACK").unwrap();
    for task in sent {
        assert_eq!(task.await.unwrap(), Ok(vec![None; 2]));
    }
    store
        .append(lease, checkpoint(executions[0], 2))
        .await
        .unwrap();
    let events = store.events(lease.session_id, 0, 100).await.unwrap();
    assert_eq!(
        events.iter().map(|e| e.session_seq).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6]
    );
    assert!(database.holds("SELECT event_seq = 6 FROM alert_sessions"));
}

async fn send(
    store: tarsy_store::Store,
    lease: tarsy_engine::ports::Lease,
    checkpoint: Checkpoint,
) -> Result<Vec<Option<u32>>, StoreError> {
    store
        .append(lease, checkpoint)
        .await
        .map(|appended| appended.events)
}

#[tokio::test]
async fn events_of_parallel_agents_have_one_order_and_each_agent_its_own() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 2).await;
    store
        .append(lease, checkpoint(executions[0], 1))
        .await
        .unwrap();
    store
        .append(lease, checkpoint(executions[1], 1))
        .await
        .unwrap();
    store
        .append(lease, prompt(executions[0], 2, "more"))
        .await
        .unwrap();
    store
        .append(lease, checkpoint(executions[0], 3))
        .await
        .unwrap();
    let events = store.events(lease.session_id, 2, 100).await.unwrap();
    let seen: Vec<_> = events
        .iter()
        .map(|e| {
            (
                e.session_seq,
                e.agent.as_deref().unwrap(),
                e.sequence_number.unwrap(),
                e.iteration.unwrap(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (3, "analyst-1", 1, 1),
            (4, "analyst-1", 2, 1),
            (5, "analyst-2", 1, 1),
            (6, "analyst-2", 2, 1),
            (7, "analyst-1", 3, 3),
            (8, "analyst-1", 4, 3),
        ]
    );
    assert!(
        events
            .iter()
            .all(|e| e.stage.as_deref() == Some("investigate") && e.attempt == Some(1))
    );
    assert_eq!(
        store.events(lease.session_id, 3, 2).await.unwrap(),
        events[1..3]
    );
}

#[tokio::test]
async fn a_step_that_is_sent_twice_is_written_once() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    store
        .step(lease, begin_stage(lease.session_id, 1))
        .await
        .unwrap();
    let mut last = checkpoint(executions[0], 1);
    last.status = RunStatus::Completed;
    last.entries.push(Entry::Ended {
        outcome: Outcome::Completed {
            analysis: "logs".into(),
            reason: StopReason::FinalAnswer,
            mark: None,
            review: None,
        },
    });
    store.append(lease, last).await.unwrap();
    let end = SessionStep {
        number: 2,
        at: now(),
        change: StageChange::End(StageEnd {
            stage_no: 1,
            status: RunStatus::Completed,
            error: None,
        }),
        events: vec![EventDraft::new(
            EventType::StageCompleted,
            "investigate",
            json!({"completed": 1}),
        )],
    };
    store.step(lease, end.clone()).await.unwrap();
    store.step(lease, end.clone()).await.unwrap();
    let ahead = SessionStep { number: 4, ..end };
    assert!(
        matches!(store.step(lease, ahead).await, Err(StoreError::Behind(_))),
        "step 3 is missing"
    );

    let record = SessionRecord {
        plan: plan(),
        step: 2,
        updates: 0,
        stages: vec![StageRecord {
            stage_no: 1,
            status: RunStatus::Completed,
            executions: vec![ExecutionRecord {
                execution_id: executions[0],
                agent_no: 1,
                status: RunStatus::Completed,
                checkpoint: 1,
                analysis: Some("logs".into()),
                error: None,
                mark: None,
                review: None,
            }],
        }],
        recoveries: vec![],
        sub_agents: vec![],
    };
    assert_eq!(store.load(lease.session_id).await.unwrap(), record);
    let events = store.events(lease.session_id, 0, 10).await.unwrap();
    let stages: Vec<_> = events
        .iter()
        .map(|e| (e.event_type.as_str(), e.stage.as_deref()))
        .collect();
    assert_eq!(stages[1], ("stage_started", Some("investigate")));
    assert_eq!(stages[4], ("stage_completed", Some("investigate")));
    assert_eq!(events.len(), 5);
}

#[tokio::test]
async fn a_value_that_the_database_cannot_store_is_refused_at_once() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    // The value is too large for an index; Diesel has no kind for this error.
    database.execute("CREATE INDEX too_small ON timeline_events (content)");
    let noise: String = (0..20_000).map(|_| fastrand::char('!'..='~')).collect();
    let mut large = checkpoint(executions[0], 1);
    large.events[0].content = noise;
    let began = std::time::Instant::now();
    let refused = store.append(lease, large).await;
    assert!(
        matches!(&refused, Err(StoreError::Refused(why)) if why.contains("index row")),
        "{refused:?}"
    );

    database.execute("ALTER TABLE entries ADD CONSTRAINT nothing CHECK (entry_no = 0)");
    let refused = store.append(lease, checkpoint(executions[0], 1)).await;
    assert!(
        matches!(&refused, Err(StoreError::Refused(why)) if why.contains("nothing")),
        "{refused:?}"
    );
    assert!(
        began.elapsed() < std::time::Duration::from_secs(10),
        "it was not sent again"
    );
}
