//! Every way in which an investigation ends is reported, whichever process writes the end.

use std::time::Duration;

use serde_json::json;
use tarsy_bus::Priority;

use super::{FAILING, closed, publish, system, with_routes};
use crate::support::http::endpoint::{Endpoint, Request};
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

fn route(endpoint: &Endpoint) -> String {
    format!("  all: {{kind: webhook, url: '{}'}}\n", endpoint.url())
}

/// The outcomes that have arrived.
fn arrived(endpoint: &Endpoint) -> Vec<serde_json::Value> {
    endpoint
        .requests()
        .iter()
        .map(Request::json)
        .map(|body| body["outcome"].clone())
        .collect()
}

async fn cancel(system: &TestSystem, session: &str) {
    let mut command = system.tarsy("cancel", &["sessions", "cancel", session]);
    assert_eq!(command.finished().await.0, 0, "{}", command.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_and_a_failure_are_reported() {
    let endpoint = Endpoint::accepting().await;
    let system = system(&route(&endpoint)).await;
    let (_worker, _) = system.worker("w1").await;
    let dead = publish(&system, Priority::Critical, "\u{0}").await;
    assert_eq!(closed(&system, 1).await, "sent 1");
    let body = endpoint.requests()[0].json();
    assert_eq!(
        (&body["outcome"], &body["session_id"]),
        (&json!("dead_letter"), &json!(dead))
    );
    assert_eq!(
        (&body["severity"], &body["chain"]),
        (&json!("critical"), &json!(null)),
        "of its queue: {body}"
    );
    publish(&system, Priority::Low, FAILING).await;
    closed(&system, 2).await;
    assert_eq!(arrived(&endpoint), ["dead_letter", "failed"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_another_process_has_written_is_reported_by_the_next_worker() {
    let endpoint = Endpoint::accepting().await;
    let mut system = with_routes(
        &route(&endpoint),
        Setup {
            watched: &["answer-1-middle"],
            ..Setup::default()
        },
    )
    .await;
    let (mut worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    let _held = system.gates.next().await;
    worker.kill().await;
    let expired = "SELECT lease_expires_at < clock_timestamp() FROM alert_sessions";
    eventually("the lease has expired", async || {
        system.database.holds(expired)
    })
    .await;
    // No worker runs: the command ends the session in the database.
    cancel(&system, &session.to_string()).await;
    assert_eq!(
        system.database.text("SELECT status FROM alert_sessions"),
        "cancelled"
    );
    assert!(endpoint.requests().is_empty());
    let (_next, _) = system.worker("w2").await;
    closed(&system, 1).await;
    assert_eq!(arrived(&endpoint), ["cancelled"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_that_a_sweep_finds_is_reported() {
    let endpoint = Endpoint::accepting().await;
    let setup = Setup {
        watched: &["answer-1-middle"],
        sweep: Duration::from_secs(1),
        ..Setup::default()
    };
    let mut system = with_routes(&route(&endpoint), setup).await;
    let (mut worker, _) = system.worker("w1").await;
    system.publish().await;
    let _held = system.gates.next().await;
    worker.kill().await;
    system
        .database
        .execute("UPDATE alert_sessions SET deadline_at = clock_timestamp()");
    let (_next, _) = system.worker("w2").await;
    closed(&system, 1).await;
    assert_eq!(arrived(&endpoint), ["timed_out"]);
}
