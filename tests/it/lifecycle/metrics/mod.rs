//! Metrics, probes and logs of all roles on real servers, scraped by a real Prometheus.

mod drill;
mod expressions;
mod queue;
mod rules;
mod secrets;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;

use crate::interfaces::receive::metrics_of;
use crate::support::http;
use crate::support::monitoring::{Server, flag, program};
use crate::support::process::{Tarsy, metric, metric_is};
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;
use crate::web::Web;

const TEST_TIMEOUT: Duration = Duration::from_secs(180);
/// The time between two looks at Prometheus, which scrapes once a second.
const QUERY_INTERVAL: Duration = Duration::from_millis(100);

/// People decide, so that every gauge about them is exported.
const PEOPLE: &str = "approvals:
  policies: {default: {approvers: [sre]}}
  people: {ana: {cli: ana, groups: [sre]}}
";

/// One process of every role, and the addresses of their metrics.
struct Fleet {
    system: TestSystem,
    _processes: [Tarsy; 2],
    alerts: String,
    worker: String,
    llm_service: String,
    receive: String,
    web: Web,
}

impl Fleet {
    async fn start() -> Self {
        let mut system = TestSystem::start_with(Setup {
            sections: PEOPLE,
            ..Setup::default()
        })
        .await;
        let llm_service = metrics_of(&mut system.llm).await;
        let (process, worker) = system.worker("w1").await;
        let mut receiver = system.tarsy("receive", &["receive", "--listen", "127.0.0.1:0"]);
        let (address, receive) = (receiver.ready().await, metrics_of(&mut receiver).await);
        let web = Web::start(&system, &[]).await;
        let _processes = [process, receiver];
        let fleet = Self {
            system,
            _processes,
            alerts: address,
            worker,
            llm_service,
            receive,
            web,
        };
        for role in fleet.roles() {
            status_is(role, "/readyz", 200).await;
        }
        fleet
    }

    fn roles(&self) -> [&str; 4] {
        [
            &self.worker,
            &self.llm_service,
            &self.receive,
            &self.web.metrics,
        ]
    }

    /// Posts one alert to the receiver, waits for the end of its investigation and reads the list of sessions.
    async fn investigate(&self) {
        let alert = tarsy_drill::builtin("oom-killed").unwrap().alert;
        let answer = http::post(
            &self.alerts,
            "/alert?priority=critical",
            &[],
            alert.as_bytes(),
        )
        .await;
        assert_eq!(answer.status, 202, "{answer:?}");
        let session = SessionId::parse(answer.json()["session_id"].as_str().unwrap()).unwrap();
        let mut timeline = self.system.follow(session).await;
        assert_eq!(
            timeline.finish().await.event_type,
            EventType::SessionCompleted
        );
        assert_eq!(self.web.get("/").await.status, 200);
    }
}

async fn status_is(address: &str, path: &str, status: u16) {
    let what = format!("{path} answers {status}");
    eventually(&what, async || {
        http::get(address, path).await.status == status
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_role_counts_its_part_of_an_investigation_and_nothing_else() {
    let mut fleet = Fleet::start().await;
    fleet.investigate().await;
    let (worker, llm_service, receive, web) = (
        &fleet.worker,
        &fleet.llm_service,
        &fleet.receive,
        &fleet.web.metrics,
    );
    for (address, name, labels, value) in [
        (worker, "tarsy_sessions_opened_total", "", 1.0),
        (
            worker,
            "tarsy_sessions_finished_total",
            "status=\"completed\"",
            1.0,
        ),
        (
            worker,
            "tarsy_sessions_finished_total",
            "status=\"failed\"",
            0.0,
        ),
        (worker, "tarsy_session_wait_seconds_count", "", 1.0),
        (worker, "tarsy_session_duration_seconds_count", "", 1.0),
        (worker, "tarsy_iteration_duration_seconds_count", "", 4.0),
        (
            worker,
            "tarsy_model_calls_total",
            "outcome=\"answered\"",
            4.0,
        ),
        (worker, "tarsy_model_calls_total", "outcome=\"failed\"", 0.0),
        (worker, "tarsy_model_call_duration_seconds_count", "", 4.0),
        (worker, "tarsy_model_first_chunk_seconds_count", "", 4.0),
        (worker, "tarsy_execution_iterations_count", "", 1.0),
        (worker, "tarsy_execution_iterations_sum", "", 4.0),
        (worker, "tarsy_time_to_first_event_seconds_count", "", 1.0),
        (
            worker,
            "tarsy_tool_calls_total",
            "server=\"drill\",outcome=\"done\"",
            5.0,
        ),
        (
            worker,
            "tarsy_tool_call_duration_seconds_count",
            "server=\"drill\"",
            5.0,
        ),
        (worker, "tarsy_worker_paused", "", 0.0),
        (worker, "tarsy_draining", "", 0.0),
        (worker, "tarsy_db_pool_size", "", 8.0),
        (worker, "tarsy_sessions_running", "", 0.0),
        (worker, "tarsy_worker_slots", "", 4.0),
        (worker, "tarsy_worker_slot_utilization_ratio", "", 0.0),
        (
            llm_service,
            "tarsy_llm_requests_total",
            "backend=\"scripted\",outcome=\"answered\"",
            4.0,
        ),
        (
            llm_service,
            "tarsy_llm_requests_total",
            "outcome=\"failed\"",
            0.0,
        ),
        (
            llm_service,
            "tarsy_llm_request_duration_seconds_count",
            "backend=\"scripted\"",
            4.0,
        ),
        (llm_service, "tarsy_llm_requests_in_flight", "", 0.0),
        (
            receive,
            "tarsy_receive_requests_total",
            "path=\"alert\",code=\"2xx\"",
            1.0,
        ),
        (
            receive,
            "tarsy_receive_request_duration_seconds_count",
            "",
            1.0,
        ),
        (
            web,
            "tarsy_web_requests_total",
            "kind=\"page\",code=\"2xx\"",
            1.0,
        ),
        (web, "tarsy_web_request_duration_seconds_count", "", 1.0),
        (web, "tarsy_web_streams", "", 0.0),
    ] {
        metric_is(address, name, labels, value).await;
    }
    // A busy machine may have the alert delivered again, which both counters count.
    eventually("one alert has been received", async || {
        let received = metric(
            worker,
            "tarsy_alerts_received_total",
            "priority=\"critical\"",
        )
        .await;
        (received - metric(worker, "tarsy_alerts_redelivered_total", "").await - 1.0).abs()
            < f64::EPSILON
    })
    .await;
    let queries = "tarsy_db_query_duration_seconds_count";
    for operation in [
        "receive",
        "open",
        "checkpoint",
        "finish",
        "settle",
        "probe",
        "history",
    ] {
        let calls = metric(worker, queries, &format!("operation=\"{operation}\"")).await;
        assert!(calls >= 1.0, "{operation}: {calls}");
    }
    let waits = metric(worker, queries, "operation=\"waited\"").await;
    assert!(waits < 1.0, "nothing waited for a tool server: {waits}");
    for direction in ["input", "output"] {
        assert!(
            metric(
                worker,
                "tarsy_model_tokens_total",
                &format!("direction=\"{direction}\"")
            )
            .await
                > 0.0
        );
    }
    for address in fleet.roles() {
        assert!(
            (metric(address, "tarsy_build_info", env!("CARGO_PKG_VERSION")).await - 1.0).abs()
                < 1e-9
        );
        metric_is(address, "tarsy_ready", "", 1.0).await;
        assert!(metric(address, "process_resident_memory_bytes", "").await > 1e6);
        let own = http::get(address, "/metrics").await.body;
        let has = |name: &str| {
            own.contains(&format!("\n# TYPE {name}")) || own.starts_with(&format!("# TYPE {name}"))
        };
        assert_eq!(
            has("tarsy_sessions_opened_total"),
            address == worker.as_str()
        );
        assert_eq!(
            has("tarsy_llm_requests_total"),
            address == llm_service.as_str()
        );
        assert_eq!(
            has("tarsy_receive_requests_total"),
            address == receive.as_str()
        );
        assert_eq!(has("tarsy_web_requests_total"), address == web.as_str());
        assert!(!own.contains(" summary"), "{own}");
    }

    let in_all = |text: &str| {
        text.lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
            .count()
    };
    for (role, address) in ["worker", "llm-service", "receive", "web"]
        .into_iter()
        .zip(fleet.roles())
    {
        let series = in_all(&http::get(address, "/metrics").await.body);
        println!("{role}: {series} series");
        assert!((20..=1500).contains(&series), "{role}: {series} series");
    }

    // Without its dependencies a role is not ready, but a restart would not help.
    fleet.system.nats.kill();
    fleet.system.llm.kill().await;
    metric_is(
        &fleet.worker,
        "tarsy_worker_paused",
        "service=\"nats\"",
        1.0,
    )
    .await;
    metric_is(
        &fleet.worker,
        "tarsy_worker_paused",
        "service=\"llm-service\"",
        1.0,
    )
    .await;
    for address in [&fleet.worker, &fleet.receive] {
        status_is(address, "/readyz", 503).await;
        assert_eq!(http::get(address, "/healthz").await.status, 200);
        metric_is(address, "tarsy_ready", "", 0.0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_exports_queue_metrics_before_its_first_claim() {
    let mut system = TestSystem::start(&[]).await;
    system.llm.kill().await;
    for _ in 0..3 {
        system.publish().await;
    }
    let (_worker, metrics) = system.worker("w1").await;
    metric_is(
        &metrics,
        "tarsy_queue_pending",
        "priority=\"critical\"",
        3.0,
    )
    .await;
    metric_is(&metrics, "tarsy_queue_pending", "", 3.0).await;
    metric_is(&metrics, "tarsy_queue_in_progress", "", 0.0).await;
    let age = metric(
        &metrics,
        "tarsy_queue_oldest_alert_age_seconds",
        "priority=\"critical\"",
    )
    .await;
    assert!(age > 0.0 && age < 600.0, "{age}");
    assert!(metric(&metrics, "tarsy_queue_poll_timestamp_seconds", "").await > 1.7e9);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_prometheus_scrapes_every_role_without_an_error() {
    let (Some(promtool), Some(prometheus)) = (
        program("TARSY_TEST_PROMTOOL"),
        program("TARSY_TEST_PROMETHEUS"),
    ) else {
        return;
    };
    let fleet = Fleet::start().await;
    fleet.investigate().await;
    for role in fleet.roles() {
        let text = http::get(role, "/metrics").await.body;
        assert_eq!(
            checked(&promtool, &["check", "metrics"], &text),
            "",
            "{text}"
        );
    }
    let config = fleet.system.file("prometheus.yml");
    std::fs::write(&config, scrape_config(&fleet).to_string()).unwrap();
    assert!(
        checked(
            &promtool,
            &["check", "config", config.to_str().unwrap()],
            ""
        )
        .contains("SUCCESS")
    );
    let flags = [
        flag("config.file", &config),
        flag("storage.tsdb.path", fleet.system.file("prometheus")),
        flag("web.listen-address", "127.0.0.1:0"),
    ];
    let server = Server::start(&prometheus, &flags).await;
    let one = |job: &str| (job.to_owned(), "1".to_owned());
    query_is(
        &server,
        "up",
        &[
            one("llm-service"),
            one("receive"),
            one("web"),
            one("worker"),
        ],
    )
    .await;
    query_is(
        &server,
        "sum+by+(job)(tarsy_sessions_finished_total)",
        &[one("worker")],
    )
    .await;
    query_is(
        &server,
        "sum+by+(job)(tarsy_receive_requests_total)",
        &[one("receive")],
    )
    .await;
    query_is(
        &server,
        "sum+by+(job)(tarsy_web_requests_total)",
        &[one("web")],
    )
    .await;
    query_is(
        &server,
        "sum+by+(job)(tarsy_llm_requests_total)",
        &[("llm-service".to_owned(), "4".to_owned())],
    )
    .await;
}

/// A configuration of Prometheus that scrapes each role once a second.
fn scrape_config(fleet: &Fleet) -> Value {
    let job = |name: &str, target: &str| json!({"job_name": name, "static_configs": [{"targets": [target]}]});
    let names = ["worker", "llm-service", "receive", "web"];
    let jobs: Vec<Value> = names
        .into_iter()
        .zip(fleet.roles())
        .map(|(name, target)| job(name, target))
        .collect();
    json!({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs})
}

/// The output of promtool, which has to succeed.
fn checked(promtool: &Path, args: &[&str], input: &str) -> String {
    let mut command = Command::new(promtool);
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = process.wait_with_output().unwrap();
    let written = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{written}");
    written
}

/// Queries Prometheus until the result has these values by job.
async fn query_is(server: &Server, query: &str, expected: &[(String, String)]) {
    let mut last = Value::Null;
    let reached = async {
        loop {
            let answer = http::get(server.address(), &format!("/api/v1/query?query={query}")).await;
            // While Prometheus starts, its answers are empty.
            last = if answer.status == 200 {
                answer.json()
            } else {
                Value::Null
            };
            let results = last["data"]["result"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let mut found: Vec<_> = results
                .iter()
                .map(|r| (text(&r["metric"]["job"]), text(&r["value"][1])))
                .collect();
            found.sort();
            if found == expected {
                return;
            }
            tokio::time::sleep(QUERY_INTERVAL).await; // pacing of the queries
        }
    };
    let waited = tokio::time::timeout(TEST_TIMEOUT, reached).await;
    assert!(waited.is_ok(), "{query}: {last}");
}
