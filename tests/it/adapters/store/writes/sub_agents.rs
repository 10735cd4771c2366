//! The executions of sub-agents begin with the checkpoint of their parent, once.

use serde_json::json;
use tarsy_core::execution::entry::{Dispatched, Entry};
use tarsy_core::ids::ExecutionId;
use tarsy_core::plan::Strategy;
use tarsy_core::timeline::{EventDraft, EventType};
use tarsy_engine::ports::{
    Checkpoint, ExecutionBegin, Journal as _, Outbox as _, RunStatus, SubAgentBegin,
};

use super::super::fixture::{checkpoint, prompt, running_session};
use super::super::lost_replies::store_behind_a_relay;
use crate::support::postgres::TestDatabase;

/// A checkpoint that begins the sub-agent of this call.
pub(crate) fn dispatch(parent: ExecutionId, call_id: &str) -> Checkpoint {
    let execution_id = parent.of_sub_agent(call_id);
    let dispatched = Dispatched {
        call_id: call_id.to_owned(),
        agent: "logs".to_owned(),
        task: "Look.".to_owned(),
        execution_id,
    };
    let begun = SubAgentBegin {
        call_id: call_id.to_owned(),
        execution: ExecutionBegin {
            execution_id,
            agent_no: 0,
            agent: "logs".to_owned(),
            strategy: Strategy::React,
            backend: "scripted".to_owned(),
            model: "script-2".to_owned(),
        },
    };
    let metadata = json!({"call_id": call_id, "agent": "logs", "execution_id": execution_id});
    Checkpoint {
        entries: vec![Entry::Dispatched(Box::new(dispatched))],
        events: vec![EventDraft::new(
            EventType::AgentDispatched,
            "Look.",
            metadata,
        )],
        sub_agents: vec![begun],
        ..prompt(parent, 1, "")
    }
}

#[tokio::test]
async fn a_sub_agent_begins_once_with_the_fact_of_its_dispatch() {
    let database = TestDatabase::create().await;
    let (relay, store) = store_behind_a_relay(&database).await;
    let (lease, executions) = running_session(&store, 2).await;
    let begins = dispatch(executions[0], "one");
    relay.lose_reply_to(executions[0].0);
    store.append(lease, begins.clone()).await.unwrap();
    store.append(lease, begins.clone()).await.unwrap();
    let child = executions[0].of_sub_agent("one");
    let record = store.load(lease.session_id).await.unwrap();
    let of_stage: Vec<ExecutionId> = record.stages[0]
        .executions
        .iter()
        .map(|run| run.execution_id)
        .collect();
    assert_eq!(of_stage, executions, "a sub-agent is none of the stage");
    let begun = record.sub_agents.first().unwrap();
    assert_eq!((record.sub_agents.len(), begun.parent), (1, executions[0]));
    assert_eq!(
        (
            begun.execution.execution_id,
            begun.execution.agent_no,
            begun.execution.checkpoint,
            begun.execution.status
        ),
        (child, 0, 0, RunStatus::Running)
    );
    let entries = store
        .entries(lease.session_id, executions[0])
        .await
        .unwrap();
    assert_eq!(entries[0].entry, begins.entries[0]);

    store.append(lease, checkpoint(child, 1)).await.unwrap();
    let events = store.events(lease.session_id, 0, 100).await.unwrap();
    let of_child: Vec<_> = events
        .iter()
        .filter(|event| event.execution_id == Some(child))
        .map(|event| {
            (
                event.sequence_number,
                event.agent.as_deref(),
                event.stage.as_deref(),
            )
        })
        .collect();
    let expected = [1, 2].map(|number| (Some(number), Some("logs"), Some("investigate")));
    assert_eq!(of_child, expected);
}

#[tokio::test]
async fn a_sub_agent_whose_row_was_lost_begins_again_behind_its_restored_events() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    let child = executions[0].of_sub_agent("one");
    let begins = dispatch(executions[0], "one");
    store.append(lease, begins.clone()).await.unwrap();
    store.append(lease, checkpoint(child, 1)).await.unwrap();
    // A failover loses the commits, and the recovery restores the events from the stream.
    database.execute(&format!(
        "DELETE FROM agent_executions WHERE execution_id = '{child}';
         DELETE FROM entries WHERE session_id = '{session}';
         DELETE FROM llm_interactions WHERE session_id = '{session}';
         DELETE FROM tool_interactions WHERE session_id = '{session}';
         UPDATE agent_executions SET checkpoint = 0, checkpoint_id = NULL, entry_count = 0 WHERE session_id = '{session}'",
        session = lease.session_id
    ));
    let again = dispatch(executions[0], "one");
    store.append(lease, again).await.unwrap();
    store.append(lease, checkpoint(child, 1)).await.unwrap();
    let numbers = "SELECT string_agg(sequence_number::text, ' ' ORDER BY session_seq) FROM timeline_events \
        WHERE execution_id = ";
    assert_eq!(
        database.text(&format!("{numbers}'{child}'")),
        "1 2 3 4",
        "no number is there twice"
    );
    let record = store.load(lease.session_id).await.unwrap();
    assert_eq!(record.sub_agents[0].execution.checkpoint, 1);
}

#[tokio::test]
async fn the_attempts_of_a_sub_agent_count_from_its_dispatch() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    let resumed = "INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, \
        content) SELECT session_id, now(), event_seq + 1, lease_epoch, 'session_resumed', 'completed', '' \
        FROM alert_sessions WHERE session_id = ";
    let resume = || {
        database.execute(&format!("{resumed}'{}'", lease.session_id));
        database.execute(&format!(
            "UPDATE alert_sessions SET event_seq = event_seq + 1 WHERE session_id = '{}'",
            lease.session_id
        ));
    };
    resume();
    let begins = dispatch(executions[0], "one");
    store.append(lease, begins).await.unwrap();
    let child = executions[0].of_sub_agent("one");
    let claims = async || {
        let attempts = store.attempts(lease.session_id, child).await.unwrap();
        attempts.claims
    };
    assert_eq!(claims().await, 0);
    resume();
    assert_eq!(claims().await, 1);
}
