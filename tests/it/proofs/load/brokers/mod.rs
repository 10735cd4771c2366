//! Three brokers that fail while investigations run: leaders killed, servers cut off, stopped and replaced. The suite
//! runs few investigations, the proof many; `TARSY_LOAD_BROKERS` sets their number.

mod leader;
mod partition;
mod settings;
mod upgrade;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::stream::{Config, StorageType};
use chrono::{DateTime, Utc};
use tarsy_bus::{ConnectRetry, Error, Nats, NewAlert, Options, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{MARK, assert_all_completed, first};
use crate::support::figures::{Figures, between, by_depth, is_proof};
use crate::support::nats::NatsCluster;
use crate::support::nats::cluster::SERVERS;
use crate::support::process::Tarsy;
use crate::support::stream::Timelines;
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually_within;

const STREAMS: [&str; 4] = [
    "TARSY_ALERTS",
    "TARSY_TIMELINE",
    "TARSY_DEAD_LETTERS",
    "TARSY_CONTROL",
];
/// A call that changes something: it must be sent once.
const CHANGING: &str = "restart_deployment";
/// An acknowledgement that was lost with a server comes again after this time.
const LEASE: Duration = Duration::from_secs(5);
const LEASE_IN_PROOF: Duration = Duration::from_secs(10);
const THREE_COPIES: &str = "streams: {replicas: 3}\n";
/// A limit against a system that hangs: under repeated elections it makes progress in between.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The number of investigations of a test.
fn investigations(suite: usize, proof: usize) -> usize {
    by_depth("TARSY_LOAD_BROKERS", suite, proof)
}

/// A recording with a read-only call, a call that changes something, and the end. Each answer takes `call`.
fn recording(call: Duration) -> String {
    let wait = call.as_millis();
    let pod = "{tool: drill.describe_pod, arguments: {namespace: checkout, pod: checkout-7d9f8b6c5-x2x9p}}";
    let restart = format!(
        "{{tool: drill.{CHANGING}, arguments: {{namespace: checkout, deployment: checkout}}}}"
    );
    format!(
        "name: brokers\nmatch: {MARK}\nprovider_state: true\nanswers:\n  \
         - chunks: [{{wait: {wait}ms}}, {{call: {pod}}}]\n  - chunks: [{{wait: {wait}ms}}, {{call: {restart}}}]\n  \
         - chunks: [{{wait: {wait}ms}}, {{text: \"Cause: a drill [[*]]. The end.\"}}]\n"
    )
}

/// Returns when the servers give each copy of a stream a server. On a busy machine they have a leader before it knows
/// all of them.
async fn place_copies(cluster: &NatsCluster) {
    let (jetstream, name) = (cluster.jetstream(None).await, "PROBE".to_owned());
    let storage = StorageType::Memory;
    let probe = Config {
        name: name.clone(),
        num_replicas: SERVERS,
        storage,
        ..Config::default()
    };
    let is_placed = async || jetstream.create_stream(probe.clone()).await.is_ok();
    eventually_within(TIMEOUT, "the servers place copies", is_placed).await;
    // A probe that stays disturbs no test.
    jetstream.delete_stream(name).await.ok();
}

/// A system whose broker is the cluster, or a single server.
async fn system_on(cluster: Option<&NatsCluster>, sections: &str, call: Duration) -> TestSystem {
    if let Some(cluster) = cluster {
        place_copies(cluster).await;
    }
    TestSystem::start_with(Setup {
        lease: if is_proof() { LEASE_IN_PROOF } else { LEASE },
        slots: 8,
        allow: &[CHANGING],
        transcript: Some(recording(call)),
        sections,
        nats_url: cluster.map(NatsCluster::urls),
        ..Setup::default()
    })
    .await
}

/// A worker that knows one server, and finds the others through it.
async fn worker_on(
    system: &TestSystem,
    cluster: &mut NatsCluster,
    server: usize,
) -> (Tarsy, String) {
    let (name, url) = (format!("w{server}"), cluster.server(server).url());
    let env = system.env(system.database.url());
    let mut env = env.each().to_vec();
    env.push(("NATS_URL", &url));
    let mut worker = Tarsy::spawn(
        &name,
        &["worker", "--name", &name, "--listen", "127.0.0.1:0"],
        &env,
    );
    let address = worker.ready().await;
    (worker, address)
}

/// An alert that was published.
struct Sent {
    session: SessionId,
    /// The duration of the publish, with its retries.
    took: Duration,
    /// The time when the stream had acknowledged it.
    at: DateTime<Utc>,
}

/// Publishes alerts, one every `pace`, as a program does that repeats a publish with the same id until it is
/// acknowledged.
async fn publish_paced(system: &TestSystem, count: usize, pace: Duration) -> Vec<Sent> {
    let retry = ConnectRetry::UpTo(Duration::from_secs(30));
    let options = Options {
        url: system.nats_url(),
        role: "producer".to_owned(),
        credentials: Default::default(),
        retry,
    };
    let nats = Arc::new(Nats::connect(&options).await.unwrap());
    let (mut publishing, mut ticks) = (JoinSet::new(), tokio::time::interval(pace));
    for _ in 0..count {
        ticks.tick().await; // the pace of the producer
        publishing.spawn(publish(Arc::clone(&nats)));
    }
    publishing.join_all().await
}

async fn publish(nats: Arc<Nats>) -> Sent {
    let (session, begun) = (SessionId(Uuid::now_v7()), Instant::now());
    let headers = serde_json::json!({SESSION_ID: session.to_string()});
    let body = format!("{MARK}: something is wrong, {session}").into_bytes();
    loop {
        let alert = NewAlert {
            priority: Priority::Normal,
            suffix: None,
            body: body.clone(),
            headers: headers.clone(),
        };
        match nats.publish_alert(alert).await {
            Ok(_) => {
                return Sent {
                    session,
                    took: begun.elapsed(),
                    at: Utc::now(),
                };
            }
            Err(Error::Unavailable(_)) => {}
            Err(error) => panic!("{error}"),
        }
        assert!(begun.elapsed() < TIMEOUT, "{session} is not acknowledged");
    }
}

/// The measurements of a producer and of the workers.
struct Measured {
    publishes: Figures,
    /// From the acknowledgement of an alert to the first event of its session.
    claims: Figures,
    took: Duration,
}

impl Measured {
    fn new(sent: &[Sent], timelines: &Timelines, took: Duration) -> Self {
        let start = |sent: &Sent| {
            between(
                sent.at,
                first(&timelines[&sent.session], EventType::SessionStarted)
                    .unwrap()
                    .created_at,
            )
        };
        Self {
            publishes: sent.iter().map(|sent| sent.took).collect(),
            claims: sent.iter().map(start).collect(),
            took,
        }
    }

    fn print(&self, brokers: &str) {
        let rate = self.claims.count() as f64 / self.took.as_secs_f64();
        println!(
            "{brokers}: {} investigations in {:.1?} ({rate:.1}/s)\n  publish: {}\n  claim:   {}",
            self.claims.count(),
            self.took,
            self.publishes,
            self.claims
        );
    }
}

/// The output of `tarsy doctor`.
async fn doctor(system: &TestSystem) -> String {
    system.tarsy("doctor", &["doctor"]).finished().await.1
}

/// Returns when this many sessions have ended.
async fn ended(system: &TestSystem, count: usize) {
    let sql =
        "SELECT count(*) FROM alert_sessions WHERE status <> 'running' AND settled_at IS NOT NULL";
    let count = i64::try_from(count).unwrap();
    let all = async || system.database.number(sql) >= count;
    eventually_within(TIMEOUT, &format!("{count} sessions have ended"), all).await;
}

/// Asserts that all have completed at their first attempt, that table and stream have the same events without a gap,
/// and that each call that changes something was sent once.
async fn assert_whole(system: &TestSystem, count: usize) -> Timelines {
    ended(system, count).await;
    system.queue_is_empty().await;
    let timelines = system.assert_all_invariants().await;
    assert_eq!(timelines.len(), count);
    assert_all_completed(system, count);
    let calls = system.tool_calls();
    let changing: u32 = calls
        .iter()
        .filter(|(call, _)| call.contains(CHANGING))
        .map(|(_, sent)| *sent)
        .sum();
    assert_eq!(
        usize::try_from(changing).unwrap(),
        count,
        "calls that change something: {calls:?}"
    );
    timelines
}
