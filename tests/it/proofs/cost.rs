//! The cost of an investigation at the database: the number of its statements is fixed, and a worker keeps its
//! connections. The suite investigates 20 alerts with many slots, the proof 60. `./dev bench` measures times.

use std::collections::BTreeMap;
use std::time::Duration;

use super::load::{paced, publish_many};
use crate::support::figures::is_proof;
use crate::support::postgres::TestDatabase;
use crate::support::postgres_server::PostgresServer;
use crate::support::postgres_server::statements::{LOGGED, by_kind, connections};
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

/// Model calls; all but the last one call a tool.
const ITERATIONS: usize = 3;
const WARM_UP: usize = 3;
const COUNT: usize = 5;
/// A worker reads the schema, and then its settings and rights, before it opens its pool.
const CONNECTIONS_AT_START: usize = 2;

const READS: (&str, usize) = ("Reads events of a session in order, with the nam", 1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_investigation_has_fourteen_statements_and_no_connection() {
    let postgres = PostgresServer::start_with(&[&["fsync=off"], &LOGGED[..]].concat()).await;
    let setup = Setup {
        slots: 1,
        // No renewal happens during the test.
        lease: Duration::from_secs(300),
        transcript: Some(paced(ITERATIONS, Duration::ZERO)),
        database: Some(TestDatabase::empty_on(postgres.url())),
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    let (worker, _) = system.worker("w1").await;
    worker.logged("claiming started").await;
    investigate(&system, WARM_UP, WARM_UP).await;
    let before = postgres.log().len();
    investigate(&system, COUNT, WARM_UP + COUNT).await;
    let log = postgres.log();
    let log = &log[before..];

    let expected = [
        ("Inserts an alert or counts one more delivery of it. A", 1),
        // Once without a plan, and once with it; the first stage begins with the session.
        ("Decides where an alert goes. Its row is locked fi", 2),
        // Before its plan is made.
        ("Reads the newest completed investigations of an ", 1),
        // When the publisher of the session starts.
        READS,
        // The prompts, then each answer and the results of each of its tools; the end is part of the last answer.
        (
            "Writes one checkpoint: all of it or nothing, so ",
            2 * ITERATIONS,
        ),
        // The last stage ends with the session.
        ("Epoch and token stay: a renewal that arrives lat", 1),
        ("Reads whether an alert or session has ended and ", 1),
        ("Marks what has ended as settled and deletes the ", 1),
    ];
    let kind =
        |(words, count): (&str, usize)| (words.chars().take(48).collect::<String>(), count * COUNT);
    let mut statements = by_kind(log);
    if !is_proof() {
        // On a busy machine a publisher that falls behind its worker reads once more.
        let (reads, count) = kind(READS);
        let found = statements.insert(reads, count).unwrap_or_default();
        assert!(
            (count..2 * count).contains(&found),
            "{found} reads of events"
        );
    }
    assert_eq!(statements, BTreeMap::from_iter(expected.map(kind)));
    assert_eq!(
        connections(log)[1],
        0,
        "a connection that is closed is opened again"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_of_skills_are_stored_once_and_cost_later_sessions_no_statement() {
    let folder = tempfile::tempdir().unwrap();
    let text = "---\ndescription: When it is slow\n---\nLook at the locks.";
    std::fs::write(folder.path().join("pg.md"), text).unwrap();
    let postgres = PostgresServer::start_with(&[&["fsync=off"], &LOGGED[..]].concat()).await;
    let setup = Setup {
        slots: 1,
        lease: Duration::from_secs(300),
        sections: &format!("skills: {{directories: ['{}']}}\n", folder.path().display()),
        transcript: Some(paced(ITERATIONS, Duration::ZERO)),
        database: Some(TestDatabase::empty_on(postgres.url())),
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    let (worker, _) = system.worker("w1").await;
    worker.logged("claiming started").await;
    investigate(&system, WARM_UP, WARM_UP).await;
    investigate(&system, COUNT, WARM_UP + COUNT).await;
    let log = postgres.log();
    let statements = by_kind(&log);
    let stored = statements
        .iter()
        .filter(|(words, _)| words.starts_with("Stores texts of skills"));
    let stored: Vec<usize> = stored.map(|(_, count)| *count).collect();
    assert_eq!(stored, [1]);
    let rows = "SELECT count(*)::text FROM skill_texts";
    assert_eq!(system.database.text(rows), "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_with_many_slots_opens_the_connections_of_its_pool_once() {
    const POOL_SIZE: usize = 4;
    const INVESTIGATIONS: usize = 20;
    const INVESTIGATIONS_IN_PROOF: usize = 60;
    let count = if is_proof() {
        INVESTIGATIONS_IN_PROOF
    } else {
        INVESTIGATIONS
    };
    let postgres = PostgresServer::start_with(&[&["fsync=off"], &LOGGED[..]].concat()).await;
    let setup = Setup {
        slots: 16,
        lease: Duration::from_secs(300),
        sections: &format!("database: {{pool_size: {POOL_SIZE}}}\n"),
        transcript: Some(paced(ITERATIONS, Duration::ZERO)),
        database: Some(TestDatabase::empty_on(postgres.url())),
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    let before = postgres.log().len();
    let (worker, _) = system.worker("w1").await;
    worker.logged("claiming started").await;
    investigate(&system, count, count).await;
    let [opened, closed] = connections(&postgres.log()[before..]);
    assert_eq!(
        closed, CONNECTIONS_AT_START,
        "a connection that is closed is opened again"
    );
    // Renewals have a connection of their own.
    let kept = opened - closed;
    assert!(
        (1..=POOL_SIZE + 1).contains(&kept),
        "{kept} connections were opened"
    );
}

/// Publishes this many alerts, and returns when `settled` sessions are settled in all.
async fn investigate(system: &TestSystem, count: usize, settled: usize) {
    publish_many(system, count).await;
    let sql = format!(
        "SELECT count(*) = {settled} FROM alert_sessions WHERE status = 'completed' AND settled_at IS NOT NULL"
    );
    eventually("the sessions are settled", async || {
        system.database.holds(&sql)
    })
    .await;
}
