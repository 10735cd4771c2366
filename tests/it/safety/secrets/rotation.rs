//! A token of a tool server is replaced while an investigation runs: the old one and the new one are masked.

use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;

use super::{dump, publish, stream};
use crate::support::grpc_recorder::GrpcRecorder;
use crate::support::process::Tarsy;
use crate::support::system::{Setup, TestSystem};
use crate::support::tool_server::{Form, ToolServer};

const MARK: &str = "RotationDrill";
/// No pattern matches them.
const OLD: &str = "plain.words.of.january";
const NEW: &str = "plain.words.of.february";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_replaced_during_a_session_is_masked_before_and_after() {
    let server = ToolServer::start(Form::Json).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{OLD}\n")).unwrap();
    server.accept_token(OLD);
    let line = format!(
        "  web: {{url: '{}', token_file: '{}'}}\n",
        server.url(),
        file.display()
    );
    let call =
        |tool: &str| format!("  - chunks: [{{call: {{tool: web.{tool}, arguments: {{}}}}}}]\n");
    let transcript = Some(format!(
        "name: rotation\nmatch: {MARK}\nanswers:\n{}{}{}  - chunks: [{{text: \"Cause: {OLD}, then {NEW} [[*]]. The end.\"}}]\n",
        call("tokens"),
        call("hold_look"),
        call("tokens"),
    ));
    let system = TestSystem::start_with(Setup {
        servers: &line,
        transcript,
        ..Setup::default()
    })
    .await;
    let recorder = GrpcRecorder::before(system.llm_addr()).await;
    let environment = system.env(system.database.url());
    let mut environment = environment.each().to_vec();
    environment.push(("TARSY_LLM_ADDR", recorder.address()));
    let mut worker = Tarsy::spawn("worker", &["worker", "--log-level", "debug"], &environment);
    worker.ready().await;

    let session: SessionId = publish(&system, serde_json::json!({}), MARK).await;
    let held = server.next_held().await;
    std::fs::write(&file, NEW).unwrap();
    server.accept_token(NEW);
    held.release();
    let mut timeline = system.follow(session).await;
    timeline.finish().await;
    assert_eq!(
        timeline.seen.last().unwrap().event_type,
        EventType::SessionCompleted
    );

    let results = "SELECT string_agg(result, ' | ' ORDER BY created_at) FROM tool_interactions";
    let results = system.database.text(results);
    assert!(
        results.contains("seen: [masked] and [masked]"),
        "the server returns both tokens: {results}"
    );
    let events = stream(&system, "TARSY_TIMELINE").await.into_iter();
    let places = [
        ("database", dump(&system)),
        (
            "timeline",
            events
                .map(|event| String::from_utf8_lossy(&event.payload).into_owned())
                .collect(),
        ),
        ("log", worker.log()),
        ("prompts", recorder.sent()),
    ];
    for (place, text) in places {
        assert!(!text.contains(OLD), "the old token is in the {place}");
        assert!(!text.contains(NEW), "the new token is in the {place}");
    }
}
