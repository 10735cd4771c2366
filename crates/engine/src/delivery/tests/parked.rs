//! Tests of the messages of sessions that wait for people.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::ports::{Claim, Disposition, SettlementStatus};
use crate::testing::delivery::{DeliveryHarness, LEASE, SETTLED, until, words};
use crate::testing::{Scene, Turn, approval_rule};
use tarsy_core::plan::Strategy;

const BODY: &[u8] = b"{}";
/// A session that runs, with three events.
fn running() -> SettlementStatus {
    SettlementStatus {
        over: false,
        ..SETTLED
    }
}

/// A session whose first answer asks people.
fn asking() -> DeliveryHarness {
    let turns = vec![Turn::Says("", vec![("w", "k8s.restart")])];
    let scene = Scene::new(Strategy::NativeThinking, 9, turns);
    let hour = Duration::from_hours(1);
    scene.disk().needs_approval(&approval_rule(hour, hour));
    DeliveryHarness::resuming(scene)
}

/// A worker that finds a session waiting.
fn waiting() -> DeliveryHarness {
    DeliveryHarness::new(vec![Disposition::Opened], vec![], Claim::Waiting, running())
}

#[tokio::test(start_paused = true)]
async fn a_waiting_session_holds_no_slot_and_no_message() {
    let harness = asking();
    harness.handle(BODY).await;
    assert_eq!(harness.dispatcher.runs.sessions(), [], "the slot is free");
    harness.dispatcher.parked.finished().await;
    assert_eq!(
        harness.outcome(),
        (words(&["receive 7", "claim"]), words(&["ack"]))
    );
    assert_eq!(harness.scene.ports.feed.drained_at.lock().len(), 1);
    assert_eq!(
        harness.scene.disk().epoch,
        2,
        "it was parked and not released"
    );
}

#[tokio::test(start_paused = true)]
async fn a_redelivered_message_of_a_waiting_session_is_acknowledged_after_its_events() {
    let harness = waiting();
    harness.deliver(BODY).await;
    assert_eq!(
        harness.outcome(),
        (words(&["receive 7", "claim"]), words(&["ack"]))
    );
    assert_eq!(harness.scene.ports.feed.drained_at.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_message_stays_in_progress_until_the_stream_takes_the_events() {
    let harness = waiting();
    let refuses = &harness.scene.ports.feed.refuses;
    refuses.store(true, Ordering::Relaxed);
    harness.handle(BODY).await;
    tokio::time::sleep(4 * LEASE).await; // paused time
    let acknowledgements = harness.delivery.acknowledgements();
    assert!(acknowledgements.len() > 3, "{acknowledgements:?}");
    assert!(
        acknowledgements.iter().all(|word| word == "progress"),
        "{acknowledgements:?}"
    );
    refuses.store(false, Ordering::Relaxed);
    until(|| {
        harness
            .delivery
            .acknowledgements()
            .last()
            .is_some_and(|last| last == "ack")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_draining_worker_returns_the_message_whose_events_are_not_published() {
    let harness = waiting();
    harness
        .scene
        .ports
        .feed
        .refuses
        .store(true, Ordering::Relaxed);
    harness.handle(BODY).await;
    tokio::time::sleep(Duration::from_secs(1)).await; // paused time
    harness.dispatcher.shutdown.drain.cancel();
    harness.dispatcher.parked.finished().await;
    let last = harness.delivery.acknowledgements().pop();
    assert_eq!(last.as_deref(), Some("nak now"));
}
