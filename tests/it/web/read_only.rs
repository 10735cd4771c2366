//! Whatever rights its role in the database has, the web server writes nothing.

use super::Web;
use crate::support::system::TestSystem;

/// From now on, each look at the list of sessions also writes a row, if it may.
const TRAP: &str = "\
    CREATE TABLE written (at timestamptz);
    CREATE FUNCTION write() RETURNS boolean LANGUAGE plpgsql AS \
        $$BEGIN INSERT INTO written VALUES (clock_timestamp()); RETURN true; END$$;
    ALTER TABLE alert_sessions RENAME TO kept;
    CREATE VIEW alert_sessions AS SELECT kept.* FROM kept WHERE (SELECT write());";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_refuses_a_write_of_the_web_server_even_as_superuser() {
    let system = TestSystem::start(&[]).await;
    assert!(
        system
            .database
            .holds("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"),
        "the test needs one"
    );
    let web = Web::start(&system, &[]).await;
    assert_eq!(web.get("/api/v1/sessions").await.status, 200);
    system.database.execute(TRAP);
    let refused = web.get("/api/v1/sessions").await;
    let error = refused.json()["error"].as_str().unwrap().to_owned();
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(
        error.contains("cannot execute INSERT in a read-only transaction"),
        "{error}"
    );
    // The same look by another client does write.
    system.database.execute("SELECT * FROM alert_sessions");
    assert_eq!(system.database.number("SELECT count(*) FROM written"), 1);
}
