//! Tests of what a delivery waits for: its turn in a burst, and the timeline stream.

use std::sync::atomic::Ordering;

use crate::delivery::dispatcher::MAX_RECEIVING;
use crate::ports::*;
use crate::testing::delivery::{DeliveryHarness, LEASE, NEW, SETTLED, words};

/// A new alert that opens the scene's session.
fn opening() -> DeliveryHarness {
    let harness = DeliveryHarness::new(vec![NEW], vec![], Claim::Unknown, SETTLED);
    *harness.sessions.opened.lock() = vec![Opened::Session(harness.claimed())];
    harness
}

#[tokio::test(start_paused = true)]
async fn in_a_burst_a_delivery_waits_for_its_turn_with_heartbeats() {
    let harness = opening();
    let others = harness
        .dispatcher
        .receiving
        .acquire_many(u32::try_from(MAX_RECEIVING).unwrap())
        .await
        .unwrap();
    let burst = async {
        tokio::time::sleep(LEASE.mul_f64(0.9)).await; // paused time
        assert_eq!(
            harness.outcome(),
            (vec![], words(&["progress", "progress"]))
        );
        drop(others);
    };
    tokio::join!(harness.deliver(b"disk full"), burst);
    let asked = words(&["receive 7", "join", "open", "settled"]);
    assert_eq!(
        harness.outcome(),
        (asked, words(&["progress", "progress", "ack"]))
    );
}

#[tokio::test(start_paused = true)]
async fn a_draining_worker_gives_back_what_waits_for_its_turn() {
    let harness = opening();
    let _others = harness
        .dispatcher
        .receiving
        .acquire_many(u32::try_from(MAX_RECEIVING).unwrap())
        .await
        .unwrap();
    let draining = async { harness.dispatcher.shutdown.drain.cancel() };
    tokio::join!(harness.deliver(b"disk full"), draining);
    assert_eq!(harness.outcome(), (vec![], words(&["nak now"])));
}

/// A new session whose worker drains at once, so that no settlement compares it.
async fn released(harness: DeliveryHarness) -> Vec<String> {
    *harness.sessions.cancels.lock() = Some(harness.dispatcher.shutdown.drain.clone());
    harness.deliver(b"disk full").await;
    harness.outcome().0
}

#[tokio::test]
async fn only_a_new_session_that_the_timeline_stream_knows_is_compared_with_it() {
    let harness = opening();
    *harness.scene.ports.feed.divergence.lock() = Some(Divergence {
        kept: 0,
        events: vec![],
    });
    assert_eq!(
        released(harness).await,
        words(&["receive 7", "join", "open", "recover 7 after 0", "release"])
    );
    assert_eq!(
        released(opening()).await,
        words(&["receive 7", "join", "open", "release"])
    );
}

#[tokio::test]
async fn a_stream_that_does_not_answer_delays_no_opened_session() {
    let harness = opening();
    harness
        .scene
        .ports
        .feed
        .is_silent
        .store(true, Ordering::Relaxed);
    *harness.scene.ports.feed.divergence.lock() = Some(Divergence {
        kept: 0,
        events: vec![],
    });
    assert_eq!(
        released(harness).await,
        words(&["receive 7", "join", "open", "recover 7 after 0", "release"])
    );
}
