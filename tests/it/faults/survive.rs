//! Resumption after a kill at every point of an investigation.
//!
//! One system has several points, one after the other: each worker finishes the session of the worker before, and is
//! killed in the session after it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use tarsy_bus::TimelineUpdate;
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::timeline::EventType;
use tarsy_engine::ports::RunStatus;
use uuid::Uuid;

use crate::support::postgres_server::proxy::{PostgresProxy, Side};
use crate::support::process::{Tarsy, metric};
use crate::support::system::{LEASE, TestSystem, publish_as};
use crate::support::wait::eventually;

/// Writes of the drill: the alert asks for a session to join, open, eight checkpoints, finish, settled.
const WRITES: u32 = 12;
const MODEL_CALLS: usize = 4;
const TOOLS: [&str; 5] = [
    "describe_pod",
    "pod_events",
    "query_range",
    "pod_logs",
    "deployment_history",
];
/// The expected journal, with or without a kill.
const JOURNAL: &str = "prompt prompt answer tool_result tool_result answer tool_result tool_result answer tool_result answer ended";
/// Test systems, all at the same time: their workers wait most of the time for the lease of a killed one.
const SYSTEMS: usize = 6;

/// The point at which the owner is killed.
#[derive(Clone, Debug)]
enum KillPoint {
    Write(u32, Side),
    Gate(String),
}

/// One row of the printed table.
struct Row {
    point: String,
    model_calls_repeated: u32,
    tool_calls_repeated: u32,
    resumed_after: Option<Duration>,
    events: usize,
}

fn kill_points() -> Vec<KillPoint> {
    let writes = (1..=WRITES).flat_map(|n| {
        [
            KillPoint::Write(n, Side::Before),
            KillPoint::Write(n, Side::After),
        ]
    });
    let answers = (0..MODEL_CALLS)
        .flat_map(|index| ["start", "middle", "end"].map(|part| format!("answer-{index}-{part}")));
    let tools = TOOLS
        .iter()
        .flat_map(|tool| ["start", "end"].map(|part| format!("tool-{tool}-{part}")));
    writes
        .chain(answers.chain(tools).map(KillPoint::Gate))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_investigation_survives_a_kill_of_its_worker_at_any_point() {
    let points = kill_points();
    let systems = points
        .chunks(points.len().div_ceil(SYSTEMS))
        .map(|part| kill_at_each(part.to_vec()));
    let rows: Vec<Vec<Row>> = stream::iter(systems).buffered(SYSTEMS).collect().await;
    let mut rows: Vec<Row> = rows.into_iter().flatten().collect();
    assert_eq!(rows.len(), points.len());
    println!(
        "{:<28} {:>12} {:>12} {:>10} {:>7}",
        "owner killed", "model again", "tools again", "resumed", "events"
    );
    for row in &rows {
        let resumed = row.resumed_after.map_or_else(
            || "-".to_owned(),
            |after| format!("{:.1} s", after.as_secs_f64()),
        );
        println!(
            "{:<28} {:>12} {:>12} {:>10} {:>7}",
            row.point, row.model_calls_repeated, row.tool_calls_repeated, resumed, row.events
        );
    }
    rows.retain(|row| row.model_calls_repeated > 1);
    assert!(rows.is_empty(), "a kill repeated more than one model call");
}

async fn kill_at_each(points: Vec<KillPoint>) -> Vec<Row> {
    let mut system = TestSystem::start(&[]).await;
    let mut owner = Owner::start(&system).await;
    let mut rows = Vec::new();
    for point in points {
        rows.push(kill_at(point, &mut system, &mut owner).await);
    }
    rows
}

/// The only worker of a system, with a proxy of its own for its connections to the database.
struct Owner {
    worker: Tarsy,
    proxy: PostgresProxy,
}

impl Owner {
    async fn start(system: &TestSystem) -> Self {
        let proxy = PostgresProxy::start(system.database.url(), None).await;
        let worker = system.worker_on("w", &proxy.url()).await.0;
        Self { worker, proxy }
    }
}

/// Kills the owner at a point of a new session; another worker, the next owner, finishes the session.
async fn kill_at(point: KillPoint, system: &mut TestSystem, owner: &mut Owner) -> Row {
    let tools_before = system.tool_calls();
    let session = SessionId(Uuid::now_v7());
    match &point {
        KillPoint::Write(n, side) => owner.proxy.hold_in(session, *n, *side),
        KillPoint::Gate(gate) => system.gates.watch(gate),
    }
    publish_as(&system.nats_url(), session).await;
    let mut timeline = system.follow(session).await;

    let name = match &point {
        KillPoint::Write(n, side) => {
            let held = owner.proxy.held().await;
            format!("{side:?} write {n}, {}", held.statement).to_lowercase()
        }
        KillPoint::Gate(gate) => {
            let arrived = system.gates.next().await;
            assert_eq!(&arrived.gate, gate);
            system.gates.open_all();
            owner.worker.kill().await;
            arrived.open().await;
            gate.clone()
        }
    };
    owner.worker.kill().await;
    // The held message is lost: either the statement or its answer.
    owner.proxy.cut();
    let killed = Instant::now();
    *owner = Owner::start(system).await;

    let mut resumed_after = None;
    while let Some(item) = timeline.next().await {
        if matches!(&item, TimelineUpdate::Event(event) if event.event_type == EventType::SessionResumed)
        {
            resumed_after = Some(killed.elapsed());
        }
    }
    let seen = std::mem::take(&mut timeline.seen);
    let end = seen.last().expect("an end");
    assert_eq!(end.event_type, EventType::SessionCompleted, "{name}");
    settled(system, session).await;
    system.assert_invariants(session, &seen).await;
    assert_eq!(
        system.database.text(&journal_sql(session)),
        JOURNAL,
        "{name}"
    );
    let faults = tarsy_drill::builtin("oom-killed")
        .unwrap()
        .expected()
        .unwrap()
        .check(&seen);
    assert_eq!(faults, Vec::<String>::new(), "{name}");
    // The next session begins without a message of this one.
    system.queue_is_empty().await;

    let models = system.model_calls_of(ExecutionId::derive(session, 1, 1));
    let tools = calls_since(&tools_before, system.tool_calls());
    assert_eq!(
        (models.len(), tools.len()),
        (MODEL_CALLS, TOOLS.len()),
        "{name}"
    );
    assert!(tools.values().all(|count| *count <= 2), "{name}: {tools:?}");
    Row {
        point: name,
        model_calls_repeated: models.iter().map(|count| count - 1).sum(),
        tool_calls_repeated: tools.values().map(|count| count - 1).sum(),
        resumed_after,
        events: seen.len(),
    }
}

/// The number of times that each tool call was sent since then.
fn calls_since(
    before: &BTreeMap<String, u32>,
    now: BTreeMap<String, u32>,
) -> BTreeMap<String, u32> {
    let new = now.into_iter().map(|(call, count)| {
        let earlier = before.get(&call).copied().unwrap_or_default();
        (call, count - earlier)
    });
    new.filter(|(_, count)| *count > 0).collect()
}

fn journal_sql(session: SessionId) -> String {
    format!(
        "SELECT string_agg(kind, ' ' ORDER BY entry_no) FROM entries WHERE session_id = '{}'",
        session.0
    )
}

/// Waits until the session is settled, which happens after its end is on the stream.
pub(crate) async fn settled(system: &TestSystem, session: SessionId) {
    let store = system.database.store();
    eventually("the session is settled", async || {
        tarsy_engine::ports::Sessions::standing(&store, session)
            .await
            .unwrap()
            .settled
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_worker_that_continues_writes_nothing_and_shows_nothing() {
    let mut system = TestSystem::start(&[]).await;
    // The fifth write is checkpoint B of the first iteration. The proxy holds it until another worker owns the session
    // and runs the same tools, so that only the fence keeps the old worker from writing a row.
    let mut proxy = PostgresProxy::start(system.database.url(), Some((5, Side::Before))).await;
    let (first, metrics) = system.worker_on("w1", &proxy.url()).await;
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    let held = proxy.held().await;
    first.pause();
    system.gates.watch("tool-describe_pod-end");

    let (_second, _) = system.worker("w2").await;
    let resumed = timeline.until(EventType::SessionResumed).await;
    assert_eq!(resumed.metadata["epoch"], 2);
    let waiting = system.gates.next().await;
    let epoch = format!(
        "SELECT lease_epoch::bigint FROM alert_sessions WHERE session_id = '{}'",
        session.0
    );
    assert_eq!(system.database.number(&epoch), 2);
    held.release();
    first.resume();
    first.logged("lease lost").await;
    let refused = metric(&metrics, "tarsy_writes_refused_total", "").await;
    assert!(refused >= 1.0, "{refused} refused writes are counted");
    system.gates.open_all();
    waiting.open().await;

    let mut epochs = Vec::new();
    while let Some(item) = timeline.next().await {
        if let TimelineUpdate::Delta(delta) = item {
            epochs.push(delta.epoch);
        }
    }
    assert!(epochs.iter().all(|epoch| *epoch == 2), "{epochs:?}");
    settled(&system, session).await;
    system.assert_invariants(session, &timeline.seen).await;
    let stale = format!(
        "SELECT count(*) FROM timeline_events WHERE session_id = '{}' AND lease_epoch = 1 AND session_seq >= {}",
        session.0, resumed.session_seq
    );
    assert_eq!(system.database.number(&stale), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_paused_in_a_stream_shows_nothing_when_it_continues() {
    let mut system = TestSystem::start(&["answer-1-middle"]).await;
    let (first, metrics) = system.worker("w1").await;
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    let stale = system.gates.next().await;
    first.pause();
    let (_second, _) = system.worker("w2").await;
    assert_eq!(
        timeline.until(EventType::SessionResumed).await.metadata["epoch"],
        2
    );
    let waiting = system.gates.next().await;
    // When the first worker continues, the rest of the answer is in its socket.
    system.gates.open_all();
    stale.open().await;
    first.resume();
    first.logged("lease lost").await;
    assert!(metric(&metrics, "tarsy_writes_refused_total", "").await >= 1.0);
    waiting.open().await;
    while let Some(item) = timeline.next().await {
        if let TimelineUpdate::Delta(delta) = item {
            assert_eq!(delta.epoch, 2, "{delta:?}");
        }
    }
    settled(&system, session).await;
    system.assert_invariants(session, &timeline.seen).await;
    assert_eq!(system.database.text(&journal_sql(session)), JOURNAL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_a_sentence_is_shown_before_it_is_stored() {
    let mut system = TestSystem::start(&["answer-3-start", "answer-3-middle"]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    let asked = system.gates.next().await;
    // Without a database the history comes over the connection on which the deltas were subscribed before, so a watcher
    // that shows an earlier step has missed no delta of the answer.
    let mut watch = Tarsy::spawn(
        "watch",
        &["watch", &session.to_string(), "--live", "always"],
        &system.env("").each(),
    );
    watch.line_with("describe_pod").await;
    asked.open().await;
    let waiting = system.gates.next().await;
    let finals = format!(
        "SELECT count(*) FROM timeline_events WHERE session_id = '{}' AND event_type = 'final_analysis'",
        session.0
    );
    assert_eq!(system.database.number(&finals), 0);
    let answers = format!(
        "SELECT count(*) FROM entries WHERE session_id = '{}' AND kind = 'answer'",
        session.0
    );
    assert_eq!(system.database.number(&answers), 3);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let answered = format!(
        "SELECT string_agg(content, ' ') FROM entries WHERE session_id = '{}' AND kind = 'answer'",
        session.0
    );
    let before = words(&system.database.text(&answered));
    // The watcher may have received deltas of an earlier answer as well.
    let shown = loop {
        let line = watch.line_with("writing").await;
        let tail = words(
            line.split_once('…')
                .unwrap()
                .1
                .trim_start_matches([' ', '…']),
        );
        if tail.len() > 20 && !before.contains(&tail) {
            break tail;
        }
    };
    waiting.open().await;
    system.gates.open_all();
    let (code, rest) = watch.finished().await;
    assert_eq!(code, 0);
    assert!(rest.contains("Cause:"), "{rest}");
    let analysis = system.database.text(&format!(
        "SELECT final_analysis FROM alert_sessions WHERE session_id = '{}'",
        session.0
    ));
    assert!(
        words(&analysis).contains(&shown),
        "{shown:?} is no part of the analysis"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_llm_service_killed_in_the_middle_of_a_stream_costs_one_iteration() {
    let mut system = TestSystem::start(&["answer-1-middle"]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    let waiting = system.gates.next().await;
    system.gates.open_all();
    // Without a piece of the answer the service would count as unavailable.
    while !matches!(timeline.next().await.expect("a delta"), TimelineUpdate::Delta(delta) if delta.iteration == 2)
    {
    }
    system.llm.kill().await;
    drop(waiting);
    let address = system.llm_addr().to_owned();
    system.start_llm_service(&address).await;
    let end = timeline.finish().await;
    assert_eq!(end.event_type, EventType::SessionCompleted);
    settled(&system, session).await;
    system.assert_invariants(session, &timeline.seen).await;
    let errors: Vec<_> = timeline
        .seen
        .iter()
        .filter(|event| event.event_type == EventType::Error)
        .collect();
    assert_eq!(
        errors.len(),
        1,
        "the broken stream has one error event: {errors:#?}"
    );
    assert_eq!(errors[0].metadata["kind"], "model");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_mcp_server_killed_in_the_middle_of_a_call_is_started_again() {
    let mut system = TestSystem::start(&["tool-query_range-start"]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    let waiting = system.gates.next().await;
    system.gates.open_all();
    // The answer of the gate makes the server exit in the middle of the call.
    waiting.fail().await;
    let end = timeline.finish().await;
    assert_eq!(end.event_type, EventType::SessionCompleted);
    settled(&system, session).await;
    system.assert_invariants(session, &timeline.seen).await;
    let results = timeline
        .seen
        .iter()
        .filter(|event| event.event_type == EventType::ToolResult);
    assert!(
        results
            .clone()
            .all(|event| event.metadata["is_error"] == false),
        "every call has a result without an error"
    );
    let ranges: u32 = system
        .tool_calls()
        .iter()
        .filter(|(call, _)| call.starts_with("query_range"))
        .map(|(_, n)| n)
        .sum();
    assert_eq!(ranges, 2, "the read-only call was sent once more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminated_worker_releases_its_session_to_another_one() {
    let mut system = TestSystem::start(&["answer-1-middle"]).await;
    let (mut first, _) = system.worker("w1").await;
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    let waiting = system.gates.next().await;
    let (_second, _): (Tarsy, String) = system.worker("w2").await;
    first.terminate();
    first.logged("SIGTERM").await;
    system.gates.open_all();
    waiting.open().await;
    let resumed = timeline.until(EventType::SessionResumed).await;
    assert_eq!(resumed.metadata["reason"], "released");
    let began = Instant::now();
    assert_eq!(first.finished().await.0, 0);
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );
    settled(&system, session).await;
    system.assert_invariants(session, &timeline.seen).await;
    assert_eq!(
        system.model_calls().values().sum::<u32>(),
        4,
        "no model call was repeated"
    );
    assert!(began.elapsed() < LEASE * 10);
    let store = system.database.store();
    let report = store
        .report(session)
        .await
        .unwrap()
        .unwrap()
        .session
        .unwrap();
    assert_eq!((report.status, report.epoch), (RunStatus::Completed, 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadline_iterations_and_token_totals_survive_a_restart() {
    let mut system = TestSystem::start(&["answer-2-start"]).await;
    let (mut first, _) = system.worker("w1").await;
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    let waiting = system.gates.next().await;
    let deadline = format!(
        "SELECT deadline_at::text FROM alert_sessions WHERE session_id = '{}'",
        session.0
    );
    let before = system.database.text(&deadline);
    first.kill().await;
    system.gates.open_all();
    waiting.open().await;
    let _second = system.worker("w2").await;
    timeline.until(EventType::SessionResumed).await;
    let end = timeline.finish().await;
    assert_eq!(system.database.text(&deadline), before);
    // These are the tokens of all four answers; the first worker received two of them.
    let expected = serde_json::json!({
        "stop_reason": "final_answer", "iterations": 4, "tool_calls": 5,
        "input_tokens": 22990, "cached_tokens": 12288, "output_tokens": 814, "thinking_tokens": 680,
    });
    assert_eq!(end.metadata, expected);
}
