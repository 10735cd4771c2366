//! Calls to a tool server over HTTP whose worker is killed.

use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use uuid::Uuid;

use crate::support::system::{Setup, TestSystem};
use crate::support::tool_server::{Fault, Form, ToolServer};

const MARK: &str = "HttpCallDrill";

/// Kills the worker while `tool` runs; returns the journal, and how often the tool was performed.
async fn killed_during(tool: &str, form: Form) -> (String, usize) {
    let server = ToolServer::start(form).await;
    let line = format!(
        "  web: {{url: '{}', allow: [hold_restart]}}\n",
        server.url()
    );
    let transcript = Some(format!(
        "name: http\nmatch: {MARK}\nprovider_state: true\nanswers:\n  \
         - chunks: [{{call: {{tool: web.{tool}, arguments: {{}}}}}}]\n  \
         - chunks: [{{text: \"Cause: a drill [[*]]. The end.\"}}]\n"
    ));
    let system = TestSystem::start_with(Setup {
        servers: &line,
        transcript,
        ..Setup::default()
    })
    .await;
    let (mut worker, _) = system.worker("w1").await;
    let session = SessionId(Uuid::now_v7());
    let headers = serde_json::json!({SESSION_ID: session.to_string()});
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: None,
        body: MARK.into(),
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    let held = server.next_held().await;
    assert_eq!(held.tool, tool);
    worker.kill().await;
    held.release();
    let (_next, _) = system.worker("w2").await;
    let mut timeline = system.follow(session).await;
    let again = async {
        loop {
            server.next_held().await.release();
        }
    };
    tokio::select! {
        _end = timeline.finish() => {}
        () = again => {}
    }
    assert_eq!(
        timeline.seen.last().unwrap().event_type,
        EventType::SessionCompleted
    );
    let journal = system
        .database
        .text("SELECT string_agg(kind, ' ' ORDER BY entry_no) FROM entries");
    (journal, server.performed().len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_call_over_http_is_repeated_after_the_worker_was_killed() {
    for form in [Form::Json, Form::Events] {
        let repeated = (
            "prompt prompt answer tool_result answer ended".to_owned(),
            2,
        );
        assert_eq!(killed_during("hold_look", form).await, repeated);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changing_call_over_http_is_lost_after_the_worker_was_killed() {
    for form in [Form::Json, Form::Events] {
        let lost = (
            "prompt prompt answer started lost tool_result answer ended".to_owned(),
            1,
        );
        assert_eq!(killed_during("hold_restart", form).await, lost);
    }
}

/// An answer calls `tool` once for each fault; returns the journal, and how many calls arrived and were performed.
async fn failed_during(tool: &str, keys: &str, faults: &[Fault]) -> (String, usize, usize) {
    let server = ToolServer::start(Form::Json).await;
    let line = format!(
        "  web: {{url: '{}', allow: [restart]{keys}}}\n",
        server.url()
    );
    let calls =
        (0..faults.len()).map(|n| format!("{{call: {{tool: web.{tool}, arguments: {{n: {n}}}}}}}"));
    let calls = calls.collect::<Vec<_>>().join(", ");
    let transcript = Some(format!(
        "name: http\nmatch: {MARK}\nprovider_state: true\nanswers:\n  \
         - chunks: [{calls}]\n  \
         - chunks: [{{text: \"Cause: a drill [[*]]. The end.\"}}]\n"
    ));
    let system = TestSystem::start_with(Setup {
        servers: &line,
        transcript,
        ..Setup::default()
    })
    .await;
    let (_worker, _) = system.worker("w1").await;
    server.fail_next(faults);
    let session = SessionId(Uuid::now_v7());
    let headers = serde_json::json!({SESSION_ID: session.to_string()});
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: None,
        body: MARK.into(),
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    let end = system.follow(session).await.finish().await;
    assert_eq!(end.event_type, EventType::SessionCompleted);
    let journal = system
        .database
        .text("SELECT string_agg(kind, ' ' ORDER BY entry_no) FROM entries");
    (
        journal,
        server.count("tools/call"),
        server.performed().len(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_call_that_changes_nothing_or_did_not_run_is_sent_again_over_http() {
    let done = "prompt prompt answer started tool_result answer ended";
    let lost = "prompt prompt answer started lost tool_result answer ended";
    let read = "prompt prompt answer tool_result answer ended";
    let declared = ", not_run_on: [404, 429]";
    for (tool, keys, fault, journal, arrived, performed) in [
        ("restart", "", Fault::Close, lost, 1, 1),
        ("restart", declared, Fault::Garbage, lost, 1, 1),
        ("restart", declared, Fault::Status(503), lost, 1, 0),
        ("restart", declared, Fault::Status(429), done, 2, 1),
        ("restart", declared, Fault::Status(404), done, 2, 1),
        ("look", "", Fault::Close, read, 2, 2),
        ("look", "", Fault::Status(429), read, 2, 1),
    ] {
        let seen = failed_during(tool, keys, &[fault]).await;
        assert_eq!(
            seen,
            (journal.to_owned(), arrived, performed),
            "{tool} {keys} {fault:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changing_call_that_a_status_answers_is_lost_and_sent_once() {
    let statuses = [
        400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 425, 429, 451, 500, 502, 503, 504, 529,
    ];
    let faults = statuses.map(Fault::Status);
    let (journal, arrived, performed) = failed_during("restart", "", &faults).await;
    assert_eq!((arrived, performed), (statuses.len(), 0), "{journal}");
    let kinds: Vec<_> = journal.split(' ').collect();
    let lost = kinds.iter().filter(|kind| **kind == "lost").count();
    assert_eq!(lost, statuses.len(), "{journal}");
    assert!(journal.ends_with(" answer ended"), "{journal}");
}
