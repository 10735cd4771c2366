//! A database that answers but accepts no writes.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use tarsy_core::timeline::EventType;

use crate::lifecycle::start::is_ready;
use crate::support::postgres::TestDatabase;
use crate::support::process::metric;
use crate::support::system::TestSystem;
use crate::support::wait::eventually_within;

fn forbid_writes(database: &TestDatabase) {
    set_default_read_only(database, "on");
}

fn allow_writes(database: &TestDatabase) {
    set_default_read_only(database, "off");
}

/// Changes the default of later transactions, and closes all connections.
fn set_default_read_only(database: &TestDatabase, value: &str) {
    let mut connection = database.connection();
    connection
        .batch_execute("SET default_transaction_read_only = off")
        .unwrap();
    let setting = format!(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = {value}', \
         current_database()); END $$"
    );
    connection.batch_execute(&setting).unwrap();
    let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                  WHERE datname = current_database() AND pid <> pg_backend_pid()";
    connection.batch_execute(others).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_takes_no_writes_pauses_a_worker_and_counts_no_attempt() {
    let mut system = TestSystem::start(&["answer-1-middle"]).await;
    // The address accepts any server, so only the probe detects that this one accepts no writes.
    let joint = if system.database.url().contains('?') {
        '&'
    } else {
        '?'
    };
    let url = format!("{}{joint}target_session_attrs=any", system.database.url());
    let (_worker, probes) = system.worker_on("w1", &url).await;
    is_ready(&probes, (200, "ok")).await;
    let first = system.publish().await;
    let gate = system.gates.next().await;

    forbid_writes(&system.database);
    is_ready(&probes, (503, "database unavailable")).await;
    let second = system.publish().await;
    let expired =
        format!("SELECT lease_expires_at < now() FROM alert_sessions WHERE session_id = '{first}'");
    eventually_within(
        Duration::from_secs(20),
        "the lease has expired",
        async || system.database.holds(&expired),
    )
    .await;
    // A pull request that was open when the pause began may still deliver one message.
    let received = metric(&probes, "tarsy_alerts_received_total", "").await;

    is_ready(&probes, (503, "database unavailable")).await;
    assert!(
        received <= 2.0,
        "alerts are redelivered again and again: {received}"
    );
    allow_writes(&system.database);
    is_ready(&probes, (200, "ok")).await;
    gate.open().await;
    system.gates.open_all();
    let mut resumed = Vec::new();
    for session in [first, second] {
        let mut timeline = system.follow(session).await;
        timeline.finish().await;
        system.assert_invariants(session, &timeline.seen).await;
        let events = timeline
            .seen
            .iter()
            .filter(|event| event.event_type == EventType::SessionResumed);
        resumed.extend(events.map(|event| event.metadata["reason"].as_str().unwrap().to_owned()));
    }
    assert!(
        !resumed.contains(&"lease_expired".to_owned()),
        "no worker died, but a lease expired: {resumed:?}"
    );
    assert_eq!(
        system
            .database
            .number("SELECT max(attempts)::bigint FROM alerts"),
        1,
        "a delivery during the pause was counted as an attempt"
    );
}
