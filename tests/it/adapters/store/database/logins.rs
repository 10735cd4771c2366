//! The database over TLS, with a password in a file that changes.

use std::path::PathBuf;
use std::time::Duration;

use tarsy_config::Secret;
use tarsy_engine::ports::Sessions as _;
use tarsy_store::{
    ConnectOptions, Error, MIGRATION_TIMEOUT, Secrets, Store, check_for_worker, migrate,
};

use crate::support::certificates::Authority;
use crate::support::postgres::TestDatabase;
use crate::support::postgres_server::PostgresServer;
use crate::support::wait::eventually;

/// A server that admits the role `tarsy` only over TLS and with its password, and a migrated database on it.
struct Guarded {
    database: TestDatabase,
    _server: PostgresServer,
    directory: tempfile::TempDir,
    authority: Authority,
}

impl Guarded {
    /// The server's certificate is for this name.
    async fn start(name: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::new(directory.path(), "ca");
        let server = PostgresServer::start().await;
        let database = TestDatabase::empty_on(server.url());
        migrate(&ConnectOptions::new(database.url()), MIGRATION_TIMEOUT)
            .await
            .unwrap();
        database.execute("CREATE ROLE tarsy LOGIN PASSWORD 'one'; GRANT ALL ON ALL TABLES IN SCHEMA public TO tarsy");
        server
            .require_tls(&authority.pair(directory.path(), "server", &[name]))
            .await;
        Self {
            database,
            _server: server,
            directory,
            authority,
        }
    }

    fn options(&self, parameters: &str) -> ConnectOptions {
        let url = self.database.url().replace("postgres@", "tarsy@");
        let password = self.password_file().display().to_string();
        let password = Secret::file_of("DATABASE_PASSWORD_FILE", &move |_| Some(password.clone()));
        let secrets = Secrets {
            password,
            ca: Some(self.authority.file.clone()),
            address: None,
        };
        let retry_for = Duration::from_millis(200);
        ConnectOptions {
            secrets,
            retry_for,
            ..ConnectOptions::new(format!("{url}{parameters}"))
        }
    }

    fn password_file(&self) -> PathBuf {
        self.directory.path().join("password")
    }
}

#[tokio::test]
async fn a_renewed_password_is_used_by_the_next_connection() {
    let guarded = Guarded::start("127.0.0.1").await;
    let options = guarded.options("");
    let error = check_for_worker(&options).await.unwrap_err();
    assert!(
        matches!(&error, Error::Secret(_)) && error.to_string().contains("there is no such file"),
        "{error}"
    );
    std::fs::write(guarded.password_file(), "one\n").unwrap();
    let store = Store::new(&options).unwrap();
    assert!(store.reachable().await);
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'tarsy' AND ssl";
    assert!(guarded.database.number(encrypted) > 0);
    guarded.database.execute("ALTER ROLE tarsy PASSWORD 'two'");
    guarded
        .database
        .execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'tarsy'");
    eventually("the old password is refused", async || {
        !store.reachable().await
    })
    .await;
    std::fs::write(guarded.password_file(), "two\n").unwrap();
    eventually("the new password is used", async || store.reachable().await).await;
}

#[tokio::test]
async fn the_certificate_of_the_server_is_checked() {
    let guarded = Guarded::start("elsewhere.test").await;
    std::fs::write(guarded.password_file(), "one").unwrap();
    let message = check_for_worker(&guarded.options(""))
        .await
        .unwrap_err()
        .to_string();
    assert!(message.contains("server certificate for"), "{message}");
    check_for_worker(&guarded.options("?sslmode=verify-ca"))
        .await
        .unwrap();
    let stranger = Authority::new(guarded.directory.path(), "stranger");
    let mut options = guarded.options("?sslmode=verify-ca");
    options.secrets.ca = Some(stranger.file);
    let message = check_for_worker(&options).await.unwrap_err().to_string();
    assert!(message.contains("certificate verify failed"), "{message}");
    let error = check_for_worker(&guarded.options("?sslmode=disable"))
        .await
        .unwrap_err();
    assert!(matches!(&error, Error::Refused { .. }), "{error}");
}
