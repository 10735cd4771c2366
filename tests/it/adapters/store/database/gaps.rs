//! Gaps of sessions: lines `Not seen`, calls of unknown tools, and calls that gave nothing, counted from the journal.

use serde_json::json;

use tarsy_core::execution::entry::{
    Answer, Entry, FailureSource, NotSent, ParsedReply, ToolResult,
};
use tarsy_core::react::ReplyKind;
use tarsy_core::readable::presentation::NOTHING;
use tarsy_engine::ports::Journal;

use crate::adapters::store::fixture::{checkpoint, completed, running_session};
use crate::interfaces::commands::run_with;
use crate::support::postgres::TestDatabase;

fn result(tool: &str, content: &str) -> ToolResult {
    ToolResult {
        call_id: "c1".to_owned(),
        tool: tool.to_owned(),
        content: content.to_owned(),
        ..ToolResult::default()
    }
}

fn error(tool: &str, not_sent: Option<NotSent>) -> Entry {
    Entry::ToolResult(ToolResult {
        is_error: true,
        not_sent,
        ..result(tool, "Error: it did not work")
    })
}

/// Results of every kind, and two calls of tools that no agent has.
fn entries() -> Vec<Entry> {
    let timed_out = Entry::Failed {
        error: "k8s.logs: no answer within 60s".to_owned(),
        timeout: true,
        source: FailureSource::Tool,
        code: String::new(),
    };
    let unknown = ParsedReply {
        kind: ReplyKind::UnknownTool,
        thought: None,
        problem: Some("unknown tool 'host.top'".to_owned()),
        quotes: false,
    };
    vec![
        Entry::ToolResult(result("k8s.logs", NOTHING)),
        Entry::Observation(result("k8s.logs", &format!("Observation: {NOTHING}"))),
        Entry::ToolResult(result("k8s.logs", " \n")),
        Entry::ToolResult(result("k8s.logs", "a line")),
        error("k8s.logs", None),
        timed_out,
        error("k8s.get", None),
        error("k8s.get", Some(NotSent::UnfitArguments)),
        error("k8s.get", Some(NotSent::Unavailable)),
        Entry::ToolResult(result("k8s.fine", "a line")),
        error("tarsy.read_result", None),
        error("k8s.kubectl", Some(NotSent::UnknownTool)),
        Entry::Answer(Answer {
            reading: Some(Box::new(unknown)),
            ..Answer::default()
        }),
    ]
}

#[tokio::test]
async fn gaps_are_counted_from_the_journal_of_the_sessions_since_a_time() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let old = running_session(&store, 1).await;
    let new = running_session(&store, 1).await;
    for (lease, executions) in [&old, &new] {
        let mut written = checkpoint(executions[0], 1);
        written.entries = entries();
        store.append(*lease, written).await.unwrap();
        store.finish(*lease, completed()).await.unwrap();
    }
    let summary = "Cause: it is full\nNot seen: the metrics of the node";
    database.execute(&format!(
        "UPDATE alert_sessions SET executive_summary = '{summary}'"
    ));
    let lease = old.0;
    database.execute(&format!(
        "UPDATE alert_sessions SET created_at = now() - interval '40 days' WHERE session_id = '{}'",
        lease.session_id
    ));

    let env = [("DATABASE_URL", database.url())];
    let gaps = run_with(&env, &["tools", "gaps", "--json"], b"")
        .await
        .exits(0);
    let lease = new.0;
    let expected = json!({
        "sessions": 1,
        "has_older": false,
        "not_seen": [{
            "words": [],
            "sessions": 1,
            "newest": "the metrics of the node",
            "newest_session": lease.session_id,
        }],
        "tools": [
            {"tool": "k8s.logs", "calls": 5, "empty": 3, "timed_out": 1, "refused_arguments": 0, "unavailable": 0,
             "failed": 0},
            {"tool": "k8s.get", "calls": 3, "empty": 0, "timed_out": 0, "refused_arguments": 1, "unavailable": 1,
             "failed": 1},
        ],
        "unknown": [
            {"name": "host.top", "calls": 1, "sessions": 1},
            {"name": "k8s.kubectl", "calls": 1, "sessions": 1},
        ],
    });
    assert_eq!(gaps.json(), [expected]);

    let since = ["tools", "gaps", "--since", "60d", "--json"];
    let both = run_with(&env, &since, b"").await.exits(0).json();
    assert_eq!(both[0]["sessions"], 2);
    assert_eq!(both[0]["not_seen"][0]["words"], json!(["metrics", "node"]));
    assert_eq!(both[0]["tools"][0]["calls"], 10);
}
