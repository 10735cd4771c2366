//! The servers of a measurement, its workers, and the readings of their processor time.

use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use futures_util::{StreamExt as _, stream};
use uuid::Uuid;

use crate::meter::own_processor_time;
use crate::support::postgres::TestDatabase;
use crate::support::postgres_server::PostgresServer;
use crate::support::process::Tarsy;
use crate::support::system::{Setup, TestSystem};

/// This word in an alert selects the recording.
const MARK: &str = "MeasuredDrill";
const PUBLISHED_AT_ONCE: usize = 256;
/// The time limit for the settlement of all sessions, beside the time of their model calls.
const WITHIN: Duration = Duration::from_secs(600);
/// The time between two polls of the database.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(20);
const LEASE: Duration = Duration::from_secs(30);
/// The longest that the configuration takes: a model call that waits is no failure.
const ITERATION_TIMEOUT: &str = "defaults:\n  iteration_timeout: 3600s\n";

/// NATS, Postgres and an LLM service, with as many workers as are measured.
pub(crate) struct Rig {
    pub(crate) system: TestSystem,
    pub(crate) postgres: PostgresServer,
    /// The longest time that a settlement may take.
    within: Duration,
}

/// The recording for the investigations of a measurement.
pub(crate) struct Recording {
    /// Model calls; all but the last one call a read-only tool.
    pub(crate) iterations: usize,
    /// The time of the last model call; the others are answered at once.
    pub(crate) wait: Duration,
}

/// Three iterations with two tool calls, without a delay of the model.
pub(crate) const AT_ONCE: Recording = Recording {
    iterations: 3,
    wait: Duration::ZERO,
};

impl Recording {
    fn transcript(&self) -> String {
        let wait = self.wait.as_millis();
        let mut text = format!("name: measured\nmatch: {MARK}\nprovider_state: true\nanswers:\n");
        for step in 1..self.iterations {
            let pod = "namespace: checkout, pod: checkout-7d9f8b6c5-x2x9p";
            text.push_str(&format!(
                "  - chunks: [{{call: {{tool: drill.describe_pod, arguments: {{{pod}, step: {step}}}}}}}]\n"
            ));
        }
        text.push_str(&format!(
            "  - chunks: [{{wait: {wait}ms}}, {{text: \"Cause: a drill. The end.\"}}]\n"
        ));
        text
    }
}

impl Rig {
    /// Starts everything except workers. Postgres has these settings beside `fsync=off`.
    pub(crate) async fn start(recording: &Recording, settings: &[&str]) -> Self {
        let settings = [&["fsync=off", "max_connections=200"], settings].concat();
        let postgres = PostgresServer::start_with(&settings).await;
        let database = Some(TestDatabase::empty_on(postgres.url()));
        let transcript = Some(recording.transcript());
        let sections = ITERATION_TIMEOUT;
        let setup = Setup {
            lease: LEASE,
            sections,
            transcript,
            database,
            ..Setup::default()
        };
        let mut system = TestSystem::start_with(setup).await;
        // Every session may have a model call at the same time.
        let service = system.file("llm-service.yaml");
        std::fs::write(&service, "llm_service: {concurrency: {default: 65536}}\n").unwrap();
        let transcripts = system.file("transcripts");
        let options = [
            "--pace",
            "0ms",
            "--transcripts",
            transcripts.to_str().unwrap(),
        ];
        system
            .replace_llm_service(&options, &[("TARSY_CONFIG", service.to_str().unwrap())])
            .await;
        // A test's gates, and its file with a line for each call of a tool, are no part of an investigation.
        std::fs::remove_file(system.gates.socket()).unwrap();
        replace_setting(&system, "env:", "");
        Self {
            system,
            postgres,
            within: WITHIN + recording.wait,
        }
    }

    /// Starts a worker with this many slots; returns it with the time that it needed to be ready.
    pub(crate) async fn worker(&self, name: &str, slots: u32) -> (Tarsy, Duration) {
        replace_setting(&self.system, "slots:", &format!("  slots: {slots}"));
        let began = Instant::now();
        let (worker, _) = self.system.worker(name).await;
        let took = began.elapsed();
        worker.logged("claiming started").await;
        (worker, took)
    }

    /// Publishes this many different alerts, of every priority: workers hold at most 10,000 of one.
    pub(crate) async fn publish(&self, count: usize) {
        let jetstream = self.system.jetstream().await;
        let (jetstream, priorities) = (&jetstream, ["critical", "high", "normal", "low"]);
        let publishing = stream::iter(0..count).map(|number| async move {
            let mut headers = HeaderMap::new();
            headers.insert("Tarsy-Session-Id", Uuid::now_v7().to_string());
            let body = format!("{MARK}: something is wrong, {}", Uuid::now_v7());
            let subject = format!("tarsy.alerts.{}", priorities[number % priorities.len()]);
            jetstream
                .publish_with_headers(subject, headers, body.into())
                .await
                .unwrap()
                .await
                .unwrap();
        });
        publishing
            .buffer_unordered(PUBLISHED_AT_ONCE)
            .collect::<Vec<_>>()
            .await;
    }

    /// Returns when this many sessions are settled.
    pub(crate) async fn settled(&self, count: usize) {
        let settled = "SELECT count(*) FROM alert_sessions WHERE settled_at IS NOT NULL";
        self.until(count, settled, "the sessions are settled").await;
        let failed =
            "SELECT count(*) FROM alert_sessions WHERE status NOT IN ('completed', 'running')";
        assert_eq!(
            self.system.database.number(failed),
            0,
            "every session completes"
        );
    }

    /// Returns when this query returns this number. Each poll reads every session, so there are fewer of them the more
    /// sessions there are.
    pub(crate) async fn until(&self, count: usize, sql: &str, what: &str) {
        let (limit, interval) = (
            Instant::now() + self.within,
            Duration::from_micros(50 * count as u64),
        );
        while self.system.database.number(sql) < i64::try_from(count).unwrap() {
            assert!(
                Instant::now() < limit,
                "not within {:?}: {what}",
                self.within
            );
            // Only the database knows, and it is asked as seldom as the precision allows.
            tokio::time::sleep(interval.max(SHORTEST_INTERVAL)).await;
        }
    }

    pub(crate) fn sessions(&self) -> usize {
        usize::try_from(
            self.system
                .database
                .number("SELECT count(*) FROM alert_sessions"),
        )
        .unwrap()
    }

    /// Runs this many investigations and waits for their settlement.
    pub(crate) async fn investigate(&self, count: usize) {
        let before = self.sessions();
        self.publish(count).await;
        self.settled(before + count).await;
    }

    /// The processor time of each process so far.
    pub(crate) fn processors(&self, workers: &[&Tarsy]) -> Processors {
        Processors {
            postgres: crate::meter::processor_time(self.postgres.pid()),
            workers: workers
                .iter()
                .map(|worker| own_processor_time(worker.pid()))
                .sum(),
            nats: own_processor_time(self.system.nats.pid()),
            llm: own_processor_time(self.system.llm.pid()),
        }
    }
}

/// Replaces the line of a setting in the configuration of the workers.
fn replace_setting(system: &TestSystem, setting: &str, with: &str) {
    let file = system.file("tarsy.yaml");
    let config = std::fs::read_to_string(&file).unwrap();
    let lines = config.lines().map(|line| {
        if line.trim_start().starts_with(setting) {
            with
        } else {
            line
        }
    });
    std::fs::write(file, lines.collect::<Vec<_>>().join("\n")).unwrap();
}

/// Processor times.
#[derive(Clone, Copy)]
pub(crate) struct Processors {
    pub(crate) postgres: Duration,
    /// Without their tool servers.
    pub(crate) workers: Duration,
    pub(crate) nats: Duration,
    pub(crate) llm: Duration,
}

impl Processors {
    /// The processor time that each of `count` investigations has used since `before`, in milliseconds.
    pub(crate) fn each(self, before: Self, count: usize) -> String {
        let each = |now: Duration, then: Duration| (now - then).as_secs_f64() * 1e3 / count as f64;
        format!(
            "{:.1} / {:.1} / {:.1} / {:.1} ms",
            each(self.postgres, before.postgres),
            each(self.workers, before.workers),
            each(self.nats, before.nats),
            each(self.llm, before.llm)
        )
    }
}
