//! Follow-up questions: each is a separate session, which no alert joins, and sees its whole thread.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use serde_json::json;
use tarsy_core::alert::Alert;
use tarsy_core::follow_up::{Exchange, PastCall};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventDraft, EventType};
use tarsy_engine::ports::{
    CancelOutcome, Disposition, Journal, OpenRequest, Opened, Outbox, RunStatus, SessionEnd,
    Sessions, SettlementStatus, Sweep, Swept,
};
use tarsy_store::{SessionFilter, Store};

use super::fixture::{
    alert, checkpoint, completed, investigated, new_id, open_request, received, revert_through,
    running_session, settled, steal,
};
use crate::support::postgres::TestDatabase;

fn request(id: SessionId, parent: SessionId, text: &str) -> OpenRequest {
    let asked = Alert {
        title: text.into(),
        text: text.into(),
        source: "question".into(),
        ..alert("")
    };
    OpenRequest {
        alert: asked,
        parent: Some(parent),
        cooldown: Duration::from_hours(1),
        ..open_request(id, "")
    }
}

/// Receives and opens a question; it must open a session.
async fn ask(store: &Store, parent: SessionId, text: &str) -> tarsy_engine::ports::Claimed {
    let id = new_id();
    store
        .receive(received(id, id.to_string().as_bytes()))
        .await
        .unwrap();
    match store.open(request(id, parent, text)).await {
        Ok(Opened::Session(claimed)) => claimed,
        other => panic!("not opened: {other:?}"),
    }
}

fn answer(text: &str) -> SessionEnd {
    SessionEnd {
        final_analysis: Some(text.into()),
        executive_summary: None,
        ..completed()
    }
}

#[tokio::test]
async fn a_question_opens_its_own_session_and_is_the_second_event_there() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let root = investigated(&store, "fp", alert("fp").severity, completed()).await;
    let (first, second) = (
        ask(&store, root, "why?").await,
        ask(&store, root, "why?").await,
    );

    let id = first.lease.session_id;
    let events = store.events(id, 0, 10).await.unwrap();
    let summaries: Vec<_> = events
        .iter()
        .map(|e| (e.session_seq, e.event_type.clone(), e.content.as_str()))
        .collect();
    assert_eq!(
        summaries,
        [
            (1, EventType::SessionStarted, "started"),
            (2, EventType::UserQuestion, "why?")
        ]
    );
    assert_eq!(events[1].metadata, json!({"parent_id": root}));
    assert!(database.holds(&format!(
        "SELECT bool_and(fingerprint IS NULL AND parent_id = '{root}' AND event_seq = 2) FROM alert_sessions \
         WHERE session_id <> '{root}'"
    )));
    // The next event takes the next number, on any worker.
    let taken = steal(&store, &database, id).await;
    let event = EventDraft::new(EventType::StageStarted, "follow-up", json!(null));
    let step = super::fixture::begin_stage(id, 1);
    store
        .step(
            taken.lease,
            tarsy_engine::ports::SessionStep {
                events: vec![event],
                ..step
            },
        )
        .await
        .unwrap();
    let numbers: Vec<u32> = store
        .events(id, 0, 10)
        .await
        .unwrap()
        .iter()
        .map(|e| e.session_seq)
        .collect();
    assert_eq!(numbers, [1, 2, 3, 4]);

    // A question neither joins nor is covered, no alert joins it, and it covers no alert.
    let again = new_id();
    store.receive(received(again, b"again")).await.unwrap();
    let cooled = OpenRequest {
        cooldown: Duration::from_hours(1),
        ..open_request(again, "fp")
    };
    assert_eq!(
        store.open(cooled).await,
        Ok(Opened::CoveredByCooldown(root))
    );
    store.finish(second.lease, answer("because")).await.unwrap();
    let empty = new_id();
    store.receive(received(empty, b"empty")).await.unwrap();
    assert!(
        matches!(
            store.open(open_request(empty, "")).await,
            Ok(Opened::Session(_))
        ),
        "an empty fingerprint is a fingerprint"
    );
    assert_eq!(
        store.receive(received(id, id.to_string().as_bytes())).await,
        Ok(Disposition::Opened)
    );
}

#[tokio::test]
async fn a_question_is_cancelled_swept_ended_and_settled_like_any_session() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let root = investigated(&store, "fp", alert("fp").severity, completed()).await;
    settled(&store, root).await.unwrap();
    let lease = ask(&store, root, "why?").await.lease;
    let id = lease.session_id;
    assert_eq!(store.cancel(id, None).await, Ok(CancelOutcome::Requested));
    database.execute(
        "UPDATE alert_sessions SET lease_expires_at = clock_timestamp() - interval '1 h' WHERE status = 'running'",
    );
    let sweep = Sweep {
        interval: Duration::from_secs(15),
        min_age: Duration::from_secs(60),
        limit: 10,
    };
    let swept = store.sweep(sweep).await.unwrap();
    assert!(
        matches!(swept.as_slice(), [Swept::Overdue(found)] if *found == id),
        "{swept:?}"
    );
    store.finish(lease, answer("because")).await.unwrap();
    let standing = store.standing(id).await.unwrap();
    let expected = SettlementStatus {
        over: true,
        settled: false,
        last_seq: 3,
        owes: None,
        ..standing.clone()
    };
    assert_eq!(standing, expected);
    settled(&store, id).await.unwrap();
    assert!(database.holds(&format!(
        "SELECT raw IS NULL FROM alerts WHERE alert_id = '{id}'"
    )));
    let listed = store
        .list_sessions(SessionFilter {
            limit: 10,
            ..SessionFilter::default()
        })
        .await
        .unwrap();
    let parents: Vec<_> = listed
        .iter()
        .map(|line| (line.session_id, line.parent_id))
        .collect();
    assert_eq!(parents, [(id, Some(root)), (root, None)]);
}

#[tokio::test]
async fn a_thread_is_its_investigation_with_the_answers_in_the_order_of_the_questions() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    let root = lease.session_id;
    assert_eq!(
        store.thread(root).await.unwrap().unwrap().status,
        RunStatus::Running
    );
    let called = json!({"tool_name": "k8s.get", "call_id": "c1"});
    let mut write = checkpoint(executions[0], 1);
    write.events = vec![
        EventDraft::new(EventType::LlmToolCall, "{\"pod\": 1}", called.clone()),
        EventDraft::new(EventType::ToolResult, "long", called),
        EventDraft::new(
            EventType::ToolResult,
            "",
            json!({"tool_name": "k8s.top", "call_id": "c9", "is_error": true}),
        ),
    ];
    store.append(lease, write).await.unwrap();
    store.finish(lease, completed()).await.unwrap();

    let (first, second) = (
        ask(&store, root, "one?").await.lease,
        ask(&store, root, "two?").await.lease,
    );
    let open = ask(&store, root, "three?").await.lease;
    let failed = ask(&store, root, "four?").await.lease;
    store.finish(second, answer("2")).await.unwrap();
    store.finish(first, answer("1")).await.unwrap();
    let no_answer = SessionEnd {
        status: RunStatus::Failed,
        final_analysis: None,
        ..completed()
    };
    store.finish(failed, no_answer).await.unwrap();

    let thread = store.thread(first.session_id).await.unwrap().unwrap();
    assert_eq!(
        (thread.root, thread.status, thread.older),
        (root, RunStatus::Completed, 0)
    );
    assert_eq!(thread.chain, "kubernetes");
    assert_eq!(
        thread.analysis.as_deref(),
        Some("the disk filled up with logs")
    );
    assert_eq!(
        (&thread.alert.alert_type, &thread.alert.text),
        (&"disk".to_owned(), &alert("").text)
    );
    let call = |session_seq, tool: &str, arguments: &str, is_error| PastCall {
        session_seq,
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
        is_error,
    };
    assert_eq!(
        thread.calls,
        [
            call(4, "k8s.get", "{\"pod\": 1}", false),
            call(5, "k8s.top", "", true)
        ]
    );
    let exchange = |question: &str, answer: &str| Exchange {
        question: question.into(),
        answer: answer.into(),
    };
    assert_eq!(thread.asked, [exchange("one?", "1"), exchange("two?", "2")]);
    assert_eq!(store.thread(root).await.unwrap(), Some(thread));
    assert_eq!(store.thread(new_id()).await.unwrap(), None);

    let all = [
        root,
        first.session_id,
        second.session_id,
        open.session_id,
        failed.session_id,
    ];
    assert_eq!(store.thread_sessions(open.session_id).await.unwrap(), all);
    assert_eq!(store.thread_sessions(new_id()).await.unwrap(), []);
    let report = store.report(root).await.unwrap().unwrap();
    let asked: Vec<_> = report
        .questions
        .iter()
        .map(|q| (q.question.clone().unwrap(), q.answer.clone()))
        .collect();
    let one =
        |question: &str, answer: Option<&str>| (question.to_owned(), answer.map(ToOwned::to_owned));
    assert_eq!(
        asked,
        [
            one("one?", Some("1")),
            one("two?", Some("2")),
            one("three?", None),
            one("four?", None)
        ]
    );
    assert_eq!(
        store
            .report(open.session_id)
            .await
            .unwrap()
            .unwrap()
            .parent_id,
        Some(root)
    );
}

#[tokio::test]
async fn a_long_thread_is_read_from_its_end() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let root = investigated(&store, "fp", alert("fp").severity, completed()).await;
    for number in 1..=53 {
        let lease = ask(&store, root, &format!("{number}?")).await.lease;
        store
            .finish(lease, answer(&number.to_string()))
            .await
            .unwrap();
    }
    let thread = store.thread(root).await.unwrap().unwrap();
    assert_eq!((thread.older, thread.asked.len()), (3, 50));
    assert_eq!(
        (
            thread.asked[0].question.as_str(),
            thread.asked[49].answer.as_str()
        ),
        ("4?", "53")
    );
}

#[tokio::test]
async fn the_schema_refuses_a_question_with_a_fingerprint_and_a_revert_keeps_questions() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let root = investigated(&store, "fp", alert("fp").severity, completed()).await;
    let id = ask(&store, root, "why?").await.lease.session_id;
    for wrong in ["parent_id = NULL", "fingerprint = 'fp'"] {
        let refused = database
            .connection()
            .batch_execute(&format!(
                "UPDATE alert_sessions SET {wrong} WHERE session_id = '{id}'"
            ))
            .unwrap_err();
        assert!(
            refused.to_string().contains("alert_sessions_question"),
            "{refused}"
        );
    }
    revert_through(&database, "20261122000200");
    assert_eq!(
        database.text(&format!(
            "SELECT fingerprint FROM alert_sessions WHERE session_id = '{id}'"
        )),
        format!("question:{id}")
    );
    let refused = diesel::sql_query("UPDATE alert_sessions SET fingerprint = NULL")
        .execute(&mut database.connection());
    assert!(refused.is_err(), "the column has its constraint again");
}
