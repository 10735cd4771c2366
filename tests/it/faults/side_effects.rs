//! Calls with side effects: each is sent at most once, whichever process dies during it.

use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventType, TimelineEvent};
use uuid::Uuid;

use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

const MARK: &str = "RestartDrill";
const TOOL: &str = "restart_deployment";
const ALLOWED: &[&str] = &[TOOL];

/// A recording that reads, restarts a deployment and reports.
fn transcript() -> String {
    format!(
        "name: restart\nmatch: {MARK}\nprovider_state: true\nanswers:\n  \
         - chunks: [{{call: {{tool: drill.{TOOL}, arguments: {{namespace: checkout, deployment: checkout}}}}}}]\n  \
         - chunks: [{{text: \"Cause: a drill [[*]]. The end.\"}}]\n"
    )
}

async fn start_system(watched: &[&str], allow: &[&str]) -> TestSystem {
    TestSystem::start_with(Setup {
        watched,
        allow,
        transcript: Some(transcript()),
        ..Setup::default()
    })
    .await
}

async fn publish(system: &TestSystem) -> SessionId {
    let session = SessionId(Uuid::now_v7());
    let headers = serde_json::json!({SESSION_ID: session.to_string()});
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: None,
        body: MARK.into(),
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    session
}

fn journal(system: &TestSystem) -> String {
    system
        .database
        .text("SELECT string_agg(kind, ' ' ORDER BY entry_no) FROM entries")
}

/// The result of the call in the conversation, and how often the call was sent.
fn result_and_sends(system: &TestSystem) -> (String, u32) {
    let result = system
        .database
        .text("SELECT string_agg(content, ' ') FROM entries WHERE kind = 'tool_result'");
    (result, system.tool_calls().values().sum())
}

async fn assert_completed(system: &TestSystem, session: SessionId, seen: &[TimelineEvent]) {
    assert_eq!(seen.last().unwrap().event_type, EventType::SessionCompleted);
    let left = "SELECT count(*) FROM alerts WHERE settled_at IS NULL";
    eventually("the alert is settled", async || {
        system.database.number(left) == 0
    })
    .await;
    system.assert_invariants(session, seen).await;
}

/// Asserts that the call was sent once, and that its outcome is recorded as unknown.
async fn assert_lost(system: &TestSystem, session: SessionId, seen: &[TimelineEvent]) {
    assert_completed(system, session, seen).await;
    assert_eq!(
        journal(system),
        "prompt prompt answer started lost tool_result answer ended"
    );
    let (result, sent) = result_and_sends(system);
    assert_eq!(sent, 1, "{result}");
    assert!(result.contains("Its outcome is unknown"), "{result}");
    let results: Vec<_> = seen
        .iter()
        .filter(|event| event.event_type == EventType::ToolResult)
        .collect();
    assert_eq!(results.len(), 1, "{results:#?}");
    assert_eq!(results[0].metadata["is_error"], true);
    assert_eq!(
        system.model_calls().values().sum::<u32>(),
        2,
        "the model answers once after the result"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changing_call_of_a_killed_worker_is_lost_and_never_sent_again() {
    for place in ["start", "end"] {
        let gate = format!("tool-{TOOL}-{place}");
        let mut system = start_system(&[&gate], ALLOWED).await;
        let (mut worker, _) = system.worker("w1").await;
        let session = publish(&system).await;
        let mut timeline = system.follow(session).await;
        let held = system.gates.next().await;
        assert_eq!(
            journal(&system),
            "prompt prompt answer started",
            "the call is journaled before it is sent"
        );
        worker.kill().await;
        system.gates.open_all();
        drop(held);
        let (_next, _) = system.worker("w2").await;
        timeline.finish().await;
        assert_lost(&system, session, &timeline.seen).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_worker_stores_no_result_of_a_call_that_another_one_marked_lost() {
    let gate = format!("tool-{TOOL}-end");
    let mut system = start_system(&[&gate], ALLOWED).await;
    let (first, _) = system.worker("w1").await;
    let session = publish(&system).await;
    let mut timeline = system.follow(session).await;
    let held = system.gates.next().await;
    first.pause();
    let (_second, _) = system.worker("w2").await;
    timeline.finish().await;
    held.open().await;
    first.resume();
    first.logged("lease lost").await;
    assert_lost(&system, session, &timeline.seen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changing_call_is_not_sent_again_when_its_server_was_killed() {
    let gate = format!("tool-{TOOL}-start");
    let mut system = start_system(&[&gate], ALLOWED).await;
    let (_worker, _) = system.worker("w1").await;
    let session = publish(&system).await;
    let mut timeline = system.follow(session).await;
    let held = system.gates.next().await;
    // The answer of the gate makes the server exit in the middle of the call.
    held.fail().await;
    timeline.finish().await;
    assert_lost(&system, session, &timeline.seen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changing_call_is_sent_only_where_the_configuration_allows_it() {
    for (allow, calls, kinds) in [
        (
            ALLOWED,
            1,
            "prompt prompt answer started tool_result answer ended",
        ),
        // The tool is not offered, so nothing was looked at, and the answer is asked for once more.
        (
            &[],
            0,
            "prompt prompt answer tool_result answer feedback answer ended",
        ),
    ] {
        let system = start_system(&[], allow).await;
        let (_worker, _) = system.worker("w1").await;
        let session = publish(&system).await;
        let mut timeline = system.follow(session).await;
        timeline.finish().await;
        assert_completed(&system, session, &timeline.seen).await;
        let (told, sent) = result_and_sends(&system);
        assert_eq!((journal(&system).as_str(), sent), (kinds, calls), "{told}");
    }
}
