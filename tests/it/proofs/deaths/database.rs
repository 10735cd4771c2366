//! The database: killed, gone, without room, and with a clock that jumps.

use chrono::Utc;

use super::bed::Bed;
use super::{Measured, Pace};
use crate::support::postgres::TestDatabase;
use crate::support::postgres_server::PostgresServer;
use crate::support::system::Setup;

const NOTICED: &str = "claiming paused: database unavailable";

async fn bed_on(postgres: &PostgresServer, pace: Pace) -> Bed {
    let database = Some(TestDatabase::empty_on(postgres.url()));
    Bed::start(
        pace.patient(),
        Setup {
            database,
            ..Setup::default()
        },
    )
    .await
}

pub(super) async fn restarted(pace: Pace) -> Vec<Measured> {
    let mut postgres = PostgresServer::start().await;
    let bed = bed_on(&postgres, pace).await;
    postgres.kill().await;
    postgres.restart().await;
    let back = Utc::now();
    bed.end(1).await;
    vec![Measured::new(
        "a running session takes its next step, after the return",
        bed.steps_after(back),
    )]
}

pub(super) async fn gone(pace: Pace) -> Vec<Measured> {
    let mut postgres = PostgresServer::start().await;
    let bed = bed_on(&postgres, pace).await;
    let at = Utc::now();
    postgres.kill().await;
    let noticed = bed.logged_after(at, NOTICED).await;
    let new = bed.publish(1).await;
    tokio::time::sleep(pace.outage).await; // the outage itself
    postgres.restart().await;
    let back = Utc::now();
    bed.end(1).await;
    vec![
        Measured::new("log: claiming paused", noticed),
        Measured::new(
            "a running session takes its next step, after the return",
            bed.steps_after(back),
        ),
        Measured::new(
            "an alert that waited is opened, after the return",
            bed.opened_after(back, &new),
        ),
    ]
}

/// A trigger refuses every write with the error of a full disk.
const FULL: &str = "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                    RAISE EXCEPTION USING ERRCODE = 'disk_full', \
                    MESSAGE = 'could not extend file: No space left on device'; END $$";

pub(super) async fn disk_full(pace: Pace) -> Vec<Measured> {
    let bed = Bed::start(pace.patient(), Setup::default()).await;
    let database = &bed.system.database;
    let tables = database
        .text("SELECT string_agg(tablename, ' ') FROM pg_tables WHERE schemaname = 'public'");
    let at = Utc::now();
    database.execute(FULL);
    for table in tables.split(' ') {
        // One table at a time: a statement of a worker never waits for two of them.
        let trigger = format!(
            "CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON {table} EXECUTE FUNCTION no_room()"
        );
        database.execute(&trigger);
    }
    let noticed = bed.logged_after(at, NOTICED).await;
    tokio::time::sleep(pace.outage).await; // the outage itself
    for table in tables.split(' ') {
        database.execute(&format!("DROP TRIGGER no_room ON {table}"));
    }
    let back = Utc::now();
    bed.end(1).await;
    vec![
        Measured::new("log: claiming paused", noticed),
        Measured::new(
            "a running session takes its next step, after room was made",
            bed.steps_after(back),
        ),
    ]
}

/// A clock that is an hour ahead makes every lease look expired; the deadline of the sessions is further ahead here.
pub(super) async fn clock_jumps(pace: Pace) -> Vec<Measured> {
    let bed = Bed::start(pace.patient(), Setup::default()).await;
    let at = Utc::now();
    bed.system.database.execute(
        "UPDATE alert_sessions SET lease_expires_at = lease_expires_at - interval '1 hour'",
    );
    bed.end(1).await;
    assert!(bed.resumed_after(at).is_empty(), "the owners go on");
    vec![Measured::new(
        "a running session takes its next step",
        bed.steps_after(at),
    )]
}
