//! A Postgres standby that is promoted while investigations run: with and without lost commits, and with an old primary
//! that comes back. Backups that are restored.

mod lost;
mod synchronous;
mod old_primary;
mod backup;

use std::time::{Duration, Instant};

use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::TimelineEvent;
use uuid::Uuid;

use crate::support::gates::Arrived;
use crate::support::postgres::TestDatabase;
use crate::support::postgres_server::{PostgresServer, Standby};
use crate::support::process::Tarsy;
use crate::support::system::{LEASE, Setup, TestSystem};
use crate::support::wait::eventually;

const TOOL: &str = "restart_deployment";
const ASKED: &str = "answer-0-start";
const CALLED: &str = "tool-restart_deployment-start";

/// A primary, its standby, and a system whose workers know both.
struct Pair {
    system: TestSystem,
    primary: PostgresServer,
    standby: Standby,
    /// The address of the workers; the first primary is the first server.
    address: String,
}

/// The recording of one session: it restarts a deployment of its own, which must happen once, and concludes.
fn transcript(number: usize) -> String {
    format!(
        "name: failover-{number}\nmatch: FailoverDrill{number}!\nprovider_state: true\nanswers:\n  \
         - chunks: [{{call: {{tool: drill.{TOOL}, arguments: {{namespace: checkout, deployment: checkout, run: {number}}}}}}}]\n  \
         - chunks: [{{text: \"Cause: a drill [[*]]. The end.\"}}]\n"
    )
}

impl Pair {
    /// Starts everything except workers, for this many sessions; `None` where no standby can be made.
    async fn start(sessions: usize, watched: &[&str]) -> Option<Self> {
        Self::start_with_lease(sessions, watched, LEASE).await
    }

    async fn start_with_lease(sessions: usize, watched: &[&str], lease: Duration) -> Option<Self> {
        let primary = PostgresServer::start().await;
        let standby = Standby::of(&primary).await?;
        // The test looks at the server that takes writes. The workers try the first primary first.
        let database = TestDatabase::empty_on(format!(
            "{}?target_session_attrs=read-write",
            standby.server.url_with(&primary)
        ));
        // libpq does not try the next server when one lacks the database.
        standby.has_everything(&primary).await;
        let address = same_database(&primary.url_with(&standby.server), &database);
        let recordings = transcripts(sessions);
        let recordings: Vec<&str> = recordings.iter().map(String::as_str).collect();
        let setup = Setup {
            watched,
            lease,
            ..setup(&recordings, database)
        };
        let system = TestSystem::start_with(setup).await;
        standby.has_everything(&primary).await;
        Some(Self {
            system,
            primary,
            standby,
            address,
        })
    }

    /// The database on one of the servers.
    fn on(&self, server: &PostgresServer) -> TestDatabase {
        TestDatabase::kept(same_database(&server.url(), &self.system.database))
    }

    /// Starts a worker that knows both servers.
    async fn worker(&self, name: &str) -> Tarsy {
        self.system.worker_on(name, &self.address).await.0
    }

    async fn publish(&self, number: usize) -> SessionId {
        publish(&self.system, number).await
    }

    async fn publish_many(&self, numbers: std::ops::Range<usize>) -> Vec<SessionId> {
        let mut sessions = Vec::new();
        for number in numbers {
            sessions.push(self.publish(number).await);
        }
        sessions
    }

    /// Sends `kill -9` to the primary and promotes the standby. Returns when that began.
    async fn fail_over(&mut self) -> Instant {
        let began = Instant::now();
        self.primary.kill().await;
        self.standby.promote();
        println!(
            "the standby takes writes {} ms after the kill -9 of the primary",
            began.elapsed().as_millis()
        );
        began
    }

    /// Waits until no alert is left.
    async fn all_settled(&self) {
        let left = "SELECT count(*) FROM alerts WHERE settled_at IS NULL";
        let running = "SELECT count(*) FROM alert_sessions WHERE settled_at IS NULL";
        eventually("every alert is settled", async || {
            self.system.database.number(left) == 0 && self.system.database.number(running) == 0
        })
        .await;
        self.system.queue_is_empty().await;
    }

    /// Asserts that every call was sent once.
    fn assert_calls_sent_once(&self, sessions: usize) {
        let calls = self.system.tool_calls();
        assert_eq!(calls.len(), sessions, "{calls:#?}");
        assert!(calls.values().all(|sent| *sent == 1), "{calls:#?}");
    }
}

/// The recordings of this many sessions.
fn transcripts(sessions: usize) -> Vec<String> {
    (0..sessions).map(transcript).collect()
}

fn setup<'a>(recordings: &'a [&'a str], database: TestDatabase) -> Setup<'a> {
    let sweep = Duration::from_secs(1);
    Setup {
        allow: &[TOOL],
        transcripts: recordings,
        sweep,
        slots: 8,
        database: Some(database),
        ..Setup::default()
    }
}

/// Publishes the alert of one recording.
async fn publish(system: &TestSystem, number: usize) -> SessionId {
    let session = SessionId(Uuid::now_v7());
    let headers = serde_json::json!({SESSION_ID: session.to_string()});
    let body = format!("FailoverDrill{number}! {session}").into();
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: None,
        body,
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    session
}

/// Waits for this many calls at the watched gates.
async fn arrivals(system: &mut TestSystem, count: usize) -> Vec<Arrived> {
    let mut arrived = Vec::new();
    while arrived.len() < count {
        arrived.push(system.gates.next().await);
    }
    arrived
}

/// The reports of lost commits of a session.
fn losses(events: &[TimelineEvent]) -> Vec<&TimelineEvent> {
    events
        .iter()
        .filter(|event| event.metadata["kind"] == "lost_commits")
        .collect()
}

/// The address of this database on the server at `url`.
fn same_database(url: &str, database: &TestDatabase) -> String {
    let name = database
        .url()
        .rsplit_once('/')
        .unwrap()
        .1
        .split('?')
        .next()
        .unwrap();
    format!("{}/{name}", url.rsplit_once('/').unwrap().0)
}
