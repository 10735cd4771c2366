//! The broker: killed, gone, and full.

use async_nats::HeaderMap;
use async_nats::jetstream::stream::{Config, DiscardPolicy};
use chrono::Utc;

use super::bed::{Bed, logged_after};
use super::{Measured, Pace};
use crate::support::figures::between;
use crate::support::system::Setup;
use crate::support::wait::eventually;

pub(super) async fn restarted(pace: Pace) -> Vec<Measured> {
    let mut bed = Bed::start(pace.patient(), Setup::default()).await;
    let at = Utc::now();
    bed.system.nats.kill();
    bed.system.nats.restart().await;
    let back = Utc::now();
    let new = bed.publish(1).await;
    bed.end(1).await;
    assert!(
        bed.resumed_after(at).is_empty(),
        "no session changes its worker"
    );
    vec![
        Measured::new("a running session takes its next step", bed.steps_after(at)),
        Measured::new(
            "a new alert is opened, after the return",
            bed.opened_after(back, &new),
        ),
    ]
}

pub(super) async fn gone(pace: Pace) -> Vec<Measured> {
    let mut bed = Bed::start(pace.patient(), Setup::default()).await;
    let at = Utc::now();
    bed.system.nats.kill();
    let noticed = bed.logged_after(at, "nats is unavailable").await;
    let paused = bed
        .logged_after(at, "claiming paused: nats unavailable")
        .await;
    tokio::time::sleep(pace.outage).await; // the outage itself
    bed.system.nats.restart().await;
    let back = Utc::now();
    let new = bed.publish(1).await;
    bed.end(1).await;
    assert!(
        bed.resumed_after(at).is_empty(),
        "no session changes its worker"
    );
    vec![
        Measured::new("log: nats is unavailable", noticed),
        Measured::new("log: claiming paused", paused),
        Measured::new("a running session takes its next step", bed.steps_after(at)),
        Measured::new(
            "a session that has ended is settled, after the return",
            bed.settled_after(back),
        ),
        Measured::new(
            "a new alert is opened, after the return",
            bed.opened_after(back, &new),
        ),
    ]
}

pub(super) async fn queue_full(pace: Pace) -> Vec<Measured> {
    let sections = "streams:\n  alerts: {max_bytes: 1MiB}\n";
    let mut bed = Bed::idle(
        pace,
        Setup {
            sections,
            ..Setup::default()
        },
    )
    .await;
    let jetstream = bed.system.jetstream().await;
    let publish = async |number: usize| {
        let body = format!("alert {number} {}", "x".repeat(100_000));
        let sent = jetstream
            .publish_with_headers("tarsy.alerts.normal", HeaderMap::new(), body.into())
            .await;
        sent.unwrap().await.is_ok()
    };
    let mut accepted = 0;
    while publish(accepted).await {
        accepted += 1;
        assert!(accepted < 20, "the queue does not fill up");
    }
    let at = Utc::now();
    bed.add_worker("w1").await;
    eventually("the queue accepts an alert again", async || {
        publish(accepted).await
    })
    .await;
    let again = between(at, Utc::now());
    bed.end(1).await;
    let opened = bed.system.database.number("SELECT count(*) FROM alerts");
    assert_eq!(
        usize::try_from(opened).unwrap(),
        accepted + 1,
        "every accepted alert, and no other"
    );
    vec![Measured::one(
        "the queue accepts alerts, after a worker has started",
        again,
    )]
}

pub(super) async fn timeline_full(pace: Pace) -> Vec<Measured> {
    let bed = Bed::start(pace.patient(), Setup::default()).await;
    let jetstream = bed.system.jetstream().await;
    let mut stream = jetstream.get_stream("TARSY_TIMELINE").await.unwrap();
    let config = stream.info().await.unwrap().config.clone();
    let at = Utc::now();
    let full = Config {
        max_messages: 1,
        discard: DiscardPolicy::New,
        ..config.clone()
    };
    jetstream.update_stream(full).await.unwrap();
    // A worker that publishes nothing does not notice.
    let noticed = logged_after(
        &bed.workers[bed.busiest()],
        at,
        "timeline stream unavailable",
    )
    .await;
    bed.until(
        "every session has ended",
        "NOT EXISTS (SELECT FROM alert_sessions WHERE status = 'running')",
    )
    .await;
    let steps = bed.steps_after(at);
    jetstream.update_stream(config).await.unwrap();
    let back = Utc::now();
    bed.end(1).await;
    vec![
        Measured::one("log: timeline stream unavailable", noticed),
        Measured::new("a running session takes its next step", steps),
        Measured::new(
            "a session that has ended is settled, after the return",
            bed.settled_after(back),
        ),
    ]
}
