//! Whole investigations with tools of a hostile server over HTTP.

use tarsy_core::timeline::EventType;

use super::http_server::{HostileHttp, TOKEN};
use super::investigations::{MAX_GROWTH, publish, recording, results};
use crate::support::process::peak_memory;
use crate::support::system::{Setup, TestSystem};

/// A part of each result, in the order of the calls: first at a server with short time-outs, then at a patient one.
const RESULTS: [(&str, &str); 14] = [
    ("hostile.hang", "no answer within 1000 ms"),
    ("hostile.endless_events", "no answer within 1000 ms"),
    (
        "hostile.endless_progress",
        "progress, but no answer within 2000 ms",
    ),
    ("patient.endless_body", "the answer is too large"),
    ("patient.endless_event", "the answer is too large"),
    ("patient.huge_body", "the answer is too large"),
    ("patient.huge_head", "connection lost"),
    ("patient.garbage_chunks", "connection lost"),
    ("patient.redirect", "HTTP 307"),
    ("patient.unauthorized", "HTTP 401"),
    ("patient.expired", "Session expired"),
    ("patient.fake", "owned"),
    ("patient.ok", "answer of ok"),
    ("patient.wait", "waited"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_server_over_http_ends_no_investigation_and_blocks_no_other() {
    let elsewhere = HostileHttp::start(&["ok"], "").await;
    let names: Vec<&str> = RESULTS
        .iter()
        .map(|(tool, _)| tool.split_once('.').unwrap().1)
        .collect();
    let server = HostileHttp::start(&names, &elsewhere.url()).await;
    server.be_restless();
    let servers = [
        server.config_line("hostile", "tool_timeout: 1s, max_tool_timeout: 2s"),
        server.config_line("patient", "scope: session"),
    ]
    .concat();
    let calls: Vec<String> = RESULTS.iter().map(|(tool, _)| (*tool).to_owned()).collect();
    let setup = Setup {
        servers: &servers,
        transcript: Some(recording(&calls)),
        sections: "defaults: {max_iterations: 30}\n",
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    let (mut worker, _) = system.worker("w1").await;
    let before = peak_memory(&worker);
    let session = publish(&system).await;
    let mut timeline = system.follow(session).await;
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
    system.assert_invariants(session, &timeline.seen).await;

    let results = results(&timeline.seen);
    assert_eq!(results.len(), RESULTS.len(), "{results:#?}");
    for (result, (tool, expected)) in results.iter().zip(RESULTS) {
        assert!(
            result.contains(expected) && !result.contains(TOKEN),
            "{tool}: {result}"
        );
    }
    let sent = |tool: &str| server.seen(&format!("tools/call {tool}")).len();
    assert_eq!(
        [sent("huge_head"), sent("expired"), sent("hang"), sent("ok")],
        [2, 2, 1, 1],
        "only lost calls again"
    );
    assert_eq!(
        elsewhere.connections(),
        0,
        "no request went to another host"
    );
    let log = worker.log();
    assert!(
        !log.contains('\u{1b}') && !log.contains('\u{202e}') && !log.contains(TOKEN),
        "{log}"
    );
    let growth = peak_memory(&worker) - before;
    println!(
        "peak memory of the worker: {before} MiB before, {} MiB after",
        before + growth
    );
    assert!(growth < MAX_GROWTH, "{growth} MiB");
    worker.terminate();
    assert!(worker.ended().await.success());
}
