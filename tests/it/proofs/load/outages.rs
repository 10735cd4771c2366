//! Outages of the broker, the database and the LLM service during investigations.
//! The LLM service is unavailable for two seconds in the suite and for six in the proof.
//! `TARSY_LOAD_OUTAGE_SECS=60` makes the outages of the database and of the LLM service last a minute.

use std::time::{Duration, Instant};

use tarsy_core::timeline::EventType;

use super::{assert_all_completed, ended, paced, publish_many};
use crate::support::figures::{by_depth, from_env};
use crate::support::postgres::TestDatabase;
use crate::support::postgres_server::PostgresServer;
use crate::support::process::{Tarsy, metric_is};
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

const SESSIONS: usize = 6;
const ANSWERS: usize = 8;
const CALL: Duration = Duration::from_millis(400);
/// Every outage of this file is shorter, except for the longest of the LLM service.
const LEASE: Duration = Duration::from_secs(30);
const OUTAGE_SECS: u64 = 2;
const OUTAGE_SECS_IN_PROOF: u64 = 6;

/// A system with two workers, whose sessions have each passed two checkpoints.
async fn busy_system(setup: Setup<'_>) -> (TestSystem, [Tarsy; 2]) {
    let transcript = Some(paced(ANSWERS, CALL));
    let system = TestSystem::start_with(Setup {
        lease: LEASE,
        transcript,
        ..setup
    })
    .await;
    let workers = [system.worker("w1").await.0, system.worker("w2").await.0];
    publish_many(&system, SESSIONS).await;
    progressed(&system, 0).await;
    (system, workers)
}

/// Returns when every session has written two more checkpoints than `before`.
async fn progressed(system: &TestSystem, before: i64) {
    let least =
        "SELECT coalesce(min(checkpoint), 0)::bigint FROM agent_executions HAVING count(*) >= ";
    let sql = format!("SELECT coalesce(({least}{SESSIONS}), 0)");
    eventually("every session makes progress", async || {
        system.database.number(&sql) >= before + 2
    })
    .await;
}

fn most_checkpoints(system: &TestSystem) -> i64 {
    system
        .database
        .number("SELECT max(checkpoint)::bigint FROM agent_executions")
}

/// The number of takeovers, by their reason.
#[derive(Debug, PartialEq, Eq)]
struct Takeovers {
    /// Takeovers of released sessions.
    released: usize,
    /// Takeovers after an expired lease, which count an attempt.
    expired: usize,
}

const NONE: Takeovers = Takeovers {
    released: 0,
    expired: 0,
};

/// Waits until all sessions have ended and asserts their invariants.
async fn assert_all_ended(system: &TestSystem, count: usize) -> Takeovers {
    ended(system, count).await;
    system.queue_is_empty().await;
    let timelines = system.assert_all_invariants().await;
    assert_all_completed(system, count);
    let resumed = timelines
        .values()
        .flatten()
        .filter(|event| event.event_type == EventType::SessionResumed);
    let (expired, released): (Vec<_>, Vec<_>) =
        resumed.partition(|event| event.metadata["reason"] == "lease_expired");
    Takeovers {
        released: released.len(),
        expired: expired.len(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_killed_during_a_run_delays_nothing_and_costs_no_attempt() {
    let (mut system, workers) = busy_system(Setup::default()).await;
    system.nats.kill();
    for worker in &workers {
        worker.logged("nats is unavailable").await;
    }
    // Runs continue without the broker.
    let before = most_checkpoints(&system);
    progressed(&system, before).await;
    system.nats.restart().await;
    publish_many(&system, 2).await;
    assert_eq!(assert_all_ended(&system, SESSIONS + 2).await, NONE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn investigations_survive_the_loss_of_all_streams() {
    let (mut system, workers) = busy_system(Setup::default()).await;
    system.nats.kill();
    for worker in &workers {
        worker.logged("nats is unavailable").await;
    }
    system.nats.restart_empty().await;
    system.migrate().await;
    // The new stream assigns the sequences of the lost alerts to other alerts.
    publish_many(&system, SESSIONS).await;
    assert_eq!(assert_all_ended(&system, 2 * SESSIONS).await, NONE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_released_before_all_streams_were_lost_are_requeued() {
    let watched = &["answer-3-start"];
    let sweep = Duration::from_secs(1);
    let mut system = TestSystem::start_with(Setup {
        watched,
        lease: LEASE,
        sweep,
        slots: 8,
        transcript: Some(paced(ANSWERS, CALL)),
        ..Setup::default()
    })
    .await;
    let (mut leaving, _) = system.worker("w1").await;
    publish_many(&system, SESSIONS).await;
    let mut waiting = Vec::new();
    for _ in 0..SESSIONS {
        waiting.push(system.gates.next().await);
    }
    system.nats.kill();
    leaving.logged("nats is unavailable").await;
    // The calls finish and the sessions are released, but the broker receives no answer.
    leaving.terminate();
    leaving.logged("SIGTERM").await;
    system.gates.open_all();
    for arrived in waiting {
        arrived.open().await;
    }
    assert_eq!(leaving.finished().await.0, 0, "{}", leaving.log());
    system.nats.restart_empty().await;
    system.migrate().await;
    let _successor = system.worker("w2").await;
    assert_eq!(
        assert_all_ended(&system, SESSIONS).await,
        Takeovers {
            released: SESSIONS,
            expired: 0
        }
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_ends_an_overdue_investigation_without_a_worker_and_a_message() {
    let (watched, sweep) = (&["answer-1-middle"], Duration::from_secs(1));
    let mut system = TestSystem::start_with(Setup {
        watched,
        sweep,
        ..Setup::default()
    })
    .await;
    let (mut worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    let held = system.gates.next().await;
    worker.kill().await;
    drop(held);
    system
        .jetstream()
        .await
        .get_stream("TARSY_ALERTS")
        .await
        .unwrap()
        .purge()
        .await
        .unwrap();
    system
        .database
        .execute("UPDATE alert_sessions SET deadline_at = clock_timestamp()");
    let paid = system.model_calls();

    let (_sweeper, metrics) = system.worker("w2").await;
    let mut timeline = system.follow(session).await;
    let end = timeline.finish().await;
    assert_eq!(
        (end.event_type, &end.metadata["stop_reason"]),
        (EventType::SessionTimedOut, &"deadline".into())
    );
    metric_is(&metrics, "tarsy_sweeps_total", "found=\"overdue\"", 1.0).await;
    let settled =
        "SELECT count(*) FROM alert_sessions WHERE status = 'timed_out' AND settled_at IS NOT NULL";
    eventually("the session is settled", async || {
        system.database.number(settled) == 1
    })
    .await;
    assert_eq!(
        system.model_calls(),
        paid,
        "no worker continues the investigation"
    );
    system.queue_is_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_crashes_during_a_run_costs_no_attempt() {
    let mut postgres = PostgresServer::start().await;
    let database = Some(TestDatabase::empty_on(postgres.url()));
    let (system, workers) = busy_system(Setup {
        database,
        ..Setup::default()
    })
    .await;
    postgres.crash();
    let crashed = Instant::now();
    for worker in &workers {
        worker.logged("database unavailable").await;
    }
    let outage = Duration::from_secs(from_env("TARSY_LOAD_OUTAGE_SECS", 0));
    tokio::time::sleep(outage.saturating_sub(crashed.elapsed())).await; // the outage itself
    postgres.restart().await;
    let unavailable = crashed.elapsed();
    publish_many(&system, 2).await;
    let takeovers = assert_all_ended(&system, SESSIONS + 2).await;
    println!(
        "{SESSIONS} sessions without a database for {unavailable:.1?}: {takeovers:?}, all completed"
    );
    assert_eq!(
        takeovers.expired, 0,
        "a lease that could not be renewed counts as no death"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unavailable_llm_service_costs_no_attempt_and_no_iteration() {
    let outage = Duration::from_secs(by_depth(
        "TARSY_LOAD_OUTAGE_SECS",
        OUTAGE_SECS,
        OUTAGE_SECS_IN_PROOF,
    ));
    let transcript = Some(paced(ANSWERS, CALL));
    let watched = &["answer-3-start"];
    let mut system = TestSystem::start_with(Setup {
        lease: LEASE,
        transcript,
        watched,
        ..Setup::default()
    })
    .await;
    let workers = [system.worker("w1").await.0, system.worker("w2").await.0];
    publish_many(&system, SESSIONS).await;
    // Every session waits for the first chunk of an answer, because a stream that breaks later is a failed call.
    let mut waiting = Vec::new();
    for _ in 0..SESSIONS {
        waiting.push(system.gates.next().await);
    }
    system.gates.open_all();
    system.llm.kill().await;
    let killed = Instant::now();
    drop(waiting);
    for worker in &workers {
        worker.logged("llm-service unavailable").await;
    }
    let released =
        "SELECT count(*) FROM alert_sessions WHERE status = 'running' AND lease_owner IS NULL";
    let all = i64::try_from(SESSIONS).unwrap();
    eventually("every session is released", async || {
        system.database.number(released) == all
    })
    .await;
    tokio::time::sleep(outage.saturating_sub(killed.elapsed())).await; // the outage itself
    let address = system.llm_addr().to_owned();
    system.start_llm_service(&address).await;
    let takeovers = assert_all_ended(&system, SESSIONS).await;
    println!("{SESSIONS} sessions without a model for {outage:.1?}: {takeovers:?}, all completed");
    assert_eq!(takeovers.expired, 0);
    assert!(
        takeovers.released <= 3 * SESSIONS,
        "sessions were claimed too often while the model was unavailable"
    );
}
