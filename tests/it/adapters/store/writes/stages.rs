//! The first stage begins with its session and the last one ends with it: each in one statement.

use serde_json::json;
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::timeline::{EventDraft, EventType};
use tarsy_engine::ports::{
    ExecutionRecord, Journal as _, OpenRequest, Opened, Outbox as _, RunStatus, SessionEnd,
    SessionRecord, Sessions as _, StageBegun, StageChange, StageEnd, StageEnded, StageRecord,
    StoreError,
};

use super::super::fixture::{
    begin_stage, checkpoint, completed, investigated, new_id, open_request, plan, received,
    running_session,
};
use super::super::lost_replies::store_behind_a_relay;
use crate::support::postgres::TestDatabase;

fn begun(session: SessionId) -> Option<StageBegun> {
    let mut step = begin_stage(session, 2);
    let StageChange::Begin(begin) = step.change else {
        panic!("a stage ends")
    };
    Some(StageBegun {
        begin,
        event: step.events.remove(0),
    })
}

fn ended(step: u32, status: RunStatus) -> SessionEnd {
    let end = StageEnd {
        stage_no: 1,
        status,
        error: (status == RunStatus::Failed).then(|| "no agent".to_owned()),
    };
    let event = EventDraft::new(
        EventType::StageCompleted,
        "over",
        json!({"stage": "investigate"}),
    );
    let stage = Some(StageEnded { step, end, event });
    SessionEnd {
        stage,
        executive_summary: Some("Cause: logs".into()),
        ..completed()
    }
}

#[tokio::test]
async fn the_first_stage_begins_with_the_session_once_and_a_question_comes_before_it() {
    let database = TestDatabase::create().await;
    let (relay, store) = store_behind_a_relay(&database).await;
    let root = investigated(&store, "fp", tarsy_core::alert::Severity::Low, completed()).await;
    for (parent, before) in [(None, 1), (Some(root), 2)] {
        let id = new_id();
        store
            .receive(received(id, id.to_string().as_bytes()))
            .await
            .unwrap();
        let request = OpenRequest {
            parent,
            first_stage: begun(id),
            ..open_request(id, &format!("fp-{id}"))
        };
        relay.lose_reply_to(id.0);
        let Ok(Opened::Session(claimed)) = store.open(request).await else {
            panic!("not opened")
        };
        let executions: Vec<_> = (1..=2)
            .map(|agent_no| ExecutionId::derive(id, 1, agent_no))
            .collect();
        let running = |(agent_no, id): (u32, &ExecutionId)| ExecutionRecord {
            execution_id: *id,
            agent_no,
            status: RunStatus::Running,
            checkpoint: 0,
            analysis: None,
            error: None,
            mark: None,
            review: None,
        };
        let stage = StageRecord {
            stage_no: 1,
            status: RunStatus::Running,
            executions: (1..).zip(&executions).map(running).collect(),
        };
        let expected = SessionRecord {
            plan: plan(),
            step: 1,
            updates: 0,
            stages: vec![stage],
            recoveries: Vec::new(),
            sub_agents: Vec::new(),
        };
        assert_eq!(store.load(id).await.unwrap(), expected);
        // The step that begins it is committed: sent again, it changes nothing.
        assert_eq!(store.step(claimed.lease, begin_stage(id, 2)).await, Ok(()));
        store
            .append(claimed.lease, checkpoint(executions[0], 1))
            .await
            .unwrap();
        let events = store.events(id, 0, 10).await.unwrap();
        let stage_started = &events[before];
        assert_eq!(stage_started.event_type, EventType::StageStarted);
        assert_eq!(stage_started.stage.as_deref(), Some("investigate"));
        assert!(
            events
                .iter()
                .map(|event| event.session_seq)
                .eq(1..=u32::try_from(before + 3).unwrap()),
            "{events:?}"
        );
    }
}

#[tokio::test]
async fn the_last_stage_ends_with_its_session_once() {
    for status in [RunStatus::Completed, RunStatus::Failed] {
        let database = TestDatabase::create().await;
        let (relay, store) = store_behind_a_relay(&database).await;
        let (lease, _) = running_session(&store, 2).await;
        let (id, tail) = (lease.session_id, store.tail(lease.session_id));
        relay.lose_reply_to(id.0);
        store.finish(lease, ended(2, status)).await.unwrap();
        let events = store.events(id, 2, 10).await.unwrap();
        let seen: Vec<_> = events
            .iter()
            .map(|event| (event.event_type.to_string(), event.stage.as_deref()))
            .collect();
        let of = |event_type: EventType| event_type.to_string();
        assert_eq!(
            seen,
            [
                (of(EventType::StageCompleted), Some("investigate")),
                (of(EventType::ExecutiveSummary), None),
                (of(EventType::SessionCompleted), None)
            ]
        );
        assert_eq!(
            tail.take().committed,
            [],
            "the reply was lost: the publisher reads the table"
        );
        let word = status.as_str();
        assert!(database.holds(&format!(
            "SELECT s.step = 2 AND s.event_seq = 5 AND t.status = '{word}' AND t.finished_at IS NOT NULL
               AND t.error IS NOT DISTINCT FROM {}
             FROM alert_sessions s JOIN stages t USING (session_id)",
            if status == RunStatus::Failed { "'no agent'" } else { "NULL" }
        )));
    }
}

#[tokio::test]
async fn the_end_of_a_session_that_is_not_at_the_step_of_its_stage_is_refused() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, _) = running_session(&store, 1).await;
    assert!(matches!(
        store.finish(lease, ended(4, RunStatus::Completed)).await,
        Err(StoreError::Behind(_))
    ));
    assert!(matches!(
        store.finish(lease, ended(1, RunStatus::Completed)).await,
        Err(StoreError::Conflict(_))
    ));
    assert!(
        database
            .holds("SELECT status = 'running' AND step = 1 AND event_seq = 2 FROM alert_sessions")
    );
    let tail = store.tail(lease.session_id);
    store
        .finish(lease, ended(2, RunStatus::Completed))
        .await
        .unwrap();
    assert_eq!(
        tail.take().committed,
        store.events(lease.session_id, 2, 10).await.unwrap()
    );
}
