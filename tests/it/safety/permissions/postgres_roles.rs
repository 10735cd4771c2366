//! `deploy/postgres/roles.sql`: the owner migrates, the worker works, the reader reads, and none may do more.

use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use tarsy_engine::ports::{Journal as _, Outbox as _, Sessions as _};
use tarsy_reports::{IdMatch, SessionFilter, SessionPage};
use tarsy_store::{
    ConnectOptions, MIGRATION_TIMEOUT, Schema, Store, check_for_worker, check_schema, database_fit,
    migrate,
};

use super::files::deployed;
use crate::adapters::store::fixture::{checkpoint, running_session};
use crate::support::postgres::TestDatabase;
use crate::support::postgres_server::PostgresServer;

#[tokio::test]
async fn the_deployed_roles_of_postgres_are_enough_and_no_more() {
    // The roles belong to a whole server, so this test has one of its own.
    let server = PostgresServer::start().await;
    let database = TestDatabase::empty_on(server.url());
    database.execute(&deployed("postgres/roles.sql"));
    let options = |role: &str| {
        ConnectOptions::new(
            database
                .url()
                .replace("postgres@", &format!("tarsy_{role}@")),
        )
    };
    let refused = |role: &str, sql: &str| {
        let mut connection = PgConnection::establish(&options(role).url).unwrap();
        let error = connection.batch_execute(sql).unwrap_err().to_string();
        assert!(
            error.contains("permission denied") || error.contains("must be owner"),
            "{role}: {sql}: {error}"
        );
    };
    refused("worker", "CREATE TABLE mine (id int)");
    migrate(&options("owner"), MIGRATION_TIMEOUT).await.unwrap();
    assert_eq!(
        check_for_worker(&options("worker")).await.unwrap(),
        Schema::Current
    );
    let store = Store::new(&options("worker")).unwrap();
    let (lease, executions) = running_session(&store, 1).await;
    store
        .append(lease, checkpoint(executions[0], 1))
        .await
        .unwrap();
    assert_eq!(
        check_schema(&options("reader")).await.unwrap(),
        Schema::Current
    );
    let reader = Store::new(&ConnectOptions {
        may_be_read_only: true,
        ..options("reader")
    })
    .unwrap();
    assert!(!reader.reachable().await, "the probe writes");
    // Everything that the web server asks.
    let page = SessionPage {
        filter: SessionFilter {
            limit: 10,
            ..SessionFilter::default()
        },
        before: None,
    };
    assert_eq!(reader.session_page(page.clone()).await.unwrap().len(), 1);
    assert_eq!(reader.status_counts(page).await.unwrap().running, 1);
    assert_eq!(reader.dead_alerts(10).await.unwrap(), []);
    assert!(reader.report(lease.session_id).await.unwrap().is_some());
    assert_eq!(
        reader.resolve(&lease.session_id.short()).await.unwrap(),
        IdMatch::One(lease.session_id)
    );
    assert!(
        !reader
            .events(lease.session_id, 0, 10)
            .await
            .unwrap()
            .is_empty()
    );
    reader.event_key().await.unwrap();
    for sql in [
        "DROP TABLE entries",
        "CREATE TABLE mine (id int)",
        "ALTER TABLE entries ADD COLUMN mine int",
    ] {
        refused("worker", sql);
        refused("reader", sql);
    }
    for sql in [
        "INSERT INTO store_probes (slot) VALUES (1)",
        "TRUNCATE alerts",
        "SELECT * FROM entries FOR UPDATE",
    ] {
        refused("reader", sql);
    }
    refused("reader", "DELETE FROM entries");
    refused("reader", "UPDATE alert_sessions SET status = 'completed'");
    let fit = async |role: &str| database_fit(&options(role)).await.unwrap();
    let (owner, worker, reader) = (fit("owner").await, fit("worker").await, fit("reader").await);
    assert_eq!(
        (owner.owner_lacks, worker.worker_lacks, reader.reader_lacks),
        (None, None, None)
    );
    assert!(worker.owner_lacks.is_some() && reader.worker_lacks.is_some());
    assert_eq!(
        (worker.may_write, reader.may_write, owner.is_superuser),
        (true, false, false)
    );
}
