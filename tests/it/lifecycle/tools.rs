//! Alerts while their MCP server is unavailable or busy, or changes its tools.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::execution::entry::ToolCall;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventType, TimelineEvent};
use tarsy_engine::ports::{ToolReply, ToolRequest, Tools};
use tarsy_mask::Mask;
use tarsy_mcp::{ServerConfig, Servers, StdioConfig, Transport};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::support::process::metric;
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/fixtures/mcp/one_at_a_time.sh"
);
const TEST_TIMEOUT: Duration = Duration::from_secs(180);
/// Selects the recording that calls the tool `wait`.
const MARK: &str = "BusyServer";
const RECORDING: &str = "name: busy\nmatch: BusyServer\nprovider_state: true\nanswers:\n  \
    - chunks: [{call: {tool: slow.wait, arguments: {}}}]\n  - chunks: [{text: \"Cause: it was busy [[*]].\"}]\n";

/// A server that handles one request at a time.
struct OneAtATime {
    folder: tempfile::TempDir,
}

impl OneAtATime {
    fn new(tools: &[&str]) -> Self {
        let server = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        server.offer(tools);
        std::fs::write(server.file("requests"), "").unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(server.file("go"))
            .status()
            .unwrap();
        assert!(made.success());
        server
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn offer(&self, tools: &[&str]) {
        let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
        let tools: Vec<_> = tools.iter().map(tool).collect();
        std::fs::write(self.file("tools"), serde_json::to_string(&tools).unwrap()).unwrap();
    }

    /// The number of requests for the list of tools.
    fn list_requests(&self) -> usize {
        self.requests().matches("\"tools/list\"").count()
    }

    fn requests(&self) -> String {
        std::fs::read_to_string(self.file("requests")).unwrap()
    }

    /// Ends the waiting call.
    async fn finish_call(&self) {
        tokio::fs::write(self.file("go"), "go\n").await.unwrap();
    }

    fn args(&self) -> Vec<String> {
        vec![
            SCRIPT.to_owned(),
            self.folder.path().to_str().unwrap().to_owned(),
        ]
    }

    /// The server as a line of `mcp_servers`.
    fn config_line(&self) -> String {
        format!(
            "  slow: {{command: sh, args: [{}]}}\n",
            self.args().join(", ")
        )
    }

    fn start(&self) -> Servers {
        let program = StdioConfig {
            command: "sh".to_owned(),
            args: self.args(),
            ..StdioConfig::default()
        };
        let config = ServerConfig::new("slow", Transport::Stdio(program));
        Servers::start(vec![config], Mask::default(), &CancellationToken::new()).unwrap()
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, future)
        .await
        .expect("took too long")
}

async fn call(servers: &Servers, tool: &str) -> ToolReply {
    let tool = format!("slow.{tool}");
    let call = ToolCall {
        id: "1".to_owned(),
        tool,
        arguments: "{}".to_owned(),
        read_only: true,
    };
    within(Box::pin(
        servers.call(ToolRequest::new(&call, TEST_TIMEOUT)),
    ))
    .await
}

async fn offered(servers: &Servers) -> Vec<String> {
    let listing = within(servers.list(&["slow".to_owned()])).await;
    assert_eq!(listing.unavailable, []);
    listing.tools.into_iter().map(|tool| tool.name).collect()
}

#[tokio::test]
async fn a_server_lists_its_tools_once_and_again_after_a_change_or_a_crash() {
    let server = OneAtATime::new(&["change"]);
    let servers = server.start();
    for _ in 0..3 {
        assert_eq!(offered(&servers).await, ["slow.change"]);
    }
    assert_eq!(server.list_requests(), 1);

    server.offer(&["change", "large"]);
    call(&servers, "change").await;
    eventually("the changed list is offered", async || {
        offered(&servers).await.len() == 2
    })
    .await;
    assert_eq!(server.list_requests(), 2);
    offered(&servers).await;
    assert_eq!(server.list_requests(), 2);
    servers.close().await;
}

#[tokio::test]
async fn a_busy_server_still_offers_the_tools_that_it_listed_before() {
    let server = OneAtATime::new(&["wait"]);
    let servers = server.start();
    offered(&servers).await;
    let asked = async {
        eventually("the call has arrived", async || {
            server.requests().contains("\"wait\"")
        })
        .await;
        assert_eq!(offered(&servers).await, ["slow.wait"]);
        server.finish_call().await;
    };
    tokio::join!(call(&servers, "wait"), asked);
    assert_eq!(server.list_requests(), 1);
    servers.close().await;
}

#[tokio::test]
async fn a_too_large_answer_fails_at_once_and_the_next_call_is_answered() {
    let server = OneAtATime::new(&["large", "change"]);
    let servers = server.start();
    offered(&servers).await;
    for _ in 0..2 {
        let ToolReply::Answered {
            content,
            is_error: true,
        } = call(&servers, "large").await
        else {
            panic!("the answer is no error")
        };
        assert!(
            content.starts_with("the answer is too large: 17825"),
            "{content}"
        );
        assert!(
            content.ends_with(" bytes, and at most 16777216 are read. Ask for less."),
            "{content}"
        );
    }
    assert!(matches!(
        call(&servers, "change").await,
        ToolReply::Answered {
            is_error: false,
            ..
        }
    ));
    servers.close().await;
}

/// Publishes an alert; returns the id of its session.
async fn publish(system: &TestSystem, body: &str) -> SessionId {
    let session = SessionId(Uuid::now_v7());
    let headers = json!({SESSION_ID: session.to_string(), "Tarsy-Fingerprint": "one"});
    let body = body.as_bytes().to_vec();
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: None,
        body,
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    session
}

async fn timeline(system: &TestSystem, session: SessionId) -> Vec<TimelineEvent> {
    let mut timeline = system.follow(session).await;
    timeline.finish().await;
    timeline.seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alerts_that_only_join_do_not_wait_for_a_busy_tool_server() {
    let server = OneAtATime::new(&["wait"]);
    let (servers, transcript) = (server.config_line(), Some(RECORDING.to_owned()));
    let system = TestSystem::start_with(Setup {
        servers: &servers,
        transcript,
        ..Setup::default()
    })
    .await;
    let (_worker, _) = system.worker("w1").await;
    let first = publish(&system, MARK).await;
    eventually("the call has arrived", async || {
        server.requests().contains("\"wait\"")
    })
    .await;
    let mut joined = Vec::new();
    for _ in 0..20 {
        joined.push(publish(&system, MARK).await);
    }
    for alert in joined {
        let seen = timeline(&system, alert).await;
        assert_eq!(seen.last().unwrap().event_type, EventType::Joined);
    }
    assert_eq!(server.list_requests(), 1, "a joining alert needs no tools");
    server.finish_call().await;
    assert_eq!(
        timeline(&system, first).await.last().unwrap().event_type,
        EventType::SessionCompleted
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_waits_for_a_tool_server_then_runs_without_it_and_covers_no_alert() {
    let server = OneAtATime::new(&["change"]);
    std::fs::write(server.file("down"), "").unwrap();
    let (servers, tool_wait, cooldown) = (
        server.config_line(),
        Duration::from_secs(2),
        Duration::from_secs(3_600),
    );
    let system = TestSystem::start_with(Setup {
        servers: &servers,
        tool_wait,
        cooldown,
        ..Setup::default()
    })
    .await;
    let (worker, address) = system.worker("w1").await;
    let body = tarsy_drill::builtin("oom-killed").unwrap().alert;

    let first = publish(&system, body).await;
    worker
        .logged("alert waits for mcp servers: unavailable: slow")
        .await;
    let seen = timeline(&system, first).await;
    assert_eq!(
        seen[0].content,
        "Investigation started without the tools of slow: unavailable"
    );
    assert!(
        seen[0].metadata["unavailable_servers"]["slow"].is_string(),
        "{:?}",
        seen[0].metadata
    );
    assert_eq!(seen.last().unwrap().event_type, EventType::SessionCompleted);
    assert!(metric(&address, "tarsy_tool_server_waits_total", "").await >= 1.0);
    assert!(
        (metric(&address, "tarsy_sessions_without_tools_total", "").await - 1.0).abs()
            < f64::EPSILON
    );
    let sql = format!(
        "SELECT content FROM entries WHERE session_id = '{}' AND role = 'system'",
        first.0
    );
    let prompt = system.database.text(&sql);
    assert!(
        prompt.contains("could not be reached, so none of their tools can be called: slow."),
        "{prompt}"
    );
    let mut watch = system.tarsy("watch", &["watch", &first.to_string()]);
    let (_, shown) = watch.finished().await;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        shown.contains("started without tools of slow, chain default"),
        "{shown}"
    );

    std::fs::remove_file(server.file("down")).unwrap();
    let second = publish(&system, body).await;
    let seen = timeline(&system, second).await;
    assert_eq!(
        seen[0].content, "Investigation started",
        "the first session does not cover this alert"
    );
    assert_eq!(seen.last().unwrap().event_type, EventType::SessionCompleted);
    let third = publish(&system, body).await;
    assert_eq!(
        timeline(&system, third).await[0].metadata["joined_session_id"],
        second.to_string()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_timeline_says_how_many_tools_are_too_many_for_an_agent() {
    let names: Vec<String> = (0..130).map(|number| format!("tool_{number:03}")).collect();
    let server = OneAtATime::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let servers = server.config_line();
    let system = TestSystem::start_with(Setup {
        servers: &servers,
        ..Setup::default()
    })
    .await;
    let (_worker, _) = system.worker("w1").await;
    let session = publish(&system, tarsy_drill::builtin("oom-killed").unwrap().alert).await;
    let seen = timeline(&system, session).await;
    assert_eq!(
        seen[0].content,
        "Investigation started; 11 tools are too many for sre and left out"
    );
    assert_eq!(seen[0].metadata["omitted_tools"], json!({"sre": 11}));
    assert_eq!(seen.last().unwrap().event_type, EventType::SessionCompleted);
    let sql = format!(
        "SELECT content FROM entries WHERE session_id = '{}' AND role = 'system'",
        session.0
    );
    let prompt = system.database.text(&sql);
    assert!(
        prompt.contains("so none of these can be called: slow__tool_119, slow__tool_120, "),
        "{prompt}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_waits_beyond_the_limit_for_a_required_server_and_has_its_tools_then() {
    let server = OneAtATime::new(&["change"]);
    std::fs::write(server.file("down"), "").unwrap();
    let servers = server
        .config_line()
        .replace("{command", "{required: true, command");
    let tool_wait = Duration::ZERO;
    let system = TestSystem::start_with(Setup {
        servers: &servers,
        tool_wait,
        ..Setup::default()
    })
    .await;
    let (worker, address) = system.worker("w1").await;
    let session = publish(&system, tarsy_drill::builtin("oom-killed").unwrap().alert).await;
    worker
        .logged("alert waits for mcp servers: unavailable: slow")
        .await;
    assert_eq!(
        system
            .database
            .number("SELECT count(*) FROM alert_sessions"),
        0
    );
    std::fs::remove_file(server.file("down")).unwrap();
    let seen = timeline(&system, session).await;
    assert_eq!(seen[0].content, "Investigation started");
    assert_eq!(seen.last().unwrap().event_type, EventType::SessionCompleted);
    assert_eq!(
        metric(&address, "tarsy_sessions_without_tools_total", "").await,
        0.0
    );
}
