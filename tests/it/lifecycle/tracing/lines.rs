//! The lines of the log that belong to a session.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Traced, trace_of};
use crate::support::process::Tarsy;

/// Messages about the process. Every other line of a worker that runs one session belongs to the session.
const OF_THE_PROCESS: [&str; 10] = [
    "metrics and probes are served",
    "nats is connected",
    "waiting for ",
    "worker has started",
    "claiming started",
    "mcp server",
    "SIGTERM: shutting down",
    "worker is drained",
    "event: ",
    "database",
];

fn lines(process: &Tarsy) -> Vec<Value> {
    process
        .log()
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

fn message(line: &Value) -> &str {
    line["message"].as_str().unwrap_or_default()
}

/// The iteration lines, each as its number, its tools and whether it has all fields.
fn iterations(lines: &[Value]) -> Vec<(u64, String)> {
    let of = lines
        .iter()
        .filter(|line| message(line) == "iteration ended");
    of.map(|line| {
        for field in [
            "agent",
            "provider",
            "model",
            "input_tokens",
            "output_tokens",
            "duration_ms",
        ] {
            assert!(!line[field].is_null(), "{field} in {line}");
        }
        assert_eq!(line["outcome"], "answered", "{line}");
        (
            line["iteration"].as_u64().unwrap(),
            line["tools"].as_str().unwrap().to_owned(),
        )
    })
    .collect()
}

fn assert_ids(lines: &[Value], trace: &str, session: &str) {
    let is_of_process = |line: &&Value| {
        OF_THE_PROCESS
            .iter()
            .any(|known| message(line).starts_with(known))
    };
    let of_session: Vec<&Value> = lines.iter().filter(|line| !is_of_process(line)).collect();
    assert!(of_session.len() >= 2, "{lines:#?}");
    for line in of_session {
        assert_eq!(line["session_id"], session, "{line}");
        assert_eq!(line["trace_id"], trace, "{line}");
        assert_eq!(line["span_id"].as_str().map(str::len), Some(16), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_line_of_a_session_has_its_ids_and_each_iteration_has_one_line() {
    let mut traced = Traced::start(&["tool-pod_logs-start"], &[]).await;
    traced
        .system
        .replace_llm_service(&["--pace", "0ms", "--log", "json"], &[])
        .await;
    let mut first = traced.worker("w1").await;
    let session = traced.system.publish().await;
    // Iterations 1 and 2 have been committed; the third waits in a tool call.
    let arrived = traced.system.gates.next().await;
    first.logged("\"iteration\":1").await;
    first.kill().await;
    traced.system.gates.open_all();
    arrived.open().await;
    let mut second = traced.worker("w2").await;
    traced.completed(session).await;
    traced.ended(&mut [&mut second]).await;

    let (id, trace) = (session.to_string(), trace_of(session));
    let (before, after) = (lines(&first), lines(&second));
    for lines in [&before, &after] {
        assert_ids(lines, &trace, &id);
    }
    let all: Vec<(u64, String)> = [iterations(&before), iterations(&after)].concat();
    let numbers: Vec<u64> = all.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [1, 2, 3, 4], "{all:?}");
    let tools: BTreeSet<&str> = all
        .iter()
        .flat_map(|(_, tools)| tools.split(','))
        .filter(|tool| !tool.is_empty())
        .collect();
    assert_eq!(tools.len(), 5, "{tools:?}");
    let ends: Vec<&Value> = before
        .iter()
        .chain(&after)
        .filter(|line| message(line) == "session ended")
        .collect();
    let [end] = ends[..] else { panic!("{ends:?}") };
    assert_eq!(
        (&end["status"], &end["iterations"]),
        (&"completed".into(), &4.into())
    );
    assert!(end["duration_ms"].as_u64().unwrap() > 0);
    let batches = before
        .iter()
        .chain(&after)
        .filter(|line| message(line) == "tool calls ended");
    let done: u64 = batches
        .clone()
        .map(|line| line["done"].as_u64().unwrap())
        .sum();
    assert_eq!((batches.count(), done), (3, 5), "one line for each batch");
    let is_of_execution =
        |line: &&Value| ["iteration ended", "tool calls ended"].contains(&message(line));
    let of_executions = after.iter().filter(is_of_execution);
    assert!(
        of_executions
            .clone()
            .all(|line| line["execution_id"].is_string())
            && of_executions.count() > 0
    );

    // The LLM service logs the same trace, which the worker has sent.
    let calls: Vec<Value> = lines(&traced.system.llm)
        .into_iter()
        .filter(|line| message(line).starts_with("model call"))
        .collect();
    assert!(calls.len() >= 4, "{calls:?}");
    assert!(
        calls
            .iter()
            .all(|line| line["trace_id"] == trace && line["session_id"] == id),
        "{calls:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_have_the_trace_of_the_producer_although_nothing_is_exported() {
    let system = crate::support::system::TestSystem::start(&[]).await;
    let env = system.env(system.database.url());
    let mut worker = Tarsy::spawn(
        "w1",
        &["worker", "--log", "json", "--log-level", "debug"],
        &env.each(),
    );
    worker.ready().await;
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let caller = format!("00-{trace}-b7ad6b7169203331-01");
    let file = system.file("alert.txt");
    std::fs::write(&file, "disk full").unwrap();
    let variables = [&env.each()[..], &[("TRACEPARENT", caller.as_str())]].concat();
    let mut submit = Tarsy::spawn("submit", &["submit", file.to_str().unwrap()], &variables);
    let (code, out) = submit.finished().await;
    assert_eq!(code, 0, "{}", submit.log());
    let session = tarsy_core::ids::SessionId::parse(out.trim()).unwrap();
    system.follow(session).await.finish().await;
    crate::faults::survive::settled(&system, session).await;
    let found: Vec<Value> = lines(&worker)
        .into_iter()
        .filter(|line| line["session_id"] == session.to_string())
        .collect();
    assert!(found.len() >= 3, "{found:#?}");
    assert!(
        found.iter().all(|line| line["trace_id"] == trace),
        "{found:#?}"
    );
}
