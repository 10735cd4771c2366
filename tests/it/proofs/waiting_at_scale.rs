//! Sessions that wait for people, in a great number: 100,000 in `./dev prove`, 4,000 in the suite. The bytes of their
//! rows, the time of a sweep beside them, of the count of open requests, and of the read for gauges. The memory of a
//! worker beside them.

use std::time::{Duration, Instant};

use diesel::prelude::*;
use diesel::sql_types::Text;

use crate::adapters::store::fixture::numbered;
use crate::support::figures::{Figures, by_depth, is_proof};
use crate::support::postgres::TestDatabase;
use crate::support::process::Tarsy;
use crate::support::system::{Setup, TestSystem};

const SWEEP: &str = include_str!("../../../crates/store/src/sql/sweep.sql");
const COUNTS: &str = include_str!("../../../crates/store/src/sql/request_counts.sql");
const GAUGES: &str = include_str!("../../../crates/store/src/sql/waiting.sql");
/// The requests that the gauges of a worker read at most.
const MAX_READ: u32 = 10_000;
/// The bytes of one waiting session, without plan, journal and events: alert, session, request and their indexes.
const MAX_BYTES: i64 = 4_096;
/// The longest times of the statements at the server, by median.
const MAX_SWEEP: Duration = Duration::from_millis(150);
const MAX_COUNT: Duration = Duration::from_millis(1);
/// `approvals.max_open` by default.
const MAX_OPEN: u32 = 1_000;
const ROUNDS: usize = 11;
/// Sweeps of a worker before its memory is read, and their interval.
const SWEEPS: u32 = 5;
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// The memory that the waiting sessions may cost a worker.
const MAX_MEMORY_KIB: u64 = 16 * 1024;

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text, column_name = "QUERY PLAN")]
    text: String,
}

/// Sessions that wait, each with an alert of 3 KiB and one request.
fn fill(database: &TestDatabase, sessions: u32) {
    database.execute(&format!(
        "INSERT INTO alerts (alert_id, last_delivery, stream_sequence, place, body_sha256, subject, headers, title,
                             alert_type, severity, fingerprint, body, raw)
         SELECT gen_random_uuid(), gen_random_uuid(), n, 'opened', sha256(''), 'tarsy.alerts.high.disk', '{{}}',
                'Disk full', 'disk', 'high', 'fp-' || n, repeat('the disk of db-' || n || ' is full ', 100),
                convert_to(repeat('the disk of db-' || n || ' is full ', 100), 'UTF8')
         FROM generate_series(1, {sessions}) n;
         INSERT INTO alert_sessions (session_id, deadline_at, lease_expires_at, lease_period, lease_token, worker_name,
                                     status, fingerprint, chain, event_seq, release_reason)
         SELECT alert_id, now() + interval '2 h', now() + interval '1 h', '30 s', alert_id, 'w', 'running', fingerprint,
                'kubernetes', 12, '2 waiting_for_approval'
         FROM alerts;
         INSERT INTO approvals (session_id, event_seq, execution_id, call_id, tool, policy, arguments, call_sha256,
                                schema_sha256, why, evidence, origins, quorum, expires_at, valid_for, on_resolved,
                                other_person, channels)
         SELECT alert_id, 11, alert_id, 'call-1', 'k8s.rollout_restart', 'default',
                '{{\"namespace\": \"shop\", \"name\": \"checkout-' || stream_sequence || '\"}}', sha256('a'), sha256('b'),
                repeat('The last three results show that it does not come back. ', 10), '{{3,7}}',
                '[{{\"value\": \"checkout\", \"in\": \"event 7\"}}]', 1, now() + interval '1 h', '15 min', 'withdraw', false,
                '{{web,slack,cli}}'
         FROM alerts"
    ));
    for table in ["alerts", "alert_sessions", "approvals"] {
        database.execute(&format!("VACUUM (ANALYZE) {table}"));
    }
}

/// The times of several executions at the server.
fn measure(connection: &mut PgConnection, call: &str) -> Figures {
    (0..ROUNDS)
        .map(|_| {
            let explain = format!("EXPLAIN (ANALYZE, TIMING OFF) EXECUTE {call}");
            let lines: Vec<Line> = diesel::sql_query(explain).load(connection).unwrap();
            let time = lines
                .iter()
                .find_map(|line| line.text.trim().strip_prefix("Execution Time: "));
            let ms: f64 = time.unwrap().strip_suffix(" ms").unwrap().parse().unwrap();
            Duration::from_secs_f64(ms / 1_000.0)
        })
        .collect()
}

#[tokio::test]
async fn many_sessions_that_wait_are_small_and_delay_neither_a_sweep_nor_a_count() {
    let sessions = by_depth("TARSY_WAITING_SESSIONS", 4_000, 100_000);
    let database = TestDatabase::create().await;
    let began = Instant::now();
    fill(&database, sessions);
    let made = began.elapsed().as_secs_f64();
    println!("{sessions} sessions that wait, made in {made:.0} s");
    let bytes = |table: &str| {
        let size = format!("SELECT pg_total_relation_size('{table}') / {sessions}");
        database.number(&size)
    };
    let alert = bytes("alerts");
    let session = bytes("alert_sessions");
    let request = bytes("approvals");
    println!("bytes: alert {alert}, session {session}, request {request}");
    assert!(alert + session + request <= MAX_BYTES);

    let mut connection = database.connection();
    for (name, types, sql) in [
        ("sweep", "float8, bigint, float8", SWEEP),
        ("counts", "bigint, uuid", COUNTS),
        ("gauges", "bigint", GAUGES),
    ] {
        diesel::sql_query(format!("PREPARE {name} ({types}) AS {}", numbered(sql)))
            .execute(&mut connection)
            .unwrap();
    }
    let id = database.text("SELECT alert_id::text FROM alerts LIMIT 1");
    let sweep = measure(&mut connection, "sweep (15, 100, 60)");
    let count = measure(&mut connection, &format!("counts ({MAX_OPEN}, '{id}')"));
    let gauges = measure(&mut connection, &format!("gauges ({MAX_READ})"));
    for (what, times) in [("sweep", &sweep), ("count", &count), ("gauges", &gauges)] {
        let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
        let median = ms(times.median());
        println!(
            "{what}: median {median:.2} ms, worst {:.2} ms of {ROUNDS}",
            ms(times.worst())
        );
    }
    assert_eq!(
        database.number("SELECT count(*) FROM alerts WHERE swept_at IS NOT NULL"),
        0
    );
    // The times of a busy machine say nothing about fewer sessions.
    if is_proof() {
        assert!(sweep.median() <= MAX_SWEEP, "{:?}", sweep.median());
        assert!(count.median() <= MAX_COUNT, "{:?}", count.median());
    }
}

/// The resident memory of a worker that has swept beside these sessions, in KiB.
async fn worker_memory(sessions: u32) -> u64 {
    let database = TestDatabase::create().await;
    if sessions > 0 {
        fill(&database, sessions);
    }
    let system = TestSystem::start_with(Setup {
        sweep: SWEEP_INTERVAL,
        database: Some(database),
        ..Setup::default()
    })
    .await;
    let (worker, _) = system.worker("w1").await;
    let mut memory = 0;
    for _ in 0..SWEEPS {
        tokio::time::sleep(SWEEP_INTERVAL).await; // pacing of looks
        memory = resident(&worker);
    }
    memory
}

fn resident(process: &Tarsy) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.unwrap().trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_sessions_that_wait_cost_a_worker_no_memory() {
    let sessions = by_depth("TARSY_WAITING_SESSIONS", 4_000, 100_000);
    let alone = worker_memory(0).await;
    let beside = worker_memory(sessions).await;
    println!(
        "memory of a worker: {alone} KiB alone, {beside} KiB beside {sessions} sessions that wait"
    );
    assert!(beside < alone + MAX_MEMORY_KIB);
}
