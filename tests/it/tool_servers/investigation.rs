//! An investigation whose recorded model makes given calls, and the results that it gets.

use serde_json::{Value, json};
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventType, TimelineEvent};
use uuid::Uuid;

use crate::support::system::{Setup, TestSystem};

/// Selects the recording.
pub(super) const MARK: &str = "ForeignServers";

/// A part of an answer that calls a tool.
pub(super) fn call(tool: &str, arguments: &Value) -> Value {
    json!({"call": {"tool": tool, "arguments": arguments}})
}

/// A recording that makes these calls in one answer, and then concludes.
pub(super) fn recording(calls: &[Value]) -> String {
    let last = json!({"chunks": [{"text": "Cause: found [[*]]."}]});
    json!({"name": "calls", "match": MARK, "answers": [{"chunks": calls}, last]}).to_string()
}

/// A result as the model gets it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) tool: String,
    pub(super) content: String,
    pub(super) is_error: bool,
}

/// Makes the calls in one investigation with these servers; returns the results in the order of the calls.
pub(super) async fn results(servers: &str, calls: &[Value]) -> Vec<Shown> {
    let setup = Setup {
        servers,
        transcript: Some(recording(calls)),
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    let (_worker, _) = system.worker("w1").await;
    let session = publish(&system, MARK).await;
    assert_eq!(
        ended(&system, session).await.last().unwrap().event_type,
        EventType::SessionCompleted
    );
    shown(&system, session)
}

/// Publishes an alert; returns the id of its session.
pub(super) async fn publish(system: &TestSystem, body: &str) -> SessionId {
    let session = SessionId(Uuid::now_v7());
    let headers = json!({SESSION_ID: session.to_string()});
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: None,
        body: body.into(),
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    session
}

/// The timeline of a session, to its end.
pub(super) async fn ended(system: &TestSystem, session: SessionId) -> Vec<TimelineEvent> {
    let mut timeline = system.follow(session).await;
    timeline.finish().await;
    timeline.seen
}

/// The results that the model of a session got, in the order of its calls.
pub(super) fn shown(system: &TestSystem, session: SessionId) -> Vec<Shown> {
    let sql = format!(
        "SELECT coalesce(json_agg(json_build_array(tool_name, content, body->'is_error') ORDER BY entry_no), '[]')::text \
         FROM entries WHERE session_id = '{}' AND kind = 'tool_result'",
        session.0
    );
    let rows: Vec<(String, String, Option<bool>)> =
        serde_json::from_str(&system.database.text(&sql)).unwrap();
    let shown = |(tool, content, is_error): (String, String, Option<bool>)| Shown {
        tool,
        content,
        is_error: is_error.unwrap_or(false),
    };
    rows.into_iter().map(shown).collect()
}
