//! The store while the database is unavailable, slow or restarted.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use futures_util::FutureExt as _;
use tarsy_engine::ports::{Journal, Outbox, Sessions, StoreError, Sweep};
use tarsy_store::{ConnectOptions, Error, PoolUse, Store, check_schema};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::fixture::{checkpoint, new_id, received, running_session, until_blocked};
use crate::support::postgres::TestDatabase;
use crate::support::wait::eventually;

#[tokio::test]
async fn an_unavailable_database_is_reported_within_the_retry_time() {
    let port = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let retry_for = Duration::from_millis(300);
    let options = ConnectOptions {
        retry_for,
        ..ConnectOptions::new(format!("postgres://postgres@127.0.0.1:{port}/x"))
    };
    let store = Store::new(&options).unwrap();
    assert!(!store.reachable().await);
    let began = Instant::now();
    let answer = store.receive(received(new_id(), b"one")).await;
    assert!(
        matches!(answer, Err(StoreError::Unavailable(_))),
        "{answer:?}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn a_write_that_waits_too_long_for_a_row_is_sent_again_until_it_succeeds() {
    let database = TestDatabase::create().await;
    let (lease, executions) = running_session(&database.store(), 1).await;
    let options = ConnectOptions {
        lock_timeout: Duration::from_millis(50),
        retry_for: Duration::from_secs(30),
        application_name: "it's patient".into(),
        ..ConnectOptions::new(database.url())
    };
    let store = Store::new(&options).unwrap();
    let impatient = Store::new(&ConnectOptions {
        retry_for: Duration::from_millis(60),
        ..options
    })
    .unwrap();

    let mut rival = database.connection();
    rival
        .batch_execute("BEGIN; SELECT 1 FROM alert_sessions FOR UPDATE")
        .unwrap();
    let given_up = impatient.append(lease, checkpoint(executions[0], 1)).await;
    assert!(
        matches!(&given_up, Err(StoreError::Unavailable(why)) if why.contains("lock timeout")),
        "{given_up:?}"
    );

    let writer = store.clone();
    let written =
        tokio::spawn(async move { writer.append(lease, checkpoint(executions[0], 1)).await });
    until_blocked(&database, "it''s patient").await;
    rival.batch_execute("ROLLBACK").unwrap();
    assert_eq!(
        written.await.unwrap().map(|appended| appended.events),
        Ok(vec![None; 2])
    );
    assert_eq!(
        store.events(lease.session_id, 2, 10).await.unwrap().len(),
        2
    );
}

#[tokio::test]
async fn a_statement_that_exceeds_its_limit_has_timed_out_in_every_language() {
    let database = TestDatabase::create().await;
    let (lease, executions) = running_session(&database.store(), 1).await;
    // The server has no other language installed, so a trigger translates.
    database.execute(
        "CREATE FUNCTION be_slow() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_sleep(60); RETURN NEW; \
         EXCEPTION WHEN query_canceled THEN \
         RAISE 'storniere Anfrage wegen Zeitüberschreitung' USING ERRCODE = 'query_canceled'; END$$; \
         CREATE TRIGGER slow BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION be_slow()",
    );
    let options = ConnectOptions {
        statement_timeout: Duration::from_millis(200),
        lock_timeout: Duration::from_millis(100),
        retry_for: Duration::ZERO,
        ..ConnectOptions::new(database.url())
    };
    let store = Store::new(&options).unwrap();
    let written = store.append(lease, checkpoint(executions[0], 1)).await;
    assert!(
        matches!(&written, Err(StoreError::TimedOut(why)) if why.contains("storniere")),
        "{written:?}"
    );
}

#[tokio::test]
async fn connections_that_the_server_has_closed_are_replaced_silently() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    for number in 1..=3 {
        database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
        store
            .append(lease, checkpoint(executions[0], number))
            .await
            .unwrap();
    }
    assert!(store.reachable().await);
    assert_eq!(
        store.load(lease.session_id).await.unwrap().stages[0].executions[0].checkpoint,
        3
    );
}

/// Neither the connection of the statement nor the next one of the pool is alive.
#[tokio::test]
async fn a_statement_succeeds_at_once_although_every_connection_is_dead() {
    const CONNECTIONS: i64 = 4;
    let database = TestDatabase::create().await;
    let application_name = "a dead pool".to_owned();
    let options = ConnectOptions {
        retry_for: Duration::ZERO,
        application_name,
        ..ConnectOptions::new(database.url())
    };
    let store = Store::new(&options).unwrap();
    let (lease, executions) = running_session(&store, 1).await;
    let mut rival = database.connection();
    rival
        .batch_execute("BEGIN; SELECT 1 FROM alert_sessions FOR UPDATE")
        .unwrap();
    let statements = (0..CONNECTIONS).map(|_| {
        let (store, checkpoint) = (store.clone(), checkpoint(executions[0], 1));
        tokio::spawn(async move { store.append(lease, checkpoint).await })
    });
    let statements: Vec<_> = statements.collect();
    let connections =
        "FROM pg_stat_activity WHERE application_name = 'a dead pool' AND wait_event_type = 'Lock'";
    let waiting = format!("SELECT count(*) {connections}");
    eventually("every statement waits", async || {
        database.number(&waiting) == CONNECTIONS
    })
    .await;
    rival.batch_execute("ROLLBACK").unwrap();
    for statement in statements {
        // All but one are refused as those of a second writer.
        let _one_of_several = statement.await.unwrap();
    }
    database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'a dead pool'");
    store
        .append(lease, checkpoint(executions[0], 2))
        .await
        .unwrap();
}

/// Some callers are dropped while their statements run, the others while they wait for a connection.
#[tokio::test]
async fn callers_that_are_dropped_cost_the_pool_no_connection() {
    const CONNECTIONS: usize = 2;
    let database = TestDatabase::create().await;
    let application_name = "a dropped caller".to_owned();
    let options = ConnectOptions {
        pool_size: CONNECTIONS,
        application_name,
        ..ConnectOptions::new(database.url())
    };
    let store = Store::new(&options).unwrap();
    let (lease, executions) = running_session(&store, 1).await;
    let mut rival = database.connection();
    rival
        .batch_execute("BEGIN; SELECT 1 FROM alert_sessions FOR UPDATE")
        .unwrap();
    let first = checkpoint(executions[0], 1);
    let callers = (0..2 * CONNECTIONS).map(|_| {
        let (store, checkpoint) = (store.clone(), first.clone());
        tokio::spawn(async move { store.append(lease, checkpoint).await })
    });
    let callers: Vec<_> = callers.collect();
    let of_store = "FROM pg_stat_activity WHERE application_name = 'a dropped caller'";
    let count = |state: &str| format!("SELECT count(*) = {CONNECTIONS} {of_store} AND {state}");
    let full = count("wait_event_type = 'Lock'");
    eventually("the pool is full", async || {
        database.holds(&full) && store.pool_use().waiting == CONNECTIONS
    })
    .await;
    let processes = format!("SELECT string_agg(pid::text, ' ' ORDER BY pid) {of_store}");
    let before = database.text(&processes);

    for caller in &callers {
        caller.abort();
    }
    for caller in callers {
        assert!(caller.await.unwrap_err().is_cancelled());
    }
    rival.batch_execute("ROLLBACK").unwrap();
    eventually("no statement waits or runs", async || {
        store.pool_use()
            == PoolUse {
                size: CONNECTIONS,
                in_use: 0,
                waiting: 0,
            }
    })
    .await;
    // The statement of a dropped caller has taken effect.
    store
        .append(lease, checkpoint(executions[0], 2))
        .await
        .unwrap();
    assert_eq!(database.text(&processes), before);
    assert!(database.holds(&count("state = 'idle'")));
}

#[tokio::test]
async fn a_connection_that_a_dropped_caller_has_opened_stays_in_the_pool() {
    let database = TestDatabase::create().await;
    let application_name = "a dropped opener".to_owned();
    let store = Store::new(&ConnectOptions {
        application_name,
        ..ConnectOptions::new(database.url())
    })
    .unwrap();
    assert!(
        store
            .receive(received(new_id(), b"one"))
            .now_or_never()
            .is_none(),
        "no connection is open"
    );
    let of_store = "FROM pg_stat_activity WHERE application_name = 'a dropped opener'";
    let written = "SELECT count(*) = 1 FROM alerts";
    eventually("the statement has ended", async || {
        database.holds(written) && store.pool_use().in_use == 0
    })
    .await;
    let processes = format!("SELECT string_agg(pid::text, ' ' ORDER BY pid) {of_store}");
    let before = database.text(&processes);
    store.receive(received(new_id(), b"two")).await.unwrap();
    assert_eq!(database.text(&processes), before);
}

#[tokio::test]
async fn a_refused_statement_is_named() {
    let database = TestDatabase::create().await;
    let options = ConnectOptions {
        retry_for: Duration::ZERO,
        ..ConnectOptions::new(database.url())
    };
    let store = Store::new(&options).unwrap();
    database.execute("ALTER TABLE alerts RENAME COLUMN attempts TO tries");
    let refused = store.receive(received(new_id(), b"one")).await;
    let why = "column a.attempts does not exist";
    assert!(
        matches!(&refused, Err(StoreError::Unavailable(reason)) if reason.contains(why)),
        "{refused:?}"
    );
    let sweep = Sweep {
        interval: Duration::ZERO,
        min_age: Duration::ZERO,
        limit: 1,
    };
    database.execute("ALTER TABLE alerts RENAME COLUMN swept_at TO cleaned_at");
    let refused = store.sweep(sweep).await;
    assert!(
        matches!(&refused, Err(StoreError::Unavailable(reason)) if reason.contains("swept_at")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn an_invalid_address_is_reported_at_once_and_without_the_password() {
    let addresses = [
        (
            "db.example.com",
            "neither a postgres:// URL nor key=value words",
        ),
        (
            "http://db.example.com/tarsy",
            "neither a postgres:// URL nor key=value words that libpq knows",
        ),
        ("host='db", "neither a postgres:// URL nor key=value words"),
        (
            "postgres://u:s3cret%zz@h/db",
            "a % that begins no character code: write %25 for the % of a password",
        ),
        ("postgres://u:s3cret%00@h/db", "%00 is no character"),
        (
            "postgres://u:s3cret@[::1/db",
            "not a URL of the form postgres://user:password@host:port/database",
        ),
        (
            "postgres://u:s3cret@h:port/db",
            "an option with a value that is not a number",
        ),
        (
            "postgres://u:s3cret@h:99999999/db",
            "a port that is no port",
        ),
        (
            "postgres://u@h/db?password=s3cret&shape=round",
            "a parameter after the ? that libpq does not know",
        ),
        (
            "postgres://u:s3cret@h/db?sslmode",
            "a parameter after the ? that is not key=value",
        ),
        (
            "postgres://u:s3cret@h/db?sslmode=maybe",
            "an option with a value that libpq does not know",
        ),
        (
            "host=h,i port=1,2,3 password=s3cret",
            "not as many ports as hosts",
        ),
        ("postgres://u:s3cret@h/d\0b", "a NUL byte"),
    ];
    for (url, reason) in addresses {
        let options = ConnectOptions::new(url);
        let error = check_schema(&options).await.unwrap_err();
        assert!(
            matches!(error, Error::BadUrl(why) if why == reason),
            "{url}: {error}"
        );
        // A call does not retry such an address either.
        let began = Instant::now();
        let answer = Store::new(&options)
            .unwrap()
            .receive(received(new_id(), b"one"))
            .await;
        let reason = format!("database address (DATABASE_URL): {reason}");
        assert_eq!(answer, Err(StoreError::Conflict(reason)));
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{:?}",
            began.elapsed()
        );
    }
    let port = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let unavailable = check_schema(&ConnectOptions::new(format!(
        "postgres://u:s3cret@127.0.0.1:{port}/db"
    )))
    .await
    .unwrap_err();
    assert!(
        matches!(unavailable, Error::Connect(_)) && !unavailable.to_string().contains("s3cret"),
        "{unavailable}"
    );
}

#[tokio::test]
async fn a_silent_server_leaves_the_next_one_enough_time() {
    let database = TestDatabase::create().await;
    // The kernel accepts connections, and nothing answers on them.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let first = format!("{},127.0.0.1", silent.local_addr().unwrap());
    let url = database.url().replacen("127.0.0.1", &first, 1);
    let store = Store::new(&ConnectOptions {
        retry_for: Duration::ZERO,
        ..ConnectOptions::new(url)
    })
    .unwrap();
    store.receive(received(new_id(), b"one")).await.unwrap();
}
