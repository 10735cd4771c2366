//! The schema matches the program: migrations, versions, what it checks.

use std::path::Path;

use diesel::prelude::*;
use diesel::sql_types::Text;
use diesel_migrations::MigrationHarness;
use tarsy_core::timeline::EventType;
use tarsy_store::{
    ConnectOptions, Error, MIGRATION_TIMEOUT, MIGRATIONS, Schema, check_schema, schema_version,
};

use crate::adapters::store::fixture::revert_through;
use crate::support::postgres::TestDatabase;

/// The names of the migrations, in their order.
fn migrations() -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

fn version(name: &str) -> String {
    name.chars().filter(char::is_ascii_digit).take(14).collect()
}

/// The version of the newest migration.
fn current() -> String {
    version(migrations().last().unwrap())
}

async fn migrate(options: &ConnectOptions) -> Result<usize, Error> {
    tarsy_store::migrate(options, MIGRATION_TIMEOUT)
        .await
        .map(|done| done.applied.len())
}

#[tokio::test]
async fn migrations_go_up_and_down_and_up_again() {
    let database = TestDatabase::empty();
    let options = ConnectOptions::new(database.url());
    assert_eq!(schema_version(&options).await.unwrap(), None);
    assert_eq!(migrate(&options).await.unwrap(), migrations().len());
    assert_eq!(
        schema_version(&options).await.unwrap().as_deref(),
        Some(current().as_str())
    );
    assert_eq!(check_schema(&options).await.unwrap(), Schema::Current);
    assert_eq!(migrate(&options).await.unwrap(), 0);

    database
        .connection()
        .revert_all_migrations(MIGRATIONS)
        .unwrap();
    let left = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v') \
                AND relname <> '__diesel_schema_migrations'";
    assert_eq!(database.number(left), 0);
    assert_eq!(migrate(&options).await.unwrap(), migrations().len());
}

#[tokio::test]
async fn reverting_the_native_tool_events_keeps_their_rows() {
    let database = TestDatabase::create().await;
    database.execute(
        "INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content) \
         VALUES ('019ab000-0000-7000-8000-000000000000', now(), 1, 1, 'code_execution', 'completed', 'print(1)')",
    );
    revert_through(&database, "20261121000001");
    assert_eq!(
        database.number("SELECT count(*) FROM timeline_events WHERE event_type = 'code_execution'"),
        1
    );
    let refused = diesel::sql_query(
        "INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content) \
         VALUES ('019ab000-0000-7000-8000-000000000000', now(), 2, 1, 'url_context_result', 'completed', '')",
    )
    .execute(&mut database.connection());
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("timeline_events_type")
    );
    migrate(&ConnectOptions::new(database.url())).await.unwrap();
    assert!(
        database
            .holds("NOT EXISTS (SELECT FROM pg_constraint WHERE conname = 'timeline_events_type')")
    );
}

#[tokio::test]
async fn the_comment_of_the_column_names_every_type_of_event() {
    let database = TestDatabase::create().await;
    let comment = "SELECT col_description(attrelid, attnum) FROM pg_attribute \
                   WHERE attrelid = 'timeline_events'::regclass AND attname = 'event_type'";
    let words = EventType::KNOWN.join(", ");
    let comment = database.text(comment);
    assert!(
        comment.contains(&format!(" writes {words}. ")),
        "a migration renews the comment: {comment}"
    );
}

#[tokio::test]
async fn many_migrators_at_once_apply_each_migration_once() {
    let database = TestDatabase::empty();
    let options = ConnectOptions::new(database.url());
    let (a, b, c, d) = tokio::join!(
        migrate(&options),
        migrate(&options),
        migrate(&options),
        migrate(&options)
    );
    let mut applied: Vec<usize> = [a, b, c, d].into_iter().map(Result::unwrap).collect();
    applied.sort_unstable();
    assert_eq!(applied, [0, 0, 0, migrations().len()]);
}

#[tokio::test]
async fn a_worker_refuses_a_schema_that_is_behind() {
    let database = TestDatabase::create().await;
    let options = ConnectOptions::new(database.url());
    database
        .connection()
        .revert_last_migration(MIGRATIONS)
        .unwrap();
    let behind = check_schema(&options).await.unwrap_err();
    assert!(
        matches!(&behind, Error::SchemaBehind(missing) if *missing == current()),
        "{behind}"
    );
    let nothing = TestDatabase::empty();
    let error = check_schema(&ConnectOptions::new(nothing.url()))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "database schema lacks migration 20261121000000: run tarsy migrate"
    );
}

#[tokio::test]
async fn a_newer_schema_names_the_oldest_program_that_may_use_it() {
    let database = TestDatabase::create().await;
    let options = ConnectOptions::new(database.url());
    let newer = "20991231000000";
    let later = "20991231000001";
    database.execute(&format!(
        "INSERT INTO __diesel_schema_migrations (version) VALUES ('{newer}'), ('{later}')"
    ));
    // The migration only added something: the row is unchanged.
    assert_eq!(
        check_schema(&options).await.unwrap(),
        Schema::Newer(later.to_owned())
    );
    let done = tarsy_store::migrate(&options, MIGRATION_TIMEOUT)
        .await
        .unwrap();
    assert_eq!(
        (done.applied, done.schema),
        (vec![], Schema::Newer(later.to_owned()))
    );
    assert!(database.holds(&format!(
        "EXISTS (SELECT FROM __diesel_schema_migrations WHERE version = '{newer}')"
    )));

    // The migration raised the row: first to this version, then to one newer than this program.
    database.execute(&format!(
        "UPDATE schema_compatibility SET oldest_program = '{}'",
        current()
    ));
    assert_eq!(
        check_schema(&options).await.unwrap(),
        Schema::Newer(later.to_owned())
    );
    for nothing_said in [false, true] {
        if nothing_said {
            database.execute("DELETE FROM schema_compatibility");
        } else {
            database.execute(&format!(
                "UPDATE schema_compatibility SET oldest_program = '{newer}'"
            ));
        }
        for error in [
            check_schema(&options).await.unwrap_err(),
            migrate(&options).await.unwrap_err(),
        ] {
            assert!(
                matches!(&error, Error::SchemaTooNew(unknown) if unknown == later),
                "{error}"
            );
        }
    }
}

#[tokio::test]
async fn a_table_that_each_step_writes_checks_no_list_of_words() {
    let database = TestDatabase::create().await;
    let lists = "FROM pg_constraint WHERE contype = 'c' AND pg_get_constraintdef(oid) LIKE '%ARRAY[%' \
                 AND conrelid IN ('timeline_events'::regclass, 'entries'::regclass, 'tool_interactions'::regclass, \
                                  'alert_sessions'::regclass, 'agent_executions'::regclass)";
    assert!(
        database.holds(&format!("NOT EXISTS (SELECT {lists})")),
        "Postgres parses a list for each statement"
    );
}

#[tokio::test]
async fn the_rust_schema_equals_the_one_of_the_database() {
    let database = TestDatabase::create().await;
    let mut columns: Vec<String> = diesel::select(diesel::dsl::sql::<diesel::sql_types::Array<Text>>(
        "(SELECT array_agg(format('%s.%s -> %s', table_name, column_name, \
            CASE is_nullable WHEN 'YES' THEN 'Nullable<' || t || '>' ELSE t END) ORDER BY table_name, ordinal_position) \
          FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name), \
            initcap(CASE udt_name WHEN '_uuid' THEN 'array<nullable<uuid>>' WHEN '_text' THEN 'array<nullable<text>>' \
              WHEN '_int4' THEN 'array<nullable<int4>>' ELSE udt_name END) AS t \
          WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name <> '__diesel_schema_migrations')",
    ))
    .get_result(&mut database.connection())
    .unwrap();
    let mut written = Vec::new();
    let mut table = "";
    for line in include_str!("../../../../../crates/store/src/schema.rs").lines() {
        let line = line.trim().trim_end_matches(',');
        if let Some((name, _)) = line.split_once(" (") {
            table = name;
        } else if line.contains(" -> ") {
            written.push(format!("{table}.{line}"));
        }
    }
    // Diesel compiles three times as long for a table of more than 32 columns.
    for column in SQL_ONLY {
        let position = columns.iter().position(|found| found.starts_with(column));
        columns.remove(position.unwrap_or_else(|| panic!("the database has no column {column}")));
    }
    assert_eq!(written, columns);
}

/// The columns that only SQL statements name.
const SQL_ONLY: [&str; 4] = [
    "alert_sessions.fired_at ",
    "alert_sessions.release_reason ",
    "alert_sessions.resolved_alerts ",
    "alert_sessions.retry_of ",
];
