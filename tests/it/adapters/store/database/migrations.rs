//! Migrations while workers continue.

use std::path::Path;
use std::time::Duration;

use diesel::RunQueryDsl as _;
use diesel::connection::SimpleConnection;
use tarsy_store::{ConnectOptions, Error, MIGRATION_TIMEOUT, Schema, check_schema, migrate};
use tokio::time::Instant;

use crate::adapters::store::fixture::{new_id, open_session, revert_through, until_blocked};
use crate::support::postgres::TestDatabase;

/// The first migration that alters the table of sessions: it waits for every reader of the table.
const CHANGES_SESSIONS: &str = "20261122000200";
/// The last test checks this migration and every later one.
const FIRST_CHECKED: &str = "2026-11-22-000500";

#[tokio::test]
async fn a_migration_that_waits_for_a_long_reader_lets_leases_be_renewed_and_succeeds() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let lease = open_session(&store, new_id(), "fp").await.lease;
    revert_through(&database, CHANGES_SESSIONS);
    let mut reader = database.connection();
    reader
        .batch_execute("BEGIN; LOCK TABLE alert_sessions IN ACCESS SHARE MODE")
        .unwrap();

    let options = ConnectOptions {
        application_name: "migrator".to_owned(),
        ..ConnectOptions::new(database.url())
    };
    let migrating = tokio::spawn(async move { migrate(&options, MIGRATION_TIMEOUT).await });
    let mut longest = Duration::ZERO;
    // Each renewal waits for the migration, which waits for the reader.
    for _ in 0..2 {
        until_blocked(&database, "migrator").await;
        let began = Instant::now();
        // The renewal of a worker of that schema.
        let renewal = format!(
            "UPDATE alert_sessions SET lease_expires_at = clock_timestamp() + interval '30 s' \
             WHERE session_id = '{}' AND lease_token = '{}' AND status = 'running'",
            lease.session_id, lease.token
        );
        let mut worker = database.connection();
        let renewed =
            tokio::task::spawn_blocking(move || diesel::sql_query(renewal).execute(&mut worker));
        assert_eq!(renewed.await.unwrap(), Ok(1));
        longest = longest.max(began.elapsed());
    }
    assert!(
        longest < Duration::from_secs(4),
        "a renewal waited for {longest:?}"
    );
    assert!(
        longest > Duration::from_millis(100),
        "no renewal had to wait: {longest:?}"
    );

    reader.batch_execute("COMMIT").unwrap();
    let done = migrating.await.unwrap().unwrap();
    assert!(
        done.applied.iter().any(|name| name.contains("follow_ups")),
        "{done:?}"
    );
    assert_eq!(
        check_schema(&ConnectOptions::new(database.url()))
            .await
            .unwrap(),
        Schema::Current
    );
}

#[tokio::test]
async fn a_migration_that_never_gets_its_lock_fails_and_leaves_no_lock() {
    let database = TestDatabase::create().await;
    revert_through(&database, CHANGES_SESSIONS);
    let mut reader = database.connection();
    reader
        .batch_execute("BEGIN; LOCK TABLE alert_sessions IN ACCESS SHARE MODE")
        .unwrap();
    let options = ConnectOptions::new(database.url());
    let error = migrate(&options, Duration::from_secs(1)).await.unwrap_err();
    assert!(matches!(&error, Error::MigrationBlocked { .. }), "{error}");
    let message = error.to_string();
    assert!(
        message.contains("follow_ups found its tables in use for 1 s")
            && message.contains("run tarsy migrate again"),
        "{message}"
    );
    reader.batch_execute("COMMIT").unwrap();
    assert_eq!(
        database.number(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = \
                                (SELECT oid FROM pg_database WHERE datname = current_database())"
        ),
        0
    );
    migrate(&options, MIGRATION_TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn a_migrator_waits_for_another_one_for_a_limited_time() {
    let database = TestDatabase::create().await;
    let mut other = database.connection();
    other
        .batch_execute("SELECT pg_advisory_lock(7463517902114)")
        .unwrap();
    let error = migrate(&ConnectOptions::new(database.url()), Duration::ZERO)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "another tarsy migrate has worked on this database for 0 s"
    );
}

#[tokio::test]
async fn an_index_that_was_left_incomplete_is_built_again() {
    let database = TestDatabase::create().await;
    revert_through(&database, "20261122000505");
    database.execute("CREATE INDEX alerts_id_end ON alerts (alert_id)");
    database.execute(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'alerts_id_end'::regclass",
    );
    migrate(&ConnectOptions::new(database.url()), MIGRATION_TIMEOUT)
        .await
        .unwrap();
    let index = database.text(
        "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indexrelid = 'alerts_id_end'::regclass AND indisvalid",
    );
    assert!(index.contains("reverse("), "{index}");
}

/// Such a statement would block the writers of a table while it scans all its rows.
#[test]
fn no_migration_builds_an_index_or_checks_rows_while_writers_wait() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let names = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let mut faults = Vec::new();
    for path in names.filter(|path| path.file_name().unwrap().to_str().unwrap() >= FIRST_CHECKED) {
        let sql: String = read(&path.join("up.sql"))
            .lines()
            .filter(|line| !line.starts_with("--"))
            .collect();
        let new_tables: Vec<&str> = sql
            .split("CREATE TABLE ")
            .skip(1)
            .filter_map(|rest| rest.split([' ', '(']).next())
            .collect();
        let is_new = |statement: &str| new_tables.iter().any(|table| statement.contains(table));
        for statement in sql.split(';').filter(|statement| !is_new(statement)) {
            let waits = statement.contains("INDEX") && !statement.contains("CONCURRENTLY");
            let checks = statement.contains("ADD CONSTRAINT") && !statement.contains("NOT VALID");
            if waits || checks {
                faults.push(format!("{}: {statement}", path.display()));
            }
        }
        let is_concurrent = sql.contains("CONCURRENTLY");
        if is_concurrent != read(&path.join("metadata.toml")).contains("run_in_transaction = false")
            || is_concurrent && sql.matches(';').count() != 1
        {
            faults.push(format!(
                "{}: CONCURRENTLY stands alone, outside of a transaction",
                path.display()
            ));
        }
    }
    assert_eq!(faults, Vec::<String>::new());
}
