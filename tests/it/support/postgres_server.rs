//! A Postgres server of one test, which the test can stop and start again.
//!
//! It runs the programs of the shared server, as the owner of that server's data: Postgres refuses to run as root.

mod backup;
mod fresh;
pub(crate) mod proxy;
mod standby;
pub(crate) mod statements;

use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Text;
use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::certificates::Pair;
use super::nats::killed_with_this_process;
use super::postgres::admin;
use super::process::ports::free_port;
use super::process::{children_of, is_running};
use super::wait::eventually_within;

pub(crate) use standby::Standby;

const READY_WITHIN: Duration = Duration::from_secs(180);

/// A running server; killed when it is dropped.
#[derive(Debug)]
pub(crate) struct PostgresServer {
    directory: tempfile::TempDir,
    programs: PathBuf,
    user: Option<u32>,
    port: u16,
    settings: Vec<String>,
    process: Option<Child>,
}

/// The directory with the programs of the shared server, and the user that may run them, if it is not this one.
pub(crate) fn programs() -> (PathBuf, Option<u32>) {
    let ask = |query: &str| -> String {
        diesel::select(sql::<Text>(query))
            .get_result(&mut admin())
            .expect(query)
    };
    let programs = PathBuf::from(ask("(SELECT setting FROM pg_config WHERE name = 'BINDIR')"));
    let data = ask("current_setting('data_directory')");
    let owner = std::fs::metadata(data)
        .expect("the shared server is on this machine")
        .uid();
    (
        programs,
        Some(owner).filter(|owner| *owner != geteuid().as_raw()),
    )
}

impl PostgresServer {
    /// A fresh cluster, which does not wait for the disk.
    pub(crate) async fn start() -> Self {
        Self::start_with(&["fsync=off"]).await
    }

    /// A fresh cluster with these settings, each `name=value`.
    pub(crate) async fn start_with(settings: &[&str]) -> Self {
        let (programs, user) = programs();
        let directory = Self::directory_of(user);
        let settings = settings
            .iter()
            .map(|setting| (*setting).to_owned())
            .collect();
        let mut server = Self {
            directory,
            programs,
            user,
            port: free_port(),
            settings,
            process: None,
        };
        server.make_cluster();
        server.launch().await;
        server
    }

    fn directory_of(user: Option<u32>) -> tempfile::TempDir {
        let directory = tempfile::Builder::new()
            .prefix("tarsy-test-postgres-")
            .tempdir()
            .expect("a directory");
        if user.is_some() {
            chown(directory.path(), user, None).expect("change the owner of the directory");
        }
        directory
    }

    /// The URL of its superuser.
    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The id of the running process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().expect("the server runs").id()
    }

    /// The log of the server since its start.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).expect("the log of the server")
    }

    /// Admits every role but the superuser only over TLS and with a password.
    pub(crate) async fn require_tls(&self, pair: &Pair) {
        for (from, name) in [(&pair.certificate, "server.crt"), (&pair.key, "server.key")] {
            let to = self.data().join(name);
            std::fs::copy(from, &to).expect("the file can be copied");
            std::fs::set_permissions(&to, Permissions::from_mode(0o600)).expect("its mode");
            chown(&to, self.user, self.user).expect("its owner");
        }
        let admitted =
            "host all postgres 127.0.0.1/32 trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
        std::fs::write(self.data().join("pg_hba.conf"), admitted)
            .expect("the rules of access can be written");
        let mut admin = PgConnection::establish(&self.url()).expect("the superuser");
        for statement in ["ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()"] {
            diesel::sql_query(statement)
                .execute(&mut admin)
                .expect(statement);
        }
        let url = self.url();
        eventually_within(
            READY_WITHIN,
            "the server has read its configuration",
            async || {
                let mut admin = PgConnection::establish(&url).expect("the superuser");
                diesel::select(sql::<Text>("current_setting('ssl')"))
                    .get_result::<String>(&mut admin)
                    .is_ok_and(|on| on == "on")
            },
        )
        .await;
    }

    /// Makes a role with a password that is not known, and admits every role but the superuser with a password only.
    pub(crate) async fn require_passwords(&self, role: &str) {
        let admitted =
            "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
        std::fs::write(self.data().join("pg_hba.conf"), admitted)
            .expect("the rules of access can be written");
        let mut admin = PgConnection::establish(&self.url()).expect("the superuser");
        let statements = [
            format!("CREATE ROLE {role} LOGIN PASSWORD 'unknown'"),
            "SELECT pg_reload_conf()".to_owned(),
        ];
        for statement in statements {
            diesel::sql_query(&statement)
                .execute(&mut admin)
                .expect(&statement);
        }
        let without = self.url().replace("postgres@", &format!("{role}@"));
        let refuses = async || PgConnection::establish(&without).is_err();
        eventually_within(READY_WITHIN, "the server asks for passwords", refuses).await;
    }

    /// Stops the server without a shutdown: clients get no message, and the next start has to recover.
    pub(crate) fn crash(&mut self) {
        if let Some(mut process) = self.process.take() {
            let pid = Pid::from_raw(process.id().cast_signed()).expect("a pid");
            kill_process(pid, Signal::QUIT).expect("the server can be stopped");
            process.wait().expect("the server has ended");
        }
    }

    /// Sends `kill -9` to all processes of the server at once. Committed data is in the memory of the kernel, so it
    /// survives.
    pub(crate) async fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let server = Pid::from_raw(process.id().cast_signed()).expect("a pid");
            // A stopped server starts no child while its children are listed.
            kill_process(server, Signal::STOP).expect("the server can be stopped");
            let children = children_of(process.id(), "");
            process.kill().expect("the server can be killed");
            process.wait().expect("the server has ended");
            for child in &children {
                // The child may have ended with its parent.
                kill_process(*child, Signal::KILL).ok();
            }
            eventually_within(
                READY_WITHIN,
                "every process of the server has ended",
                async || !children.iter().any(|child| is_running(*child)),
            )
            .await;
        }
    }

    /// Sends `kill -9` to one backend; the server ends all others and recovers. Returns whether a backend existed.
    pub(crate) fn kill_backend(&self) -> bool {
        let backend = self
            .process
            .as_ref()
            .and_then(|process| children_of(process.id(), "idle").into_iter().next());
        backend.is_some_and(|backend| kill_process(backend, Signal::KILL).is_ok())
    }

    /// Starts the server again on its port with its data.
    pub(crate) async fn restart(&mut self) {
        self.crash();
        self.launch().await;
    }

    async fn launch(&mut self) {
        let log = self.directory.path().join("log");
        let mut process = self
            .program("postgres")
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.to_string()])
            .args([
                "-c",
                "listen_addresses=127.0.0.1",
                "-c",
                "unix_socket_directories=",
            ])
            .args(self.settings.iter().flat_map(|setting| ["-c", setting]))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).expect("a log"))
            .spawn()
            .expect("postgres");
        let url = self.url();
        eventually_within(READY_WITHIN, "postgres is ready", async || {
            let ended = process.try_wait().expect("its state");
            assert_eq!(
                ended,
                None,
                "{}",
                std::fs::read_to_string(&log).unwrap_or_default()
            );
            PgConnection::establish(&url).is_ok()
        })
        .await;
        self.process = Some(process);
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// A command for one of the server's programs, as the user that may run it.
    fn program(&self, name: &str) -> Command {
        let binary = self.programs.join(name);
        let mut command = match self.user {
            None => killed_with_this_process(&binary),
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args([format!("--reuid={user}"), format!("--regid={user}")]);
                command
                    .args(["--clear-groups", "--pdeathsig=KILL", "--"])
                    .arg(binary);
                command
            }
        };
        command.current_dir("/");
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.crash();
    }
}
