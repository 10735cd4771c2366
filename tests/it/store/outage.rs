//! The database is away, slow or gone for a moment.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use tarsy::engine::ports::{Journal, JournalError, Outbox, Sessions};
use tarsy::store::{ConnectOptions, Store};
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};

use super::fixture::{checkpoint, new_id, received, running_session};
use crate::support::postgres::TestDatabase;

#[tokio::test]
async fn a_database_that_is_away_is_told_within_the_patience() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let patience = Duration::from_millis(300);
    let options = ConnectOptions { patience, ..ConnectOptions::new(format!("postgres://postgres@127.0.0.1:{port}/x")) };
    let store = Store::new(&options).unwrap();
    assert!(!store.reachable().await);
    let began = Instant::now();
    let answer = store.receive(received(new_id(), b"one")).await;
    assert!(matches!(answer, Err(JournalError::Away(_))), "{answer:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_write_that_waits_too_long_for_a_row_is_sent_again_until_it_gets_through() {
    let database = TestDatabase::create().await;
    let (lease, executions) = running_session(&database.store(), 1).await;
    let options = ConnectOptions {
        lock_timeout: Duration::from_millis(50),
        patience: Duration::from_secs(30),
        application_name: "it's patient".into(),
        ..ConnectOptions::new(database.url())
    };
    let store = Store::new(&options).unwrap();
    let impatient = Store::new(&ConnectOptions { patience: Duration::from_millis(60), ..options }).unwrap();

    let mut rival = database.connection();
    rival.batch_execute("BEGIN; SELECT 1 FROM alert_sessions FOR UPDATE").unwrap();
    let given_up = impatient.append(lease, checkpoint(executions[0], 1)).await;
    assert!(matches!(&given_up, Err(JournalError::Away(why)) if why.contains("lock timeout")), "{given_up:?}");

    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'it''s patient' \
                   AND wait_event_type = 'Lock' AND datname = current_database()";
    let writer = store.clone();
    let written = tokio::spawn(async move { writer.append(lease, checkpoint(executions[0], 1)).await });
    let blocked = async {
        while database.number(waiting) == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), blocked).await.expect("the write waits for the row");
    rival.batch_execute("ROLLBACK").unwrap();
    assert_eq!(written.await.unwrap(), Ok(()));
    assert_eq!(store.events(lease.session_id, 2, 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn connections_that_the_server_has_closed_are_replaced_without_a_word() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    for number in 1..=3 {
        database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
        store.append(lease, checkpoint(executions[0], number)).await.unwrap();
    }
    assert!(store.reachable().await);
    assert_eq!(store.load(lease.session_id).await.unwrap().stages[0].executions[0].checkpoint, 3);
}
