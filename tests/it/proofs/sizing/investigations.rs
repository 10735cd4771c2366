//! The cost of one investigation: rows, bytes, messages, statements, and time of the processors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use futures_util::StreamExt as _;
use uuid::Uuid;

use super::Extent;
use super::meter::{Counted, Traffic, memory_mib, processor_time};
use crate::support::http;
use crate::support::postgres::TestDatabase;
use crate::support::postgres_server::PostgresServer;
use crate::support::process::{Tarsy, peak_memory};
use crate::support::system::{Setup, TestSystem};
use crate::support::tool_server::{Form, ToolServer};
use crate::support::wait::eventually_within;

const SLOTS: u32 = 20;
const WITHIN: Duration = Duration::from_secs(600);
const LONG: &str = "LongResults";
const LONG_BYTES: usize = 20 * 1024;
/// Operations of a worker that no investigation causes.
const BACKGROUND: [&str; 6] = ["probe", "renew", "renew_one", "sweep", "event_key", "prune"];
const STREAMS: [&str; 3] = ["TARSY_ALERTS", "TARSY_TIMELINE", "TARSY_CONTROL"];

/// A kind of investigation.
pub(super) struct Kind {
    name: String,
    iterations: usize,
    alert: Vec<u8>,
    transcript: Option<String>,
}

impl Kind {
    /// The built-in drill: four iterations, five calls.
    pub(super) fn typical() -> Self {
        let alert = tarsy_drill::builtin("oom-killed")
            .unwrap()
            .alert
            .as_bytes()
            .to_vec();
        Self {
            name: "drill oom-killed: 4 iterations, 5 calls".to_owned(),
            iterations: 4,
            alert,
            transcript: None,
        }
    }

    /// Many iterations, each with a long result.
    pub(super) fn long(iterations: usize) -> Self {
        let mut text = format!("name: long\nmatch: {LONG}\nprovider_state: true\nanswers:\n");
        for step in 1..iterations {
            let call =
                format!("{{tool: web.log, arguments: {{bytes: {LONG_BYTES}, from: {step}}}}}");
            text.push_str(&format!(
                "  - chunks: [{{thinking: The log of step {step} is next.}}, {{call: {call}}}]\n"
            ));
        }
        text.push_str("  - chunks: [{text: \"Cause: a drill [[*]]. The end.\"}]\n");
        Self {
            name: format!(
                "{iterations} iterations, each with a result of {} KiB",
                LONG_BYTES / 1024
            ),
            iterations,
            alert: format!("{LONG}: the service answers with errors").into_bytes(),
            transcript: Some(text),
        }
    }
}

/// A system with one worker, whose connections are counted.
struct Bench {
    system: TestSystem,
    worker: Tarsy,
    metrics: String,
    links: [(&'static str, Counted); 3],
    live: Arc<[AtomicU64; 2]>,
    postgres: PostgresServer,
    _tools: ToolServer,
}

impl Bench {
    async fn start(kind: &Kind) -> Self {
        let (postgres, tools) = (
            PostgresServer::start().await,
            ToolServer::start(Form::Json).await,
        );
        let servers = format!("  web: {{url: '{}'}}\n", tools.url());
        let setup = Setup {
            slots: SLOTS,
            lease: Duration::from_secs(30),
            servers: &servers,
            sections: "defaults: {max_iterations: 40}\n",
            transcript: kind.transcript.clone(),
            database: Some(TestDatabase::empty_on(postgres.url())),
            ..Setup::default()
        };
        let system = TestSystem::start_with(setup).await;
        let port = |address: &str| -> u16 {
            let rest = address.rsplit(':').next().unwrap();
            rest.chars()
                .take_while(char::is_ascii_digit)
                .collect::<String>()
                .parse()
                .unwrap()
        };
        let (nats, llm) = (system.nats.url(), system.llm_addr().to_owned());
        let database = system.database.url().to_owned();
        let links = [
            ("LLM service", Counted::to(port(&llm)).await),
            ("database", Counted::to(port(&database)).await),
            ("broker", Counted::to(port(&nats)).await),
        ];
        let through = |address: &str, link: usize| {
            address.replace(
                &format!(":{}", port(address)),
                &format!(":{}", links[link].1.port),
            )
        };
        let (llm, database, nats) = (through(&llm, 0), through(&database, 1), through(&nats, 2));
        let config = system.file("tarsy.yaml").display().to_string();
        let env = [
            ("TARSY_LLM_ADDR", &*llm),
            ("DATABASE_URL", &*database),
            ("NATS_URL", &*nats),
            ("TARSY_CONFIG", &*config),
        ];
        let mut worker = Tarsy::spawn("w1", &["worker", "--name", "w1"], &env);
        let metrics = worker.ready().await;
        worker.logged("claiming started").await;
        let live = count_deltas(&system).await;
        Self {
            system,
            worker,
            metrics,
            links,
            live,
            postgres,
            _tools: tools,
        }
    }

    async fn publish(&self, kind: &Kind, count: usize) {
        let jetstream = self.system.jetstream().await;
        for number in 0..count {
            let mut headers = HeaderMap::new();
            headers.insert("Tarsy-Session-Id", Uuid::now_v7().to_string());
            headers.insert(
                "Tarsy-Fingerprint",
                format!("sizing-{number}-{}", Uuid::now_v7()),
            );
            let sent = jetstream
                .publish_with_headers("tarsy.alerts.normal", headers, kind.alert.clone().into())
                .await;
            sent.unwrap().await.unwrap();
        }
    }

    async fn ended(&self, count: usize) {
        let sql = format!(
            "SELECT count(*) = {count} FROM alert_sessions s JOIN alerts a ON a.alert_id = s.session_id \
             WHERE s.status = 'completed' AND s.settled_at IS NOT NULL AND a.settled_at IS NOT NULL"
        );
        eventually_within(WITHIN, "every session has ended", async || {
            self.system.database.holds(&sql)
        })
        .await;
        self.system.queue_is_empty().await;
    }

    async fn snapshot(&self) -> Snapshot {
        let database = &self.system.database;
        let names = database
            .text("SELECT string_agg(tablename, ' ' ORDER BY tablename) FROM pg_tables WHERE schemaname = 'public'");
        let table = |name: &str| {
            let rows = database.number(&format!("SELECT count(*) FROM {name}")) as f64;
            let bytes = database.number(&format!("SELECT pg_total_relation_size('{name}')")) as f64;
            (name.to_owned(), [rows, bytes])
        };
        let tables = names.split(' ').map(table).collect();
        let mut streams = BTreeMap::new();
        let jetstream = self.system.jetstream().await;
        for name in STREAMS {
            let state = jetstream
                .get_stream(name)
                .await
                .unwrap()
                .cached_info()
                .state
                .clone();
            streams.insert(
                name.to_owned(),
                [state.last_sequence as f64, state.bytes as f64],
            );
        }
        let live = [0, 1].map(|at| self.live[at].load(Ordering::Relaxed) as f64);
        streams.insert("tarsy.live.* (not stored)".to_owned(), live);
        let processes = [
            ("worker", self.worker.pid()),
            ("LLM service", self.system.llm.pid()),
            ("Postgres", self.postgres.pid()),
            ("NATS", self.system.nats.pid()),
        ];
        Snapshot {
            tables,
            streams,
            traffic: self.links.each_ref().map(|(_, link)| link.traffic()),
            processors: processes.map(|(name, pid)| (name, processor_time(pid))),
            operations: self.operations().await,
        }
    }

    /// Number and milliseconds of each operation at the database.
    async fn operations(&self) -> BTreeMap<String, [f64; 2]> {
        let text = http::get(&self.metrics, "/metrics").await.body;
        let mut operations = BTreeMap::<String, [f64; 2]>::new();
        for line in text.lines() {
            let Some(rest) = line.strip_prefix("tarsy_db_query_duration_seconds_") else {
                continue;
            };
            let Some((part, rest)) = rest.split_once("{operation=\"") else {
                continue;
            };
            let Some((name, value)) = rest.split_once("\"} ") else {
                continue;
            };
            let value: f64 = value.parse().unwrap();
            match part {
                "count" => operations.entry(name.to_owned()).or_default()[0] = value,
                "sum" => operations.entry(name.to_owned()).or_default()[1] = value * 1e3,
                _ => {}
            }
        }
        operations
    }
}

/// Counts messages and bytes of the deltas.
async fn count_deltas(system: &TestSystem) -> Arc<[AtomicU64; 2]> {
    let client = async_nats::connect(system.nats.url()).await.unwrap();
    let mut deltas = client.subscribe("tarsy.live.>").await.unwrap();
    client.flush().await.unwrap();
    let counted = Arc::<[AtomicU64; 2]>::default();
    let counter = Arc::clone(&counted);
    tokio::spawn(async move {
        while let Some(delta) = deltas.next().await {
            counter[0].fetch_add(1, Ordering::Relaxed);
            counter[1].fetch_add(delta.length as u64, Ordering::Relaxed);
        }
        drop(client);
    });
    counted
}

struct Snapshot {
    /// Rows and bytes.
    tables: BTreeMap<String, [f64; 2]>,
    /// Messages and bytes.
    streams: BTreeMap<String, [f64; 2]>,
    traffic: [Traffic; 3],
    processors: [(&'static str, Duration); 4],
    operations: BTreeMap<String, [f64; 2]>,
}

/// Prints what each investigation of this kind costs.
pub(super) async fn measure(kind: Kind, extent: &Extent) {
    let bench = Bench::start(&kind).await;
    let idle = bench.operations().await;
    tokio::time::sleep(extent.idle).await; // the time in which an idle worker is watched
    let later = bench.operations().await;
    let background: f64 = later
        .iter()
        .map(|(name, [count, _])| count - idle.get(name).map_or(0.0, |old| old[0]))
        .sum();

    bench.publish(&kind, 1).await;
    bench.ended(1).await;
    let (count, before, began) = (
        extent.investigations,
        bench.snapshot().await,
        Instant::now(),
    );
    bench.publish(&kind, count).await;
    bench.ended(1 + count).await;
    let (took, after) = (began.elapsed(), bench.snapshot().await);

    println!(
        "\n{}; {count} investigations in {took:.1?}, {SLOTS} slots",
        kind.name
    );
    println!(
        "  an idle worker: {:.2} statements a second",
        background / extent.idle.as_secs_f64()
    );
    println!(
        "  the worker: {:.1} MiB, at most {} MiB",
        memory_mib(bench.worker.pid()),
        peak_memory(&bench.worker)
    );
    print_differences("rows and bytes", &before.tables, &after.tables, count);
    print_differences("messages and bytes", &before.streams, &after.streams, count);
    for (index, (name, _)) in bench.links.iter().enumerate() {
        let (old, new) = (before.traffic[index], after.traffic[index]);
        let each = |old: u64, new: u64| (new - old) as f64 / count as f64 / 1024.0;
        let (sent, received) = (each(old.sent, new.sent), each(old.received, new.received));
        println!(
            "  network, worker and {name:<14} {sent:>9.1} KiB sent {received:>9.1} KiB received"
        );
        assert!(
            sent > 0.0 && received > 0.0,
            "the link to {name} was counted"
        );
    }
    let iterations = (count * kind.iterations) as f64;
    for ((name, old), (_, new)) in before.processors.iter().zip(&after.processors) {
        let each = (*new - *old).as_secs_f64() * 1e3 / iterations;
        println!("  processor time an iteration, {name:<14} {each:>9.2} ms");
    }
    print_operations(&before, &after, count);
}

/// Prints both numbers of each name, divided by `count`.
fn print_differences(
    what: &str,
    before: &BTreeMap<String, [f64; 2]>,
    after: &BTreeMap<String, [f64; 2]>,
    count: usize,
) {
    let mut sum = [0.0; 2];
    println!("  {what}, for one investigation");
    for (name, new) in after {
        let old = before.get(name).copied().unwrap_or_default();
        let each = [0, 1].map(|at| (new[at] - old[at]) / count as f64);
        sum = [sum[0] + each[0], sum[1] + each[1]];
        if each != [0.0; 2] {
            println!(
                "    {name:<30} {:>9.1} {:>9.1} KiB",
                each[0],
                each[1] / 1024.0
            );
        }
    }
    println!(
        "    {:<30} {:>9.1} {:>9.1} KiB",
        "together",
        sum[0],
        sum[1] / 1024.0
    );
    assert!(sum[0] > 1.0 && sum[1] > 0.0, "{what}: {sum:?}");
}

fn print_operations(before: &Snapshot, after: &Snapshot, count: usize) {
    let mut sum = [0.0; 2];
    println!("  operations at the database and their milliseconds, for one investigation");
    for (name, new) in after
        .operations
        .iter()
        .filter(|(name, _)| !BACKGROUND.contains(&name.as_str()))
    {
        let old = before.operations.get(name).copied().unwrap_or_default();
        let each = [0, 1].map(|at| (new[at] - old[at]) / count as f64);
        sum = [sum[0] + each[0], sum[1] + each[1]];
        if each[0] > 0.0 {
            println!("    {name:<30} {:>9.2} {:>9.2} ms", each[0], each[1]);
        }
    }
    println!("    {:<30} {:>9.2} {:>9.2} ms", "together", sum[0], sum[1]);
    assert!(
        sum[0] >= 10.0,
        "an investigation has at least ten operations: {}",
        sum[0]
    );
}
