//! The MCP client with real servers as child processes.

mod child;
mod http;
mod names;
mod scope;

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tarsy_core::execution::entry::ToolCall;
use tarsy_engine::ports::{Listing, ToolReply, ToolRequest, Tools};
use tarsy_mask::Mask;
use tarsy_mcp::{ServerConfig, Servers, StdioConfig, Transport};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

use crate::support::wait::eventually;

/// Far longer than any step here takes: only a hanging test reaches it.
const TEST_TIMEOUT: Duration = Duration::from_secs(180);

const POD: &str = r#"{"namespace":"checkout","pod":"checkout-7d9f8b6c5-x2x9p"}"#;

/// The client of an evidence server named `drill`, the server's gates and the file of its calls.
struct Fixture {
    folder: TempDir,
    servers: Servers,
    shutdown: CancellationToken,
    gates: UnixListener,
}

impl Fixture {
    fn drill() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = evidence_server("drill", "oom-killed");
        program(&mut config).env.insert(
            "TARSY_GATES".to_owned(),
            folder.path().join("gates").to_str().unwrap().to_owned(),
        );
        Self::new(folder, config, Mask::default())
    }

    /// A server without gates whose only tool, `look`, answers with `text`.
    fn with_text(text: &str, mask: Mask) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("evidence.yaml"), LOOK).unwrap();
        std::fs::write(folder.path().join("text"), text).unwrap();
        let config = evidence_server("drill", folder.path().to_str().unwrap());
        Self::new(folder, config, mask)
    }

    fn new(folder: TempDir, mut config: ServerConfig, mask: Mask) -> Self {
        let gates = UnixListener::bind(folder.path().join("gates")).unwrap();
        let calls = folder.path().join("calls").to_str().unwrap().to_owned();
        program(&mut config)
            .env
            .insert("TARSY_TOOL_CALLS_FILE".to_owned(), calls);
        let shutdown = CancellationToken::new();
        let servers = Servers::start(vec![config], mask, &shutdown).unwrap();
        Self {
            folder,
            servers,
            shutdown,
            gates,
        }
    }

    /// Waits until a call is at a gate. Returns the line with the name and detail of the gate.
    async fn at_gate(&self) -> (UnixStream, String) {
        let (stream, _) = within(self.gates.accept()).await.unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        within(reader.read_line(&mut line)).await.unwrap();
        (reader.into_inner(), line)
    }

    /// Opens the next two gates, one after the other.
    async fn open_two_gates(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for _ in 0..2 {
            let (mut stream, line) = self.at_gate().await;
            stream.write_all(b"open\n").await.unwrap();
            lines.push(line);
        }
        lines
    }

    fn calls(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("calls")).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// `evidence` is the name of a drill, or a folder.
fn evidence_server(name: &str, evidence: &str) -> ServerConfig {
    let args = vec!["evidence-server".to_owned(), evidence.to_owned()];
    let program = StdioConfig {
        command: env!("CARGO_BIN_EXE_tarsy").to_owned(),
        args,
        ..StdioConfig::default()
    };
    ServerConfig::new(name, Transport::Stdio(program))
}

fn program(config: &mut ServerConfig) -> &mut StdioConfig {
    match &mut config.transport {
        Transport::Stdio(program) => program,
        Transport::Http(address) => panic!("{address:?}"),
    }
}

fn call(tool: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: "1".to_owned(),
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
        read_only: true,
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, future)
        .await
        .expect("took too long")
}

fn content(reply: ToolReply) -> (String, bool) {
    match reply {
        ToolReply::Answered { content, is_error } => (content, is_error),
        ToolReply::Refused { faults } => (faults, true),
        ToolReply::NotSent { error } | ToolReply::NoAnswer { error, .. } => {
            panic!("no answer: {error}")
        }
    }
}

const LOOK: &str = "
tools:
  look:
    description: Looks.
    read_only: true
    schema: {type: object}
    answers:
      - {contains: {what: hang}, hang: true}
      - {contains: {what: fail}, file: text, is_error: true}
      - {file: text}
";

#[tokio::test]
async fn only_read_only_tools_are_offered_sorted_by_name() {
    let fixture = Fixture::drill();
    let Listing { tools, unavailable } = within(fixture.servers.list(&["drill".to_owned()])).await;
    assert_eq!(unavailable, []);
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "drill.deployment_history",
            "drill.describe_pod",
            "drill.pod_events",
            "drill.pod_logs",
            "drill.query_range"
        ]
    );
    assert!(
        tools
            .iter()
            .all(|tool| tool.read_only && !tool.description.is_empty())
    );
    let schema: Value = serde_json::from_str(&tools[0].parameters_schema).unwrap();
    assert_eq!(schema["required"], json!(["namespace", "deployment"]));
    fixture.servers.close().await;
}

#[tokio::test]
async fn a_call_is_answered_without_secrets_and_recorded_once() {
    let fixture = Fixture::drill();
    let call = call("drill.describe_pod", POD);
    let (reply, gates) = tokio::join!(
        within(fixture.servers.call(ToolRequest::new(&call, TEST_TIMEOUT))),
        fixture.open_two_gates()
    );
    let (text, is_error) = content(reply);
    assert!(!is_error);
    assert!(
        text.contains("OOMKilled") && text.contains("DB_PASSWORD:           [masked]"),
        "{text}"
    );
    assert!(!text.contains("drill-not-a-real-password"));
    assert_eq!(
        gates,
        [
            format!("tool-describe_pod-start {POD}\n"),
            format!("tool-describe_pod-end {POD}\n")
        ]
    );
    let arguments: Value = serde_json::from_str(POD).unwrap();
    assert_eq!(
        fixture.calls(),
        [json!({"tool": "describe_pod", "arguments": arguments})]
    );
    fixture.servers.close().await;
}

#[tokio::test]
async fn a_failing_tool_and_an_invalid_call_are_answers() {
    let fixture = Fixture::with_text("disk on fire", Mask::default());
    let ask = async |tool: &str, arguments: &str| {
        content(
            within(
                fixture
                    .servers
                    .call(ToolRequest::new(&call(tool, arguments), TEST_TIMEOUT)),
            )
            .await,
        )
    };
    assert_eq!(
        ask("drill.look", r#"{"what":"fail"}"#).await,
        ("disk on fire".to_owned(), true)
    );
    assert_eq!(
        ask("drill.look", "").await,
        ("disk on fire".to_owned(), false)
    );
    assert_eq!(
        ask("drill.nothing", "{}").await,
        ("there is no tool \"nothing\"".to_owned(), true)
    );
    let (text, is_error) = ask("drill.look", "[1]").await;
    assert!(
        is_error && text.starts_with("the arguments are not a JSON object: "),
        "{text}"
    );
    fixture.servers.close().await;
}

#[tokio::test]
async fn the_answer_to_unknown_arguments_names_nothing_that_was_recorded() {
    let fixture = Fixture::drill();
    let call = call(
        "drill.describe_pod",
        r#"{"namespace":"checkout","pod":"other"}"#,
    );
    let (reply, _) = tokio::join!(
        within(fixture.servers.call(ToolRequest::new(&call, TEST_TIMEOUT))),
        fixture.open_two_gates()
    );
    let (text, is_error) = content(reply);
    assert!(
        is_error && text.contains("\"other\" not found") && !text.contains("x2x9p"),
        "{text}"
    );
    fixture.servers.close().await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_has_no_answer_and_the_next_one_works() {
    let fixture = Fixture::with_text("here", Mask::default());
    // Starts the process, so that the short timeout covers only the call.
    within(fixture.servers.list(&["drill".to_owned()])).await;
    let hang = call("drill.look", r#"{"what":"hang"}"#);
    let reply = within(
        fixture
            .servers
            .call(ToolRequest::new(&hang, Duration::from_millis(50))),
    )
    .await;
    assert_eq!(
        reply,
        ToolReply::NoAnswer {
            error: "drill.look: no answer within 50 ms".to_owned(),
            timeout: true
        }
    );
    let reply = within(
        fixture
            .servers
            .call(ToolRequest::new(&call("drill.look", "{}"), TEST_TIMEOUT)),
    )
    .await;
    assert_eq!(content(reply), ("here".to_owned(), false));
    fixture.servers.close().await;
}

#[tokio::test]
async fn a_call_whose_server_dies_has_no_answer_and_the_server_is_started_again() {
    let fixture = Fixture::drill();
    let look = call("drill.describe_pod", POD);
    let dying = async {
        let (mut stream, line) = fixture.at_gate().await;
        assert!(line.starts_with("tool-describe_pod-start "));
        stream.write_all(b"fail\n").await.unwrap();
    };
    let (reply, ()) = tokio::join!(
        within(fixture.servers.call(ToolRequest::new(&look, TEST_TIMEOUT))),
        dying
    );
    assert_eq!(
        reply,
        ToolReply::NoAnswer {
            error: "drill.describe_pod: connection lost during the call: Transport closed"
                .to_owned(),
            timeout: false
        }
    );
    let (reply, _) = tokio::join!(
        within(fixture.servers.call(ToolRequest::new(&look, TEST_TIMEOUT))),
        fixture.open_two_gates()
    );
    assert!(content(reply).0.contains("OOMKilled"));
    // One line per call: the client has sent no call twice.
    assert_eq!(fixture.calls().len(), 2);
    fixture.servers.close().await;
}

/// Whether every thread is stopped. True where the system has no `/proc`.
fn is_stopped(pid: rustix::process::Pid) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero().get()));
    let mut stats = threads
        .into_iter()
        .flatten()
        .flatten()
        .flat_map(|thread| std::fs::read_to_string(thread.path().join("stat")));
    stats.all(|stat| stat.contains(") T "))
}

#[tokio::test]
async fn a_hung_server_is_replaced_for_the_next_call() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let mut config = evidence_server("drill", "oom-killed");
    let server = std::mem::replace(&mut program(&mut config).command, "sh".to_owned());
    program(&mut config).args = vec![
        "-c".to_owned(),
        format!(
            "echo $$ >> {}; exec {server} {}",
            pids.display(),
            program(&mut config).args.join(" ")
        ),
    ];
    let servers = Servers::start(vec![config], Mask::default(), &CancellationToken::new()).unwrap();
    let look = call("drill.describe_pod", POD);
    content(within(servers.call(ToolRequest::new(&look, TEST_TIMEOUT))).await);

    let pid = std::fs::read_to_string(&pids)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    eventually("every thread of the server has stopped", async || {
        is_stopped(pid)
    })
    .await;
    let reply = within(servers.call(ToolRequest::new(&look, Duration::from_millis(50)))).await;
    assert!(
        matches!(reply, ToolReply::NoAnswer { timeout: true, .. }),
        "{reply:?}"
    );
    content(within(servers.call(ToolRequest::new(&look, TEST_TIMEOUT))).await);
    assert_eq!(std::fs::read_to_string(&pids).unwrap().lines().count(), 2);
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    servers.close().await;
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let fixture = Fixture::drill();
    let look = call("drill.describe_pod", POD);
    let calling = fixture.servers.call(ToolRequest::new(&look, TEST_TIMEOUT));
    let (mut stream, _) = tokio::select! {
        reply = calling => panic!("answered through a closed gate: {reply:?}"),
        arrived = fixture.at_gate() => arrived,
    };
    // The server cancels the call, so its end of the gate's connection closes.
    assert_eq!(within(stream.read(&mut [0; 8])).await.unwrap(), 0);
    fixture.servers.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_start_offers_no_tools_and_gets_no_calls() {
    let mut missing = evidence_server("missing", "oom-killed");
    program(&mut missing).command = "/no/such/program".to_owned();
    let mute = evidence_server("mute", "no-such-drill");
    let shutdown = CancellationToken::new();
    let servers = Servers::start(vec![missing, mute], Mask::default(), &shutdown).unwrap();
    let names = [
        "missing".to_owned(),
        "mute".to_owned(),
        "unknown".to_owned(),
    ];
    let Listing { tools, unavailable } = within(servers.list(&names)).await;
    assert_eq!(tools, []);
    assert_eq!(
        unavailable
            .iter()
            .map(|server| server.server.as_str())
            .collect::<Vec<_>>(),
        names
    );
    assert!(
        unavailable[1]
            .why
            .starts_with("mcp server \"mute\": protocol error: "),
        "{unavailable:?}"
    );
    for (tool, fault) in [
        (
            "missing.look",
            "mcp server \"missing\" does not start: /no/such/program: ",
        ),
        ("mute.look", "mcp server \"mute\": protocol error: "),
        ("unknown.look", "there is no mcp server \"unknown\""),
        ("nodot", "there is no mcp server \"nodot\""),
    ] {
        match within(servers.call(ToolRequest::new(&call(tool, "{}"), TEST_TIMEOUT))).await {
            ToolReply::NotSent { error } => assert!(error.starts_with(fault), "{error}"),
            reply @ (ToolReply::Answered { .. }
            | ToolReply::Refused { .. }
            | ToolReply::NoAnswer { .. }) => {
                panic!("{reply:?}")
            }
        }
    }
    servers.close().await;
}

#[tokio::test]
async fn a_large_result_reaches_the_engine_whole() {
    let text: String = (1..=2_000).map(|line| format!("line {line}\n")).collect();
    let fixture = Fixture::with_text(&text, Mask::default());
    let reply = within(
        fixture
            .servers
            .call(ToolRequest::new(&call("drill.look", "{}"), TEST_TIMEOUT)),
    )
    .await;
    assert_eq!(content(reply), (text, false));
    fixture.servers.close().await;
}

#[tokio::test]
async fn a_configured_secret_is_masked_in_results() {
    let mask = Mask::new(["correct horse".to_owned()]);
    let fixture = Fixture::with_text("it says correct horse twice: correct horse", mask);
    let reply = within(
        fixture
            .servers
            .call(ToolRequest::new(&call("drill.look", "{}"), TEST_TIMEOUT)),
    )
    .await;
    assert_eq!(
        content(reply),
        ("it says [masked] twice: [masked]".to_owned(), false)
    );
    fixture.servers.close().await;
}

#[tokio::test]
async fn a_server_ends_with_its_input_even_during_a_call() {
    let folder = tempfile::tempdir().unwrap();
    let gates = UnixListener::bind(folder.path().join("gates")).unwrap();
    let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_tarsy"))
        .args(["evidence-server", "oom-killed"])
        .env("TARSY_GATES", folder.path().join("gates"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
            "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "pod_events", "arguments": {}}}),
    ] {
        input
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }
    let (_at_the_gate, _) = within(gates.accept()).await.unwrap();
    drop(input);
    let ended = tokio::time::timeout(Duration::from_secs(3), child.wait()).await;
    assert!(
        ended
            .expect("the server outlives its input")
            .unwrap()
            .success()
    );
}

#[tokio::test]
async fn the_children_end_when_the_worker_stops() {
    let fixture = Fixture::drill();
    let look = call("drill.describe_pod", POD);
    let ask = fixture.servers.call(ToolRequest::new(&look, TEST_TIMEOUT));
    let stop = async {
        let (mut stream, _) = fixture.at_gate().await;
        fixture.shutdown.cancel();
        // The child exits, so its end of the gate's connection closes.
        assert_eq!(within(stream.read(&mut [0; 8])).await.unwrap(), 0);
    };
    let (reply, ()) = tokio::join!(within(ask), stop);
    assert!(
        matches!(reply, ToolReply::NoAnswer { timeout: false, .. }),
        "{reply:?}"
    );
    within(fixture.servers.close()).await;
    let reply = within(fixture.servers.call(ToolRequest::new(&look, TEST_TIMEOUT))).await;
    assert_eq!(
        reply,
        ToolReply::NotSent {
            error: "mcp server \"drill\": protocol error: the worker is stopping".to_owned()
        }
    );
}

#[test]
fn a_server_name_that_cannot_be_part_of_tool_names_is_refused() {
    let shutdown = CancellationToken::new();
    let start = |names: &[&str]| {
        let configs = names
            .iter()
            .map(|name| evidence_server(name, "oom-killed"))
            .collect();
        Servers::start(configs, Mask::default(), &shutdown)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    assert_eq!(
        start(&["a.b"]),
        Err("mcp server \"a.b\": may contain only letters, digits, _ and -".to_owned())
    );
    assert_eq!(
        start(&["a", "a"]),
        Err("mcp server \"a\" is configured twice".to_owned())
    );
    assert_eq!(start(&["a", "b-c"]), Ok(()));
}

#[tokio::test]
async fn a_server_does_not_see_the_environment_of_the_worker() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let mut config = evidence_server("nosy", "oom-killed");
    program(&mut config).command = "sh".to_owned();
    program(&mut config).args = vec!["-c".to_owned(), format!("env > {}", seen.display())];
    program(&mut config)
        .env
        .insert("GIVEN".to_owned(), "yes".to_owned());
    let servers = Servers::start(vec![config], Mask::default(), &CancellationToken::new()).unwrap();
    assert_eq!(within(servers.list(&["nosy".to_owned()])).await.tools, []);
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(
        std::env::var_os("CARGO_MANIFEST_DIR").is_some(),
        "the test needs a variable that has to be hidden"
    );
    assert!(
        seen.contains("GIVEN=yes\n")
            && seen.contains("PATH=")
            && !seen.contains("CARGO_MANIFEST_DIR"),
        "{seen}"
    );
    servers.close().await;
}
