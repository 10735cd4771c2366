//! Whole investigations with tools of a hostile server.

use futures_util::future::join_all;
use serde_json::json;
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventType, TimelineEvent};
use uuid::Uuid;

use super::server::{HostileServer, tool};
use crate::support::process::{children_of, peak_memory};
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

/// Selects the recording that calls the hostile tools.
const MARK: &str = "HostileServer";
/// The behaviours that the model tries one after the other.
const BEHAVIOURS: [&str; 11] = [
    "crash",
    "crash_midway",
    "hang",
    "late",
    "garbage",
    "wrong_shape",
    "no_result",
    "twice",
    "progress",
    "fake",
    "ok",
];
/// Those that are never answered in time. They are tried at a server that need not answer anything in time.
const EXPIRED: [&str; 3] = ["hang", "late", "progress"];
/// A part of each result, in the order of the calls; the last three are at a server with long time-outs.
const RESULTS: [(&str, &str); 14] = [
    ("crash", "connection lost during the call"),
    ("crash_midway", "connection lost during the call"),
    ("hang", "no answer within 1000 ms"),
    ("late", "no answer within 1000 ms"),
    ("garbage", "answer after garbage"),
    ("wrong_shape", "no list"),
    ("no_result", "the answer has neither a result nor an error"),
    ("twice", "once"),
    ("progress", "progress, but no answer within 2000 ms"),
    ("fake", "owned"),
    ("ok", "answer of ok"),
    ("huge", "the answer is too large"),
    ("flood", "answer after the flood"),
    ("wait", "waited"),
];
/// The growth of the worker's peak memory, in MiB.
pub(super) const MAX_GROWTH: u64 = 200;

/// A recording that calls these tools one after the other.
pub(super) fn recording(tools: &[String]) -> String {
    let calls: String = tools
        .iter()
        .map(|tool| format!("  - chunks: [{{call: {{tool: {tool}, arguments: {{}}}}}}]\n"))
        .collect();
    format!(
        "name: hostile\nmatch: {MARK}\nprovider_state: true\nanswers:\n{calls}  - chunks: [{{text: \"Cause: a test [[*]].\"}}]\n"
    )
}

pub(super) async fn publish(system: &TestSystem) -> SessionId {
    let session = SessionId(Uuid::now_v7());
    let headers = json!({SESSION_ID: session.to_string()});
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: None,
        body: MARK.into(),
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    session
}

pub(super) fn results(seen: &[TimelineEvent]) -> Vec<String> {
    let results = seen
        .iter()
        .filter(|event| event.event_type == EventType::ToolResult);
    results.map(|event| event.content.clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_server_ends_no_investigation_and_blocks_no_other() {
    let server =
        HostileServer::start(&[&BEHAVIOURS[..], &["huge", "flood", "wait"]].concat()).await;
    let long = |n: u32| tool(&format!("{}{n:03}", "a.tool/of a-long.name".repeat(9)));
    let many = HostileServer::listing((0..300).map(long).collect()).await;
    let servers = [
        server.config_line("hostile", "tool_timeout: 3s, max_tool_timeout: 4s"),
        server.config_line("hasty", "tool_timeout: 1s, max_tool_timeout: 2s"),
        server.config_line("patient", "deny: [ok]"),
        many.config_line("zz-many", ""),
    ]
    .concat();
    let server_of = |name: &str| {
        if EXPIRED.contains(&name) {
            "hasty"
        } else {
            "hostile"
        }
    };
    let mut calls: Vec<String> = BEHAVIOURS
        .iter()
        .map(|name| format!("{}.{name}", server_of(name)))
        .collect();
    calls.extend(["patient.huge", "patient.flood", "patient.wait"].map(str::to_owned));
    let setup = Setup {
        servers: &servers,
        transcript: Some(recording(&calls)),
        sections: "defaults: {max_iterations: 30}\n",
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    let (mut worker, _) = system.worker("w1").await;
    let before = peak_memory(&worker);

    let hostile = publish(&system).await;
    let mut timeline = system.follow(hostile).await;
    server.called("wait", 1).await;
    // One server hangs in a call: another investigation with the same servers is not delayed.
    let other = system.publish().await;
    assert_eq!(
        system.follow(other).await.finish().await.event_type,
        EventType::SessionCompleted
    );
    server.go();
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );
    system.assert_invariants(hostile, &timeline.seen).await;

    let results = results(&timeline.seen);
    assert_eq!(results.len(), RESULTS.len(), "{results:#?}");
    for (result, (tool, expected)) in results.iter().zip(RESULTS) {
        assert!(result.contains(expected), "{tool}: {result}");
    }
    let sent: Vec<usize> = ["crash", "hang", "ok"]
        .iter()
        .map(|tool| server.calls(tool).len())
        .collect();
    assert_eq!(
        sent,
        [2, 1, 1],
        "a read-only call is sent again after a lost connection, and not after a time-out"
    );
    assert!(
        server.connections() >= 5,
        "each crash is followed by a new process"
    );

    let log = worker.log();
    assert!(
        !log.contains('\u{1b}') && !log.contains('\u{202e}'),
        "{log}"
    );
    assert!(
        !log.lines()
            .any(|line| line.starts_with("2026-11-22T00:00:00Z")),
        "{log}"
    );
    let growth = peak_memory(&worker) - before;
    println!(
        "peak memory of the worker: {before} MiB before, {} MiB after",
        before + growth
    );
    assert!(growth < MAX_GROWTH, "{growth} MiB");
    let running = children_of(worker.pid(), "bridge.sh").len();
    assert!(running <= 4, "{running} processes for four servers");
    worker.terminate();
    assert!(worker.ended().await.success());
    eventually("the processes of the servers have ended", async || {
        server.open() == 0 && many.open() == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_have_the_order_of_their_calls_whichever_comes_first() {
    let server = HostileServer::start(&["wait", "ok"]).await;
    let call = |tool: &str| format!("{{call: {{tool: hostile.{tool}, arguments: {{}}}}}}");
    let (calls, end) = (
        [call("wait"), call("ok")].join(", "),
        "{text: \"Cause: a test [[*]].\"}",
    );
    let recording = format!(
        "name: order\nmatch: {MARK}\nprovider_state: true\nanswers:\n  - chunks: [{calls}]\n  - chunks: [{end}]\n"
    );
    let (servers, transcript) = (server.config_line("hostile", ""), Some(recording));
    let system = TestSystem::start_with(Setup {
        servers: &servers,
        transcript,
        ..Setup::default()
    })
    .await;
    let (_worker, _) = system.worker("w1").await;
    let session = publish(&system).await;
    let mut timeline = system.follow(session).await;
    server.called("wait", 1).await;
    server.called("ok", 1).await;
    server.go();
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );
    assert_eq!(results(&timeline.seen), ["waited", "answer of ok"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_and_an_expired_session_cancel_their_call_at_the_server() {
    let ends = [EventType::SessionCancelled, EventType::SessionTimedOut];
    join_all(ends.map(assert_end_cancels_the_call)).await;
}

/// A session in whose call this end occurs.
async fn assert_end_cancels_the_call(expected: EventType) {
    let by_deadline = expected == EventType::SessionTimedOut;
    let server = HostileServer::start(&["hang"]).await;
    let setup = Setup {
        servers: &server.config_line("hostile", "allow: [hang]"),
        transcript: Some(recording(&["hostile.hang".to_owned()])),
        sections: "defaults: {wrap_up: 0s}\n",
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    if by_deadline {
        set_session_timeout(&system, "5s");
    }
    let (_worker, _) = system.worker("w1").await;
    let session = publish(&system).await;
    let mut timeline = system.follow(session).await;
    server.called("hang", 1).await;
    if !by_deadline {
        let mut cancel = system.tarsy("cancel", &["sessions", "cancel", &session.to_string()]);
        assert_eq!(cancel.finished().await.0, 0, "{}", cancel.log());
    }
    assert_eq!(server.cancelled("hang").await, "\"the call was given up\"");
    assert_eq!(timeline.finish().await.event_type, expected);
}

fn set_session_timeout(system: &TestSystem, timeout: &str) {
    let config = std::fs::read_to_string(system.file("tarsy.yaml")).unwrap();
    let worker = format!("worker:\n  session_timeout: {timeout}\n");
    std::fs::write(
        system.file("tarsy.yaml"),
        config.replace("worker:\n", &worker),
    )
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_whose_time_is_used_up_ends_with_an_analysis() {
    let server = HostileServer::start(&["hang"]).await;
    let setup = Setup {
        servers: &server.config_line("hostile", "allow: [hang]"),
        transcript: Some(recording(&["hostile.hang".to_owned()])),
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    set_session_timeout(&system, "12s");
    let (_worker, _) = system.worker("w1").await;
    let session = publish(&system).await;
    let mut timeline = system.follow(session).await;
    server.called("hang", 1).await;
    assert_eq!(server.cancelled("hang").await, "\"the call was given up\"");
    let end = timeline.finish().await;
    assert_eq!(end.event_type, EventType::SessionCompleted);
    assert_eq!(end.metadata["stop_reason"], "time_budget");
    let result = &results(&timeline.seen)[0];
    assert!(result.contains("not finished: the time"), "{result}");
    let analysis = timeline
        .seen
        .iter()
        .find(|event| event.event_type == EventType::FinalAnalysis)
        .unwrap();
    assert_eq!(analysis.metadata["forced_conclusion"], true);
    assert!(analysis.content.contains("Cause: a test"));
    let mut shown = system.tarsy("show", &["sessions", "show", &session.to_string()]);
    let (code, text) = shown.finished().await;
    assert_eq!(code, 0);
    assert!(text.contains("completed (time budget)"), "{text}");
}
