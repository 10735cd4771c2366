//! Cancelling an investigation in every state.

use std::time::{Duration, Instant};

use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;

use crate::support::process::Tarsy;
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

/// A lease so long that no renewal reads a cancel request during a test.
const LONG: Duration = Duration::from_secs(30);
/// A lease with a renewal every second and a takeover after three.
const SHORT: Duration = Duration::from_secs(3);
/// The request, two statements, and one event, beside the time that a command needs on this machine.
const OWNERLESS_TIMEOUT: Duration = Duration::from_millis(1500);
/// Time for a request to reach a run, on a busy machine.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);

async fn start_system(watched: &[&str], lease: Duration) -> TestSystem {
    // With a long lease no sweep takes place either.
    let sweep = if lease == LONG {
        LONG
    } else {
        Duration::from_secs(1)
    };
    TestSystem::start_with(Setup {
        watched,
        lease,
        sweep,
        ..Setup::default()
    })
    .await
}

/// Runs `tarsy sessions cancel` and returns its output.
async fn cancel(system: &TestSystem, session: SessionId) -> String {
    let mut command = system.tarsy("cancel", &["sessions", "cancel", &session.to_string()]);
    let (code, output) = command.finished().await;
    assert_eq!(code, 0, "{output} {}", command.log());
    output
}

/// Asserts the end of a session and the invariants of its rows.
async fn assert_cancelled(system: &TestSystem, session: SessionId) {
    let mut timeline = system.follow(session).await;
    let end = timeline.finish().await;
    assert_eq!(
        (end.event_type, &end.metadata["stop_reason"]),
        (EventType::SessionCancelled, &"cancelled".into())
    );
    settled(system).await;
    system.queue_is_empty().await;
    let stored = tarsy_engine::ports::Outbox::events(&system.database.store(), session, 0, 1000)
        .await
        .unwrap();
    assert_eq!(timeline.seen, stored, "the stream is a copy of the table");
    let sql = format!(
        "SELECT status FROM alert_sessions WHERE session_id = '{}'",
        session.0
    );
    assert_eq!(system.database.text(&sql), "cancelled");
    assert_eq!(
        system
            .database
            .number("SELECT count(*) FROM agent_executions WHERE status = 'running'"),
        0
    );
}

async fn settled(system: &TestSystem) {
    let left = "SELECT count(*) FROM alerts WHERE settled_at IS NULL";
    eventually("everything is settled", async || {
        system.database.number(left) == 0
    })
    .await;
}

/// Starts a worker that waits for its second answer.
async fn busy_worker(
    system: &mut TestSystem,
) -> (Tarsy, SessionId, crate::support::gates::Arrived) {
    let (worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    let held = system.gates.next().await;
    (worker, session, held)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_investigation_is_cancelled_during_a_call_before_the_next_renewal() {
    let mut system = start_system(&["answer-1-middle"], LONG).await;
    let (_worker, session, held) = busy_worker(&mut system).await;
    let mut timeline = system.follow(session).await;
    let asked = Instant::now();
    cancel(&system, session).await;
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCancelled
    );
    let took = asked.elapsed();
    println!("cancelled after {took:?}");
    assert!(took < REQUEST_TIMEOUT, "{took:?}");
    assert_cancelled(&system, session).await;
    drop(held);
    // The worker continues with other sessions.
    system.gates.open_all();
    let next = system.publish().await;
    assert_eq!(
        system.follow(next).await.finish().await.event_type,
        EventType::SessionCompleted
    );
}

/// Asserts that an alert was cancelled before a session was opened: its only event is its end, once.
async fn assert_ended_without_a_session(system: &TestSystem, alert: SessionId) {
    let mut timeline = system.follow(alert).await;
    let end = timeline.finish().await;
    let expected = (EventType::SessionCancelled, 1, "cancelled".into());
    assert_eq!(
        (
            end.event_type,
            end.session_seq,
            end.metadata["stop_reason"].clone()
        ),
        expected
    );
    settled(system).await;
    system.queue_is_empty().await;
    let stored = tarsy_engine::ports::Outbox::events(&system.database.store(), alert, 0, 1000)
        .await
        .unwrap();
    assert_eq!(timeline.seen, stored, "the stream is a copy of the table");
    assert_eq!(
        system
            .database
            .number("SELECT count(*) FROM alert_sessions"),
        0
    );
    assert_eq!(system.database.text("SELECT place FROM alerts"), "ended");
    assert_eq!(system.model_calls().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_that_no_worker_has_seen_is_cancelled_and_its_message_settled_later() {
    let system = start_system(&[], LONG).await;
    let session = system.publish().await;
    // A part of the id suffices, although the database does not know the alert.
    let mut command = system.tarsy("cancel", &["sessions", "cancel", &session.short()]);
    let (code, output) = command.finished().await;
    assert_eq!(
        (code, output.trim()),
        (
            0,
            format!("session {} is cancelled", session.short()).as_str()
        )
    );
    let show = system
        .tarsy("show", &["sessions", "show", &session.to_string()])
        .finished()
        .await;
    assert!(
        show.1.contains("cancelled before it was investigated"),
        "{}",
        show.1
    );
    let (_worker, _) = system.worker("w1").await;
    assert_ended_without_a_session(&system, session).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_investigation_waiting_for_the_llm_service_is_cancelled_within_a_second() {
    let mut system = start_system(&["answer-1-middle"], LONG).await;
    let (worker, session, held) = busy_worker(&mut system).await;
    system.llm.kill().await;
    drop(held);
    worker.logged("session released").await;
    worker.logged("claiming paused").await;
    let asked = Instant::now();
    system
        .tarsy("show", &["sessions", "show", &session.to_string()])
        .finished()
        .await;
    let command = asked.elapsed();
    // The workers have no LLM service, but they publish and settle the end.
    let mut timeline = system.follow(session).await;
    let asked = Instant::now();
    let output = cancel(&system, session).await;
    assert!(output.contains("is cancelled"), "{output}");
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCancelled
    );
    let took = asked.elapsed();
    println!("cancelled after {took:?}");
    assert!(
        took < OWNERLESS_TIMEOUT + 4 * command,
        "{took:?}, and a command takes {command:?}"
    );
    settled(&system).await;
    let stored = tarsy_engine::ports::Outbox::events(&system.database.store(), session, 0, 1000)
        .await
        .unwrap();
    assert_eq!(timeline.seen, stored, "the stream is a copy of the table");
    let ends = stored
        .iter()
        .filter(|event| event.event_type.is_end())
        .count();
    assert_eq!(ends, 1);
    let numbers: Vec<u32> = stored.iter().map(|event| event.session_seq).collect();
    assert_eq!(
        numbers,
        (1..=u32::try_from(stored.len()).unwrap()).collect::<Vec<_>>()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_session_whose_request_no_worker_received_is_ended_by_a_sweep() {
    let mut system = start_system(&["answer-1-middle"], SHORT).await;
    let (mut worker, session, held) = busy_worker(&mut system).await;
    worker.kill().await;
    drop(held);
    let request = "UPDATE alert_sessions SET cancel_requested_at = clock_timestamp()";
    system.database.execute(request);
    system.llm.kill().await;
    // The worker claims nothing: only the sweep can end the session.
    let mut next = system.tarsy("w2", &["worker", "--name", "w2"]);
    next.logged("claiming paused").await;
    assert_cancelled_in_database(&system, session).await;
    next.kill().await;
}

/// Sets when the lease of a session expires, as an interval from now.
fn set_lease(system: &TestSystem, session: SessionId, rest: &str) {
    let expires = format!("lease_expires_at = clock_timestamp() + interval '{rest}'");
    system.database.execute(&format!(
        "UPDATE alert_sessions SET {expires} WHERE session_id = '{}'",
        session.0
    ));
}

async fn assert_cancelled_in_database(system: &TestSystem, session: SessionId) {
    let sql = format!(
        "SELECT status FROM alert_sessions WHERE session_id = '{}'",
        session.0
    );
    eventually("the session is cancelled", async || {
        system.database.text(&sql) == "cancelled"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_investigation_whose_worker_was_killed_is_cancelled_before_its_lease_expires() {
    let mut system = start_system(&["answer-1-middle"], SHORT).await;
    let (mut worker, session, held) = busy_worker(&mut system).await;
    worker.kill().await;
    drop(held);
    // The queue delivers the message again soon, and the lease does not expire during the test.
    set_lease(&system, session, "1 h");
    let output = cancel(&system, session).await;
    assert!(output.contains("is cancelled"), "{output}");
    assert_cancelled_in_database(&system, session).await;
    let paid = system.model_calls();
    let (_next, _) = system.worker("w2").await;
    assert_cancelled(&system, session).await;
    assert_eq!(
        system.model_calls(),
        paid,
        "no model call is made after the cancellation"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_request_reaches_the_run_while_the_broker_is_unavailable() {
    let mut system = start_system(&["answer-1-middle"], SHORT).await;
    let (worker, session, held) = busy_worker(&mut system).await;
    system.nats.kill();
    worker.logged("nats is unavailable").await;
    cancel(&system, session).await;
    let status = format!(
        "SELECT count(*) FROM alert_sessions WHERE status = 'cancelled' AND session_id = '{}'",
        session.0
    );
    eventually("the session is cancelled", async || {
        system.database.number(&status) == 1
    })
    .await;
    drop(held);
    system.nats.restart().await;
    assert_cancelled(&system, session).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_that_arrives_during_a_cancellation_is_investigated_afterwards() {
    let mut system = start_system(&["answer-1-middle"], SHORT).await;
    let (mut worker, session, held) = busy_worker(&mut system).await;
    worker.kill().await;
    drop(held);
    // The request is stored and its command died: no worker can end the session before its lease expires. The request
    // stops alerts from joining it. Its own message is delivered again when the rest of the lease is over.
    set_lease(&system, session, "4 s");
    system
        .database
        .execute("UPDATE alert_sessions SET cancel_requested_at = clock_timestamp()");
    system.gates.open_all();
    let later = system.publish().await;
    let (_next, _) = system.worker("w2").await;
    let waits = format!(
        "SELECT deliveries::bigint FROM alerts WHERE place = 'undecided' AND alert_id = '{}'",
        later.0
    );
    eventually("the alert is redelivered", async || {
        set_lease(&system, session, "4 s");
        system
            .database
            .number(&format!("SELECT coalesce(({waits}), 0)"))
            >= 2
    })
    .await;
    set_lease(&system, session, "0 s");
    let mut timeline = system.follow(later).await;
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );
    assert_cancelled(&system, session).await;
    system.assert_invariants(later, &timeline.seen).await;
    let counted = format!(
        "SELECT attempts::bigint FROM alerts WHERE alert_id = '{}'",
        later.0
    );
    assert_eq!(
        system.database.number(&counted),
        1,
        "waiting counts as no attempt"
    );
}
