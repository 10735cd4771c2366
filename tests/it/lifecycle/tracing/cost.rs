//! The cost of the export: the rate of iterations without and with a collector, in turns on the same machine.
//!
//! The suite runs six sessions without and six with a collector; `./dev prove` runs twelve and both twice.
//! `TARSY_TRACING_SESSIONS=200` measures longer; the figures are printed with `-- --nocapture`.

use std::time::Instant;

use serde_json::json;
use tarsy_bus::{FINGERPRINT, NewAlert, Priority};

use super::collector::Collector;
use crate::support::figures::by_depth;
use crate::support::process::Tarsy;
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

const ITERATIONS: u32 = 4;

fn sessions() -> u32 {
    by_depth("TARSY_TRACING_SESSIONS", 6, 12)
}

/// Iterations per second of one worker for so many sessions.
async fn rate(system: &TestSystem, name: &str, variables: &[(&str, &str)]) -> f64 {
    let env = system.env(system.database.url());
    let nats = system.connect().await;
    let body = tarsy_drill::builtin("oom-killed")
        .unwrap()
        .alert
        .as_bytes()
        .to_vec();
    for number in 0..sessions() {
        let headers = json!({FINGERPRINT: format!("{name}-{number}")});
        let alert = NewAlert {
            priority: Priority::Normal,
            suffix: None,
            body: body.clone(),
            headers,
        };
        nats.publish_alert(alert).await.unwrap();
    }
    let done = || {
        system
            .database
            .number("SELECT count(*) FROM alert_sessions WHERE status = 'completed'")
    };
    let before = done();
    let mut worker = Tarsy::spawn(
        name,
        &["worker", "--log-level", "warn"],
        &[&env.each()[..], variables].concat(),
    );
    worker.ready().await;
    let began = Instant::now();
    eventually("all sessions are completed", async || {
        done() - before == i64::from(sessions())
    })
    .await;
    let took = began.elapsed().as_secs_f64();
    worker.terminate();
    assert_eq!(worker.finished().await.0, 0, "{}", worker.log());
    f64::from(sessions() * ITERATIONS) / took
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_export_of_traces_loses_no_span_and_its_cost_is_measured() {
    let system = TestSystem::start_with(Setup {
        slots: 4,
        ..Setup::default()
    })
    .await;
    let collector = Collector::start().await;
    let on = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address.as_str())];
    // Off and on, in turns.
    let rounds = by_depth("TARSY_TRACING_ROUNDS", 1, 2);
    for round in 1..=rounds {
        let off = rate(&system, &format!("off-{round}"), &[]).await;
        let with = rate(&system, &format!("on-{round}"), &on).await;
        println!(
            "iterations a second, {} sessions: {off:.1} without a collector, {with:.1} with one",
            sessions()
        );
    }
    let iterations = collector
        .spans()
        .iter()
        .filter(|span| span.name == "iteration")
        .count();
    assert_eq!(
        iterations,
        usize::try_from(sessions() * ITERATIONS * rounds).unwrap()
    );
}
