//! The rights that a worker's role needs, and the errors when one is missing.

use std::time::Duration;

use diesel::prelude::*;
use tarsy_engine::ports::{Journal, PRUNED_TABLES, Sessions};
use tarsy_store::{ConnectOptions, Error, Schema, Store, check_for_worker};

use crate::adapters::store::fixture::{
    LEASE, checkpoint, claim_request, completed, new_id, received, running_session, settled,
};
use crate::support::postgres::TestDatabase;

/// A role that may log in and use the schema; dropping the value drops the role.
pub(crate) struct Role {
    pub(crate) name: String,
    pub(crate) url: String,
    admin: String,
}

impl Role {
    pub(crate) fn create(database: &TestDatabase, rights: &str) -> Self {
        let name = format!("tarsy_role_{}", new_id().0.simple());
        database.execute(&format!(
            "CREATE ROLE {name} LOGIN PASSWORD 'role'; GRANT USAGE ON SCHEMA public TO {name}"
        ));
        if !rights.is_empty() {
            database.execute(&format!(
                "GRANT {rights} ON ALL TABLES IN SCHEMA public TO {name}"
            ));
        }
        let (_, server) = database.url().split_once('@').unwrap();
        let url = format!("postgres://{name}:role@{server}");
        Self {
            name,
            url,
            admin: database.url().to_owned(),
        }
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let dropped = PgConnection::establish(&self.admin).map(|mut admin| {
            use diesel::connection::SimpleConnection as _;
            admin.batch_execute(&format!("DROP OWNED BY {0}; DROP ROLE {0}", self.name))
        });
        if !std::thread::panicking() {
            dropped.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn a_role_without_create_privilege_runs_whole_investigations() {
    let database = TestDatabase::create().await;
    let role = Role::create(&database, "SELECT, INSERT, UPDATE, DELETE");
    let options = ConnectOptions::new(&role.url);
    assert_eq!(check_for_worker(&options).await.unwrap(), Schema::Current);
    let store = Store::new(&options).unwrap();
    assert!(store.reachable().await);
    let (lease, executions) = running_session(&store, 1).await;
    store
        .append(lease, checkpoint(executions[0], 1))
        .await
        .unwrap();
    store.renew(vec![lease], LEASE).await.unwrap();
    store.finish(lease, completed()).await.unwrap();
    settled(&store, lease.session_id).await.unwrap();
    store
        .claim(lease.session_id, claim_request("w2"))
        .await
        .unwrap();
    store.receive(received(new_id(), b"one")).await.unwrap();
}

#[tokio::test]
async fn a_missing_right_is_named_before_the_worker_starts() {
    let database = TestDatabase::create().await;
    let check = async |role: &Role| {
        check_for_worker(&ConnectOptions::new(&role.url))
            .await
            .unwrap_err()
            .to_string()
    };
    let reader = Role::create(&database, "SELECT");
    let message = check(&reader).await;
    assert!(
        message.starts_with(&format!(
            "database role {} lacks INSERT on agent_executions, UPDATE on agent_executions",
            reader.name
        )),
        "{message}"
    );
    database.execute(&format!(
        "GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {}",
        reader.name
    ));
    database.execute(&format!("REVOKE INSERT ON entries FROM {}", reader.name));
    let message = check(&reader).await;
    assert_eq!(
        message,
        format!("database role {} lacks INSERT on entries", reader.name)
    );
    let known = Role::create(&database, "");
    database.execute(&format!(
        "GRANT SELECT ON __diesel_schema_migrations, schema_compatibility TO {}",
        known.name
    ));
    let message = check(&known).await;
    for table in PRUNED_TABLES.iter().chain(&["store_probes"]) {
        assert!(
            message.contains(&format!(" on {table}")),
            "{table} is not named in {message}"
        );
    }
    let stranger = Role::create(&database, "");
    let message = check(&stranger).await;
    assert!(
        message.ends_with(" lacks SELECT on __diesel_schema_migrations"),
        "{message}"
    );
    database.execute(&format!(
        "REVOKE USAGE ON SCHEMA public FROM {}, PUBLIC",
        stranger.name
    ));
    let message = check(&stranger).await;
    assert!(message.ends_with(" lacks USAGE on the schema"), "{message}");
}

#[tokio::test]
async fn timeouts_apply_from_the_first_statement_and_options_of_the_address_stay() {
    let database = TestDatabase::create().await;
    let joint = if database.url().contains('?') {
        '&'
    } else {
        '?'
    };
    let url = format!(
        "{}{joint}options=-c%20statement_timeout%3D7%20-c%20search_path%3Dpublic%2Cpg_temp",
        database.url()
    );
    let options = ConnectOptions {
        statement_timeout: Duration::from_secs(11),
        ..ConnectOptions::new(url)
    };
    // This check compares the settings of the connection with those of its address.
    assert_eq!(check_for_worker(&options).await.unwrap(), Schema::Current);
    let store = Store::new(&ConnectOptions {
        application_name: "it's me".to_owned(),
        ..options
    })
    .unwrap();
    assert!(store.reachable().await);
    let seen = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'it''s me' AND datname = current_database()";
    assert_eq!(database.number(seen), 1);
}

#[tokio::test]
async fn a_refused_address_is_distinguished_from_an_outage() {
    let database = TestDatabase::create().await;
    let (server, _) = database.url().rsplit_once('/').unwrap();
    let refused = [(
        format!("{server}/tarsy_nowhere"),
        "there is no such database",
    )];
    for (url, why) in refused {
        let error = check_for_worker(&ConnectOptions::new(url))
            .await
            .unwrap_err();
        assert!(
            matches!(&error, Error::Refused { reason, .. } if *reason == why),
            "{error}"
        );
    }
    let role = Role::create(&database, "");
    let (_, rest) = role.url.split_once('@').unwrap();
    let error = check_for_worker(&ConnectOptions::new(format!(
        "postgres://tarsy_nobody:x@{rest}"
    )))
    .await
    .unwrap_err();
    assert!(
        matches!(&error, Error::Refused { reason, .. } if *reason == "there is no such role"),
        "{error}"
    );
    database.execute(&format!("ALTER ROLE {} NOLOGIN", role.name));
    let error = check_for_worker(&ConnectOptions::new(&role.url))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::Refused { reason, .. } if *reason == "this role may not log in"),
        "{error}"
    );
}

#[tokio::test]
async fn a_connection_asks_for_errors_in_english_where_it_may() {
    let database = TestDatabase::create().await;
    // Another name of the same language, so that no other one has to be installed.
    database.execute(
        "DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET lc_messages = ''POSIX''', current_database()); END$$; \
         ALTER TABLE alerts ADD COLUMN language text DEFAULT current_setting('lc_messages')",
    );
    let role = Role::create(&database, "SELECT, INSERT, UPDATE, DELETE");
    let language = async |url: &str| {
        let id = new_id();
        let store = Store::new(&ConnectOptions::new(url)).unwrap();
        store.receive(received(id, b"one")).await.unwrap();
        database.text(&format!(
            "SELECT language FROM alerts WHERE alert_id = '{}'",
            id.0
        ))
    };
    assert_eq!(language(&role.url).await, "POSIX");
    assert_eq!(language(database.url()).await, "C");
    database.execute(&format!(
        "GRANT SET ON PARAMETER lc_messages TO {}",
        role.name
    ));
    assert_eq!(language(&role.url).await, "C");
}
