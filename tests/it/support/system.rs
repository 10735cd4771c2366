//! A complete tarsy system on real servers, for tests of whole processes.

mod invariants;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tarsy::process::connect::Addresses;
use tarsy_bus::{
    ConnectRetry, Follower, Nats, NewAlert, Options, Priority, SESSION_ID, TimelineUpdate,
};
use tarsy_config::{Config, process_env};
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::timeline::{EventType, TimelineEvent};
use tarsy_store::{MIGRATION_TIMEOUT, Store};
use uuid::Uuid;

use super::gates::Gatekeeper;
use super::nats::NatsServer;
use super::postgres::TestDatabase;
use super::process::{TARSY, Tarsy, program};
use super::wait::eventually_within;

/// Lease of the workers: a dead worker is noticed after this time.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// Repetitions of a migration whose connection the database did not accept in time.
const MAX_REPEATED_MIGRATIONS: usize = 5;
const SWEEP: Duration = Duration::from_secs(15);
const TIMEOUT: Duration = Duration::from_secs(180);

/// Options of a test system.
pub(crate) struct Setup<'a> {
    /// Gates that hold their arrivals.
    pub(crate) watched: &'a [&'a str],
    /// Lease of the workers; also `ack_wait` of the queue.
    pub(crate) lease: Duration,
    /// Attempts before an alert is given up.
    pub(crate) attempts: u32,
    /// The time that a completed investigation covers later alerts.
    pub(crate) cooldown: Duration,
    /// Allowed tools of the evidence that may change something.
    pub(crate) allow: &'a [&'a str],
    /// Slots of each worker.
    pub(crate) slots: u32,
    /// Slots of each worker that are reserved for critical alerts.
    pub(crate) reserved: u32,
    /// Interval between two sweeps.
    pub(crate) sweep: Duration,
    /// Further lines of `mcp_servers`, with two spaces before each.
    pub(crate) servers: &'a str,
    /// The time that alerts wait for unreachable tool servers.
    pub(crate) tool_wait: Duration,
    /// Further sections of the configuration.
    pub(crate) sections: &'a str,
    /// Recordings in addition to the built-in ones.
    pub(crate) transcripts: &'a [&'a str],
    /// A recording in addition to the built-in ones.
    pub(crate) transcript: Option<String>,
    /// The database to use instead of a fresh one on the shared server.
    pub(crate) database: Option<TestDatabase>,
    /// The program that makes schema and streams, instead of this version.
    pub(crate) migrator: Option<&'a Path>,
    /// The servers of a cluster to use instead of the system's own NATS, separated by commas.
    pub(crate) nats_url: Option<String>,
}

/// A recording for every alert: it looks at a pod and cites what it saw, so its analysis covers later alerts.
pub(crate) const PROVEN: &str = "name: proven
match: Investigate this alert
answers:
  - chunks: [{call: {tool: drill.describe_pod, arguments: {namespace: checkout, pod: checkout-7d9f8b6c5-x2x9p}}}]
  - chunks: [{text: 'Cause: a test [[*]].'}]
questions: [{match: Is it, answers: [{chunks: [{text: It is over.}]}]}]
";

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            watched: &[],
            lease: LEASE,
            attempts: 5,
            cooldown: Duration::ZERO,
            allow: &[],
            slots: 4,
            reserved: 0,
            sweep: SWEEP,
            servers: "",
            tool_wait: TIMEOUT,
            sections: "",
            transcripts: &[],
            transcript: None,
            database: None,
            migrator: None,
            nats_url: None,
        }
    }
}

/// Servers, an LLM service, and a directory for the counters of calls.
pub(crate) struct TestSystem {
    pub(crate) nats: NatsServer,
    pub(crate) database: TestDatabase,
    pub(crate) gates: Gatekeeper,
    pub(crate) llm: Tarsy,
    llm_addr: String,
    nats_url: Option<String>,
    directory: tempfile::TempDir,
}

impl TestSystem {
    /// Starts everything except workers; the gates in `watched` hold their arrivals.
    pub(crate) async fn start(watched: &[&str]) -> Self {
        Self::start_with(Setup {
            watched,
            ..Setup::default()
        })
        .await
    }

    /// Starts everything except workers, with these options.
    pub(crate) async fn start_with(mut setup: Setup<'_>) -> Self {
        let database = match setup.database.take() {
            Some(database) => database,
            None => TestDatabase::create().await,
        };
        let mut system = Self::servers(setup.watched, database).await;
        system.nats_url = setup.nats_url.take();
        std::fs::write(system.file("tarsy.yaml"), system.config(&setup)).unwrap();
        std::fs::create_dir(system.file("transcripts")).unwrap();
        if let Some(transcript) = setup.transcript {
            std::fs::write(system.file("transcripts").join("stage.yaml"), transcript).unwrap();
        }
        for (number, transcript) in setup.transcripts.iter().enumerate() {
            std::fs::write(
                system.file("transcripts").join(format!("{number}.yaml")),
                transcript,
            )
            .unwrap();
        }
        // The service starts while the streams are made.
        system.spawn_llm_service("127.0.0.1:0");
        match setup.migrator {
            Some(program) => system.migrate_with(program).await,
            None => system.migrate().await,
        }
        system.llm_addr = system.llm.ready().await;
        system
    }

    /// Starts NATS and the gates: for roles that are started elsewhere.
    pub(crate) async fn servers(watched: &[&str], database: TestDatabase) -> Self {
        Self {
            llm: Tarsy::not_started("llm-service"),
            llm_addr: String::new(),
            nats_url: None,
            nats: NatsServer::start().await,
            database,
            gates: Gatekeeper::new(watched),
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// Migrates schema and streams to this version, in this process unless the roles run from another build.
    pub(crate) async fn migrate(&self) {
        if program() != TARSY {
            return self.migrate_with(Path::new(program())).await;
        }
        let addresses = Addresses {
            nats_url: self.nats_url(),
            database_url: Some(self.database.url().to_owned()),
            llm_addr: self.llm_addr.clone(),
            llm_credentials: Default::default(),
            nats_credentials: Default::default(),
            database_secrets: Default::default(),
        };
        let config = Config::load(Some(&self.file("tarsy.yaml")), &process_env).unwrap();
        let migrate = || {
            Box::pin(tarsy::admin::migrate::run(
                &addresses,
                &config,
                MIGRATION_TIMEOUT,
            ))
        };
        let mut migrated = migrate().await;
        // The limit of a command for its connection is too short for a machine on which many tests run.
        for _ in 0..MAX_REPEATED_MIGRATIONS {
            if migrated.is_ok() {
                break;
            }
            migrated = migrate().await;
        }
        migrated.unwrap();
    }

    async fn migrate_with(&self, program: &Path) {
        let env = self.env(self.database.url());
        let mut migrate = Tarsy::spawn_program(program, "migrate", &["migrate"], &env.each());
        assert_eq!(migrate.finished().await.0, 0, "{}", migrate.log());
    }

    fn config(&self, setup: &Setup<'_>) -> String {
        let Setup {
            slots,
            reserved,
            attempts,
            sections,
            ..
        } = setup;
        let program = program();
        format!(
            "mcp_servers:\n  drill:\n    command: {program}\n    args: [evidence-server, oom-killed, --no-delays]\n    \
             env: {{TARSY_GATES: {}, TARSY_TOOL_CALLS_FILE: {}}}\n    allow: [{}]\n{}worker:\n  probe_models: false\n  \
             tool_wait: {}\n  lease: {}\n  slots: {slots}\n  \
             reserved_critical_slots: {reserved}\n  sweep_interval: {}\n  attempts: {attempts}\ndedupe:\n  cooldown: {}\n{sections}",
            self.gates.socket().display(),
            self.file("tool_calls").display(),
            setup.allow.join(", "),
            setup.servers,
            written(setup.tool_wait),
            written(setup.lease),
            written(setup.sweep),
            written(setup.cooldown),
        )
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts the LLM service on `listen`; port 0 takes a free one.
    pub(crate) async fn start_llm_service(&mut self, listen: &str) {
        self.spawn_llm_service(listen);
        self.llm_addr = self.llm.ready().await;
    }

    fn spawn_llm_service(&mut self, listen: &str) {
        let (calls, gates) = (self.file("model_calls"), self.gates.socket().to_owned());
        let (calls, transcripts) = (calls.to_str().unwrap(), self.file("transcripts"));
        let transcripts = ["--transcripts", transcripts.to_str().unwrap()];
        let args = [
            "llm-service",
            "--pace",
            "0ms",
            "--listen",
            listen,
            "--calls-file",
            calls,
        ];
        let args = [&args[..], &transcripts[..]].concat();
        self.llm = Tarsy::spawn(
            "llm-service",
            &args,
            &[("TARSY_GATES", gates.to_str().unwrap())],
        );
    }

    /// Starts the LLM service in place of the present one, with these options and variables.
    pub(crate) async fn replace_llm_service(&mut self, options: &[&str], env: &[(&str, &str)]) {
        let args = [&["llm-service", "--listen", "127.0.0.1:0"], options].concat();
        self.llm = Tarsy::spawn("llm-service", &args, env);
        self.llm_addr = self.llm.ready().await;
    }

    pub(crate) fn llm_addr(&self) -> &str {
        &self.llm_addr
    }

    /// Starts a worker on the system's own database.
    pub(crate) async fn worker(&self, name: &str) -> (Tarsy, String) {
        self.worker_on(name, self.database.url()).await
    }

    /// Starts a worker with the database at `url`; returns it with the address of its metrics.
    pub(crate) async fn worker_on(&self, name: &str, url: &str) -> (Tarsy, String) {
        let mut worker = Tarsy::spawn(name, &["worker", "--name", name], &self.env(url).each());
        let address = worker.ready().await;
        (worker, address)
    }

    /// Starts any command.
    pub(crate) fn tarsy(&self, name: &str, args: &[&str]) -> Tarsy {
        Tarsy::spawn(name, args, &self.env(self.database.url()).each())
    }

    pub(crate) fn env(&self, database_url: &str) -> Env {
        Env([
            ("NATS_URL", self.nats_url()),
            ("DATABASE_URL", database_url.to_owned()),
            ("TARSY_LLM_ADDR", self.llm_addr.clone()),
            (
                "TARSY_CONFIG",
                self.file("tarsy.yaml").display().to_string(),
            ),
        ])
    }

    /// A separate connection of the test.
    pub(crate) async fn connect(&self) -> Nats {
        connect(&self.nats_url()).await
    }

    /// Changes over to other servers, for commands and checks from now on.
    pub(crate) fn use_broker(&mut self, url: String) {
        self.nats_url = Some(url);
    }

    /// The server, or the servers of the cluster.
    pub(crate) fn nats_url(&self) -> String {
        self.nats_url.clone().unwrap_or_else(|| self.nats.url())
    }

    /// Publishes the drill's alert; returns the id of its session.
    pub(crate) async fn publish(&self) -> SessionId {
        publish_on(&self.nats_url()).await
    }

    /// Follows a session on the stream alone, from the first event on.
    pub(crate) async fn follow(&self, session: SessionId) -> Timeline {
        follow_on(&self.nats_url(), session).await
    }

    /// The number of requests for each model call, by its index.
    pub(crate) fn model_calls(&self) -> BTreeMap<String, u32> {
        self.counted("model_calls", |line| line["index"].to_string())
    }

    /// The number of times that each tool call was sent.
    pub(crate) fn tool_calls(&self) -> BTreeMap<String, u32> {
        self.counted("tool_calls", |line| {
            format!("{} {}", line["tool"].as_str().unwrap(), line["arguments"])
        })
    }

    /// The number of requests for each model call of an execution, by its index.
    pub(crate) fn model_calls_of(&self, execution: ExecutionId) -> Vec<u32> {
        let id = execution.to_string();
        let counts = self.counted("model_calls", |line| {
            format!(
                "{} {}",
                line["execution_id"].as_str().unwrap(),
                line["index"]
            )
        });
        counts
            .into_iter()
            .filter(|(key, _)| key.starts_with(&id))
            .map(|(_, count)| count)
            .collect()
    }

    fn counted(&self, file: &str, key: impl Fn(&Value) -> String) -> BTreeMap<String, u32> {
        let mut counts = BTreeMap::new();
        for line in std::fs::read_to_string(self.file(file))
            .unwrap_or_default()
            .lines()
        {
            *counts
                .entry(key(&serde_json::from_str(line).unwrap()))
                .or_default() += 1;
        }
        counts
    }

    /// Asserts the invariants of every ended session: the stream equals the table,
    /// the table has no gap and no row of an older epoch after a newer one, the journal has no gap.
    pub(crate) async fn assert_invariants(&self, session: SessionId, seen: &[TimelineEvent]) {
        let store = Arc::new(self.database.store());
        let stored = tarsy_engine::ports::Outbox::events(&*store, session, 0, 1000)
            .await
            .unwrap();
        assert_eq!(seen, stored, "the stream equals the table");
        let numbers: Vec<u32> = seen.iter().map(|event| event.session_seq).collect();
        assert_eq!(
            numbers,
            (1..=u32::try_from(seen.len()).unwrap()).collect::<Vec<_>>()
        );
        assert!(seen.last().unwrap().event_type.is_end());
        let row = format!("session_id = '{}'", session.0);
        // The store records the settlement after the last event is on the stream.
        let settled = format!(
            "SELECT NOT EXISTS (SELECT FROM alert_sessions WHERE {row} AND settled_at IS NULL)"
        );
        eventually_within(SWEEP, "the session is settled", async || {
            self.database.holds(&settled)
        })
        .await;
        self.assert_row_invariants(&row);
    }
}

/// Publishes the drill's alert to this broker; returns the id of its session.
pub(crate) async fn publish_on(url: &str) -> SessionId {
    let session = SessionId(Uuid::now_v7());
    publish_as(url, session).await;
    session
}

/// Publishes the drill's alert to this broker, for a session with this id.
pub(crate) async fn publish_as(url: &str, session: SessionId) {
    let body = tarsy_drill::builtin("oom-killed")
        .unwrap()
        .alert
        .as_bytes()
        .to_vec();
    let headers = serde_json::json!({SESSION_ID: session.to_string()});
    let alert = NewAlert {
        priority: Priority::Critical,
        suffix: None,
        body,
        headers,
    };
    connect(url).await.publish_alert(alert).await.unwrap();
}

/// A duration for the configuration. Whole seconds are written as seconds, which every version reads.
fn written(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 {
        format!("{}s", duration.as_secs())
    } else {
        format!("{}ms", duration.as_millis())
    }
}

async fn connect(url: &str) -> Nats {
    let retry = ConnectRetry::UpTo(Duration::from_secs(5));
    let options = Options {
        url: url.to_owned(),
        role: "test".to_owned(),
        credentials: Default::default(),
        retry,
    };
    Nats::connect(&options).await.unwrap()
}

/// Follows a session on this broker's stream alone, from the first event on.
pub(crate) async fn follow_on(url: &str, session: SessionId) -> Timeline {
    Timeline {
        follower: Follower::start::<Store>(&connect(url).await, session, 0, None),
        seen: Vec::new(),
    }
}

/// The environment of a process of tarsy.
#[derive(Clone)]
pub(crate) struct Env([(&'static str, String); 4]);

impl Env {
    pub(crate) fn each(&self) -> [(&str, &str); 4] {
        self.0
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()))
    }
}

/// A follower with the events that it has seen.
pub(crate) struct Timeline {
    follower: Follower,
    pub(crate) seen: Vec<TimelineEvent>,
}

impl Timeline {
    /// The next event or delta; panics after [`TIMEOUT`].
    pub(crate) async fn next(&mut self) -> Option<TimelineUpdate> {
        let next = tokio::time::timeout(TIMEOUT, self.follower.next()).await;
        let item = next.unwrap_or_else(|_| {
            panic!("no event or delta in time after {:#?}", self.seen.last())
        })?;
        if let TimelineUpdate::Event(event) = &item {
            self.seen.push(event.clone());
        }
        Some(item)
    }

    /// Follows to the first event of this type.
    pub(crate) async fn until(&mut self, event_type: EventType) -> TimelineEvent {
        loop {
            match self.next().await {
                Some(TimelineUpdate::Event(event)) if event.event_type == event_type => {
                    return event;
                }
                Some(TimelineUpdate::Event(_) | TimelineUpdate::Delta(_)) => {}
                None => panic!("no {event_type} before the end"),
            }
        }
    }

    /// Follows to the end.
    pub(crate) async fn finish(&mut self) -> TimelineEvent {
        while self.next().await.is_some() {}
        self.seen
            .last()
            .cloned()
            .expect("the timeline has an event")
    }
}
