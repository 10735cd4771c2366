//! Many investigations in parallel, during restarts, outages and bursts of alerts, with figures. The suite runs short
//! versions, the proof longer ones; each file names the environment variable that makes its tests longer still.

mod brokers;
mod burst;
mod outages;
mod rollout;
mod sigterm;
mod joins;
mod storm;
mod upgrade;
mod retention_at_scale;

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use chrono::{DateTime, Utc};
use futures_util::{StreamExt as _, stream};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventType, TimelineEvent};
use uuid::Uuid;

use crate::support::system::TestSystem;
use crate::support::wait::eventually;

/// This word in an alert selects the recording of these tests.
pub(super) const MARK: &str = "PacedDrill";
/// Concurrent publishes.
const PUBLISHED_AT_ONCE: usize = 256;

/// The time of the stream's ack of each alert.
pub(crate) type Published = BTreeMap<SessionId, DateTime<Utc>>;

/// A recording of `answers` answers that take `call` each; all but the last one call a read-only tool.
pub(crate) fn paced(answers: usize, call: Duration) -> String {
    let wait = call.as_millis();
    let mut text = format!("name: paced\nmatch: {MARK}\nprovider_state: true\nanswers:\n");
    for step in 1..answers {
        let pod = "namespace: checkout, pod: checkout-7d9f8b6c5-x2x9p";
        text.push_str(&format!(
            "  - chunks: [{{wait: {wait}ms}}, {{call: {{tool: drill.describe_pod, arguments: {{{pod}, step: {step}}}}}}}]\n"
        ));
    }
    text.push_str(&format!(
        "  - chunks: [{{wait: {wait}ms}}, {{text: \"Cause: a drill [[*]]. The end.\"}}]\n"
    ));
    text
}

/// An alert to publish.
#[derive(Clone, Copy)]
struct Alert<'a> {
    subject: &'static str,
    /// The fingerprint; without it the alert has a fingerprint of its own.
    fingerprint: Option<&'a str>,
    text: &'static str,
}

impl Default for Alert<'_> {
    fn default() -> Self {
        Self {
            subject: "tarsy.alerts.normal",
            fingerprint: None,
            text: MARK,
        }
    }
}

/// Publishes `count` different alerts and returns when the stream has acknowledged all of them.
pub(crate) async fn publish_many(system: &TestSystem, count: usize) -> Published {
    let jetstream = system.jetstream().await;
    let publishing = stream::iter(0..count).map(|_| publish(&jetstream, Alert::default()));
    publishing
        .buffer_unordered(PUBLISHED_AT_ONCE)
        .collect()
        .await
}

/// Publishes one alert with this text.
pub(super) async fn publish_text(system: &TestSystem, text: &'static str) {
    publish(
        &system.jetstream().await,
        Alert {
            text,
            ..Alert::default()
        },
    )
    .await;
}

/// Returns the time of the stream's ack.
async fn publish(jetstream: &Context, alert: Alert<'_>) -> (SessionId, DateTime<Utc>) {
    let session = SessionId(Uuid::now_v7());
    let mut headers = HeaderMap::new();
    headers.insert("Tarsy-Session-Id", session.to_string());
    if let Some(fingerprint) = alert.fingerprint {
        headers.insert("Tarsy-Fingerprint", fingerprint);
    }
    let body = format!("{}: something is wrong, {session}", alert.text);
    let acknowledged = jetstream
        .publish_with_headers(alert.subject, headers, body.into())
        .await
        .unwrap();
    acknowledged.await.unwrap();
    (session, Utc::now())
}

/// Returns when this many sessions have ended.
async fn ended(system: &TestSystem, count: usize) {
    let sql =
        "SELECT count(*) FROM alert_sessions WHERE status <> 'running' AND settled_at IS NOT NULL";
    let count = i64::try_from(count).unwrap();
    eventually(&format!("{count} sessions have ended"), async || {
        system.database.number(sql) >= count
    })
    .await;
}

/// Asserts that no session failed, no model call failed and no attempt was counted.
fn assert_all_completed(system: &TestSystem, count: usize) {
    let number = |sql: &str| system.database.number(sql);
    let completed = number("SELECT count(*) FROM alert_sessions WHERE status = 'completed'");
    assert_eq!(
        completed,
        i64::try_from(count).unwrap(),
        "completed of {count}"
    );
    assert_eq!(
        number("SELECT count(*) FROM alert_sessions WHERE status <> 'completed'"),
        0
    );
    assert_eq!(
        number("SELECT count(*) FROM timeline_events WHERE event_type = 'error'"),
        0,
        "failed iterations"
    );
    assert_eq!(
        number("SELECT max(attempts)::bigint FROM alert_sessions"),
        1,
        "counted attempts"
    );
}

/// The first event of this type.
fn first(events: &[TimelineEvent], event_type: EventType) -> Option<&TimelineEvent> {
    events.iter().find(|event| event.event_type == event_type)
}
