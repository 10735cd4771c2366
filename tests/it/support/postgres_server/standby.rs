//! A standby that replicates from a primary on loopback, through a proxy that the test can cut.

use std::io::Write as _;

use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};

use super::PostgresServer;
use crate::support::postgres_server::proxy::PostgresProxy;
use crate::support::process::ports::free_port;
use crate::support::wait::eventually;

/// A standby and the link over which it replicates.
pub(crate) struct Standby {
    pub(crate) server: PostgresServer,
    link: PostgresProxy,
}

impl Standby {
    /// Copies the primary with `pg_basebackup` and follows it. `None` if this Postgres has no `pg_basebackup`: then the
    /// caller's test is skipped.
    pub(crate) async fn of(primary: &PostgresServer) -> Option<Self> {
        if !primary.programs.join("pg_basebackup").exists() {
            // This bypasses the test harness, which captures the output of tests.
            let why = format!(
                "\nSKIPPED: a test with a standby: there is no pg_basebackup in {}\n\n",
                primary.programs.display()
            );
            std::io::stderr()
                .write_all(why.as_bytes())
                .expect("standard error");
            return None;
        }
        let link = PostgresProxy::start(&primary.url(), None).await;
        let (directory, port) = (PostgresServer::directory_of(primary.user), free_port());
        let (programs, user, settings) = (
            primary.programs.clone(),
            primary.user,
            primary.settings.clone(),
        );
        let mut server = PostgresServer {
            directory,
            programs,
            user,
            port,
            settings,
            process: None,
        };
        server.copy(&link.url(), &["--write-recovery-conf"]);
        server.launch().await;
        let standby = Self { server, link };
        standby.has_everything(primary).await;
        Some(standby)
    }

    /// Returns when the standby shows every commit of the primary.
    pub(crate) async fn has_everything(&self, primary: &PostgresServer) {
        let written = ask(primary, "pg_current_wal_lsn()::text");
        let query = format!("pg_last_wal_replay_lsn() >= '{written}'");
        let url = self.server.url();
        eventually("the standby has replayed everything", async || {
            let mut connection = PgConnection::establish(&url).expect("the standby");
            diesel::select(sql::<Bool>(&query))
                .get_result(&mut connection)
                .unwrap_or(false)
        })
        .await;
    }

    /// Ends replication: later commits exist on the primary only.
    pub(crate) async fn cut(&self) {
        self.link.cut();
        let url = self.server.url();
        eventually("the standby receives nothing", async || {
            let mut connection = PgConnection::establish(&url).expect("the standby");
            let receives =
                "NOT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')";
            diesel::select(sql::<Bool>(receives))
                .get_result(&mut connection)
                .unwrap_or(false)
        })
        .await;
    }

    /// Returns when the standby takes writes.
    pub(crate) fn promote(&self) {
        let mut connection = PgConnection::establish(&self.server.url()).expect("the standby");
        let promoted =
            diesel::select(sql::<Bool>("pg_promote()")).get_result::<bool>(&mut connection);
        assert_eq!(promoted, Ok(true));
    }
}

/// The answer to a query of one text.
fn ask(server: &PostgresServer, query: &str) -> String {
    let mut connection = PgConnection::establish(&server.url()).expect("the server");
    diesel::select(sql::<Text>(query))
        .get_result(&mut connection)
        .expect(query)
}

impl PostgresServer {
    /// The URL of a database on both servers, this one first.
    pub(crate) fn url_with(&self, other: &Self) -> String {
        format!(
            "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres",
            self.port, other.port
        )
    }

    /// Continues on its port with the data of a standby, which becomes the primary. Its own data is lost.
    pub(crate) async fn take_over(&mut self, standby: Standby) {
        let Standby { mut server, link } = standby;
        self.crash();
        server.crash();
        drop(link);
        std::mem::swap(&mut self.directory, &mut server.directory);
        self.launch().await;
        let mut connection = PgConnection::establish(&self.url()).expect("the standby");
        let promoted =
            diesel::select(sql::<Bool>("pg_promote()")).get_result::<bool>(&mut connection);
        assert_eq!(promoted, Ok(true));
    }

    /// Lets commits wait for any standby.
    pub(crate) async fn require_synchronous_replication(&self) {
        let mut connection = PgConnection::establish(&self.url()).expect("the server");
        for statement in [
            "ALTER SYSTEM SET synchronous_standby_names = '*'",
            "SELECT pg_reload_conf()",
        ] {
            diesel::sql_query(statement)
                .execute(&mut connection)
                .expect(statement);
        }
        eventually("a standby is synchronous", async || {
            ask(
                self,
                "(SELECT coalesce(string_agg(sync_state, ' '), '') FROM pg_stat_replication)",
            ) == "sync"
        })
        .await;
    }

    /// Copies the data of the running server at `from`.
    pub(super) fn copy(&self, from: &str, options: &[&str]) {
        let copied = self
            .program("pg_basebackup")
            .args([
                "--wal-method=stream",
                "--checkpoint=fast",
                "--no-sync",
                "--dbname",
                from,
            ])
            .args(options)
            .arg("--pgdata")
            .arg(self.data())
            .output()
            .expect("pg_basebackup");
        assert!(
            copied.status.success(),
            "pg_basebackup: {}",
            String::from_utf8_lossy(&copied.stderr)
        );
    }
}
