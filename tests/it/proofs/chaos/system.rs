//! The system under faults: servers and workers as processes, every link between them through a proxy.

use std::path::PathBuf;
use std::sync::{Arc, Mutex as PlainMutex};
use std::time::Duration;

use chrono::{DateTime, Utc};
use rustix::process::Signal;
use tokio::sync::Mutex;

use super::odd::OddWorld;
use super::script::{self, DEADLY_GATE};
use super::worker::{Ledger, Spec, Worker};
use crate::support::gates::Gatekeeper;
use crate::support::link::{Link, Mode};
use crate::support::nats::NatsServer;
use crate::support::postgres::TestDatabase;
use crate::support::postgres_server::{PostgresServer, Standby};
use crate::support::process::Tarsy;
use crate::support::process::ports::free_port;

pub(super) const WORKERS: usize = 3;
pub(super) const SLOTS: u32 = 4;
pub(super) const LEASE: Duration = Duration::from_secs(3);
pub(super) const ATTEMPTS: u32 = 4;
pub(super) const MAX_ITERATIONS: u32 = 8;
/// The part of an investigation's time that is kept for its conclusion.
pub(super) const WRAP_UP: Duration = Duration::from_secs(4);
/// The delay of the standby: a commit of this age may be missing when the standby is cut off.
const REPLAYED_WITHIN: Duration = Duration::from_secs(1);
/// Tries to start a server again, whose port may be taken for a moment.
const TRIES: u32 = 20;

/// The deadline of an investigation. In a short run it has to come soon after the last fault.
pub(super) fn session_timeout() -> Duration {
    let seconds = match super::approvals() {
        0 if super::minutes() < 1.0 => 15,
        0 => 40,
        // They come faster, and wait for a slot.
        _ => 90,
    };
    Duration::from_secs(seconds)
}

/// All processes and proxies. The database is dropped before its server.
pub(super) struct System {
    pub(super) workers: Vec<Worker>,
    pub(super) ledger: Arc<PlainMutex<Ledger>>,
    pub(super) database: TestDatabase,
    pub(super) postgres: Mutex<PostgresServer>,
    pub(super) nats: Mutex<NatsServer>,
    pub(super) nats_url: String,
    pub(super) llm: Mutex<Tarsy>,
    /// The watchers' link to the broker.
    pub(super) watch_link: Link,
    pub(super) odd: OddWorld,
    llm_port: u16,
    gates: PathBuf,
    config: PathBuf,
    directory: tempfile::TempDir,
}

impl System {
    /// Starts everything and returns when the workers are ready, with the gates of its deadly alerts.
    pub(super) async fn start(seed: u64) -> (Self, Gatekeeper) {
        let directory = tempfile::Builder::new()
            .prefix("tarsy-chaos-")
            .tempdir()
            .unwrap();
        let odd = OddWorld::start(seed).await;
        let config = script::write(directory.path(), &odd);
        let (nats_port, llm_port) = (free_port(), free_port());
        let nats = NatsServer::start_on(nats_port, "").await;
        let postgres = PostgresServer::start().await;
        let database = TestDatabase::empty_on(postgres.url());
        let gates = Gatekeeper::new(&[DEADLY_GATE]);
        let mut system = Self {
            workers: Vec::new(),
            ledger: Arc::default(),
            nats_url: nats.url(),
            watch_link: Link::to(nats_port).await,
            odd,
            llm: Mutex::new(llm_service(directory.path(), llm_port, gates.socket()).await),
            database,
            postgres: Mutex::new(postgres),
            nats: Mutex::new(nats),
            llm_port,
            gates: gates.socket().to_owned(),
            config,
            directory,
        };
        system.migrate().await;
        let database_port = port_of(system.database.url());
        for number in 1..=WORKERS {
            let links = [
                Link::to(nats_port).await,
                Link::to(database_port).await,
                Link::to(llm_port).await,
            ];
            let url = system.database.url().to_owned();
            let database_url =
                move |port: u16| url.replace(&format!(":{database_port}/"), &format!(":{port}/"));
            let spec = Spec {
                number,
                config: system.config.display().to_string(),
                ledger: Arc::clone(&system.ledger),
                database_url: Box::new(database_url),
            };
            system.workers.push(Worker::start(spec, links));
        }
        for worker in &system.workers {
            worker.ready().await;
        }
        (system, gates)
    }

    /// Migrates schema and streams to this version; tries again while a server is unavailable.
    pub(super) async fn migrate(&self) {
        for _ in 0..TRIES {
            let (nats, database) = (self.nats_url.as_str(), self.database.url());
            let config = self.config.display().to_string();
            let env = [
                ("NATS_URL", nats),
                ("DATABASE_URL", database),
                ("TARSY_CONFIG", &config),
            ];
            if Tarsy::spawn("migrate", &["migrate"], &env)
                .finished()
                .await
                .0
                == 0
            {
                return;
            }
        }
        panic!("tarsy migrate does not succeed");
    }

    pub(super) async fn kill_llm_service(&self, down: Duration) {
        let mut llm = self.llm.lock().await;
        llm.kill().await;
        tokio::time::sleep(down).await; // the outage itself
        *llm = llm_service(self.directory.path(), self.llm_port, &self.gates).await;
    }

    pub(super) async fn freeze_llm_service(&self, lasts: Duration) {
        let llm = self.llm.lock().await;
        llm.pause();
        tokio::time::sleep(lasts).await; // the fault itself
        llm.resume();
    }

    pub(super) async fn kill_broker(&self, down: Duration) {
        let mut nats = self.nats.lock().await;
        nats.kill();
        tokio::time::sleep(down).await; // the outage itself
        nats.restart().await;
    }

    pub(super) async fn freeze_broker(&self, lasts: Duration) {
        let nats = self.nats.lock().await;
        nats.signal(Signal::STOP);
        tokio::time::sleep(lasts).await; // the fault itself
        nats.signal(Signal::CONT);
    }

    pub(super) async fn lose_streams(&self, down: Duration) {
        let mut nats = self.nats.lock().await;
        nats.kill();
        tokio::time::sleep(down).await; // the outage itself
        nats.restart_empty().await;
        self.migrate().await;
    }

    pub(super) async fn kill_database(&self, down: Duration) {
        let mut postgres = self.postgres.lock().await;
        postgres.kill().await;
        tokio::time::sleep(down).await; // the outage itself
        postgres.restart().await;
    }

    /// Lets a standby take over that lacks the commits of the last moments, on the same port. Returns the time from
    /// which commits may be lost; `None`, and does nothing, where no standby can be made.
    pub(super) async fn fail_over(&self, lost: Duration) -> Option<DateTime<Utc>> {
        let mut postgres = self.postgres.lock().await;
        let standby = Standby::of(&postgres).await?;
        let from = Utc::now() - REPLAYED_WITHIN;
        standby.cut().await;
        tokio::time::sleep(lost).await; // the commits that are lost
        postgres.kill().await;
        postgres.take_over(standby).await;
        Some(from)
    }

    pub(super) async fn kill_backend(&self) {
        self.postgres.lock().await.kill_backend();
    }

    /// Kills the worker that owns the session of this execution, like an alert that crashes its worker.
    /// Returns whether the session had an owner.
    pub(super) async fn kill_owner_of(&self, execution: &str) -> bool {
        let sql = format!(
            "coalesce((SELECT s.worker_name FROM alert_sessions s JOIN agent_executions e USING (session_id) \
             WHERE e.execution_id = '{execution}' AND s.status = 'running' AND s.lease_owner IS NOT NULL), '')"
        );
        let owner = self.ask(&sql).unwrap_or_default();
        let Some(worker) = self
            .workers
            .iter()
            .find(|worker| worker.state().name == owner)
        else {
            return false;
        };
        worker.kill(Duration::from_millis(300)).await;
        self.ledger.lock().unwrap().deaths.push(Utc::now());
        true
    }

    /// The text of an expression; `None` while the database is unavailable.
    pub(super) fn ask(&self, expression: &str) -> Option<String> {
        use diesel::prelude::*;
        let mut connection = PgConnection::establish(self.database.url()).ok()?;
        diesel::select(diesel::dsl::sql::<diesel::sql_types::Text>(expression))
            .get_result(&mut connection)
            .ok()
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Removes the fault of every link.
    pub(super) fn mend(&self) {
        for worker in &self.workers {
            use super::plan::Server::{Broker, Database, LlmService};
            use crate::support::link::Mode::Open;
            for server in [Broker, Database, LlmService] {
                worker.link(server).set(Open);
            }
        }
        self.watch_link.set(Mode::Open);
    }
}

async fn llm_service(directory: &std::path::Path, port: u16, gates: &std::path::Path) -> Tarsy {
    let (calls, transcripts) = (directory.join("model_calls"), directory.join("transcripts"));
    let (calls, transcripts) = (calls.to_str().unwrap(), transcripts.to_str().unwrap());
    let listen = format!("127.0.0.1:{port}");
    let args = [
        "llm-service",
        "--listen",
        &listen,
        "--calls-file",
        calls,
        "--transcripts",
        transcripts,
        "--allow-base-url",
        "http://127.0.0.1:*",
    ];
    for _ in 0..TRIES {
        let mut service = Tarsy::spawn(
            "llm-service",
            &args,
            &[("TARSY_GATES", gates.to_str().unwrap())],
        );
        if service.ready_or_ended().await.is_some() {
            return service;
        }
    }
    panic!("the LLM service does not start");
}

fn port_of(url: &str) -> u16 {
    url.rsplit_once(':')
        .and_then(|(_, rest)| rest.split('/').next()?.parse().ok())
        .expect("a URL with a port")
}
