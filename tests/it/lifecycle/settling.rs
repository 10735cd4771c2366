//! Settling of ended investigations while the timeline stream accepts no event.
//!
//! The suite leaves twelve sessions unsettled, `./dev prove` forty, and `TARSY_SETTLING_ALERTS` another number.

use async_nats::jetstream::{self, Context};
use serde_json::json;
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use uuid::Uuid;

use crate::support::figures::by_depth;
use crate::support::http;
use crate::support::process::metric_is;
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

/// Publishes alerts with different fingerprints.
async fn publish(system: &TestSystem, count: usize, what: &str) -> Vec<SessionId> {
    let nats = system.connect().await;
    let mut sessions = Vec::new();
    for number in 0..count {
        let session = SessionId(Uuid::now_v7());
        let body = format!("disk {number} of db-{number} is full: {what}").into_bytes();
        let headers = json!({SESSION_ID: session.to_string()});
        nats.publish_alert(NewAlert {
            priority: Priority::Normal,
            suffix: None,
            body,
            headers,
        })
        .await
        .unwrap();
        sessions.push(session);
    }
    sessions
}

async fn jetstream(system: &TestSystem) -> Context {
    jetstream::new(async_nats::connect(system.nats.url()).await.unwrap())
}

async fn completed(system: &TestSystem, count: usize) {
    let sql = "SELECT count(*) FROM alert_sessions WHERE status = 'completed'";
    let count = i64::try_from(count).unwrap();
    eventually("every alert is investigated", async || {
        system.database.number(sql) == count
    })
    .await;
}

/// Returns when the worker is ready and `/readyz` answers with this text.
async fn readiness_is(address: &str, body: &str) {
    let reached = async || {
        let ready = http::get(address, "/readyz").await;
        ready.status == 200 && ready.body == body
    };
    eventually(body, reached).await;
}

async fn all_settled(system: &TestSystem, sessions: &[SessionId]) {
    let sql = "SELECT count(*) FROM alert_sessions WHERE settled_at IS NULL";
    eventually("everything is settled", async || {
        system.database.number(sql) == 0
    })
    .await;
    for session in sessions {
        let mut timeline = system.follow(*session).await;
        timeline.finish().await;
        system.assert_invariants(*session, &timeline.seen).await;
    }
    system.queue_is_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_timeline_stream_alerts_are_investigated_and_settled_when_it_returns() {
    let system = TestSystem::start_with(Setup {
        slots: 4,
        ..Setup::default()
    })
    .await;
    let (_worker, address) = system.worker("w1").await;
    metric_is(&address, "tarsy_timeline_available", "", 1.0).await;
    jetstream(&system)
        .await
        .delete_stream("TARSY_TIMELINE")
        .await
        .unwrap();
    metric_is(&address, "tarsy_timeline_available", "", 0.0).await;
    readiness_is(&address, "ok, but the timeline stream is unavailable\n").await;

    let alerts: u16 = by_depth("TARSY_SETTLING_ALERTS", 12, 40);
    let sessions = publish(&system, alerts.into(), "no stream").await;
    completed(&system, alerts.into()).await;
    assert_eq!(
        system
            .database
            .number("SELECT count(*) FROM alert_sessions WHERE settled_at IS NOT NULL"),
        0
    );
    // A session is completed in the database before its slot is free.
    metric_is(&address, "tarsy_settling", "", alerts.into()).await;
    metric_is(&address, "tarsy_sessions_running", "", 0.0).await;

    system.migrate().await;
    all_settled(&system, &sessions).await;
    metric_is(&address, "tarsy_timeline_available", "", 1.0).await;
    readiness_is(&address, "ok\n").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_timeline_stream_delays_no_investigation() {
    let system = TestSystem::start_with(Setup {
        slots: 4,
        ..Setup::default()
    })
    .await;
    let (mut worker, address) = system.worker("w1").await;
    let jetstream = jetstream(&system).await;
    let mut stream = jetstream.get_stream("TARSY_TIMELINE").await.unwrap();
    let config = stream.info().await.unwrap().config.clone();
    let full = jetstream::stream::Config {
        max_messages: 1,
        discard: jetstream::stream::DiscardPolicy::New,
        ..config.clone()
    };
    jetstream.update_stream(full).await.unwrap();
    let sessions = publish(&system, 12, "full").await;
    completed(&system, 12).await;
    metric_is(&address, "tarsy_timeline_available", "", 0.0).await;
    worker.logged("timeline stream unavailable").await;

    // A worker that stops meanwhile leaves the settling to the next one.
    worker.terminate();
    assert_eq!(worker.finished().await.0, 0, "{}", worker.log());
    jetstream.update_stream(config).await.unwrap();
    let (_next, _) = system.worker("w2").await;
    all_settled(&system, &sessions).await;
}
