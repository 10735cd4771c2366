//! Tests of the settler: messages of ended sessions while the timeline stream takes no events.

use std::sync::atomic::Ordering;

use tokio::time::Instant;
use uuid::Uuid;

use crate::delivery::settler::*;
use crate::ports::{Claim, Disposition, Opened};
use crate::testing::FakeDelivery;
use crate::testing::delivery::{DeliveryHarness, LEASE, NEW, SETTLED, words};

/// A worker whose next alert opens a session, beside a stream that takes no events.
fn refused(dispositions: Vec<Disposition>) -> DeliveryHarness {
    let harness = DeliveryHarness::new(
        dispositions,
        vec![],
        Claim::Ended { settled: false },
        SETTLED,
    );
    *harness.sessions.opened.lock() = vec![Opened::Session(harness.claimed())];
    harness
        .scene
        .ports
        .feed
        .refuses
        .store(true, Ordering::Relaxed);
    harness
        .timeline
        .send_replace(Timeline::Unavailable("no stream".to_owned()));
    harness
}

fn accepts(harness: &DeliveryHarness) {
    harness
        .scene
        .ports
        .feed
        .refuses
        .store(false, Ordering::Relaxed);
    harness.timeline.send_replace(Timeline::Accepting);
}

#[tokio::test(start_paused = true)]
async fn an_ended_session_frees_its_slot_at_once_and_is_settled_when_the_stream_is_back() {
    let harness = refused(vec![NEW]);
    let began = Instant::now();
    harness.handle(b"disk full").await;
    assert_eq!(
        began.elapsed(),
        Duration::ZERO,
        "nothing is waited for in the slot"
    );
    assert!(
        harness.scene.disk().end.is_some()
            && harness.dispatcher.settler.holds(harness.scene.session)
    );
    tokio::time::sleep(LEASE).await; // paused time
    let kept = words(&["progress", "progress"]);
    assert_eq!(
        harness.outcome(),
        (words(&["receive 7", "join", "open"]), kept.clone()),
        "the message is kept, not put back"
    );
    accepts(&harness);
    let back = Instant::now();
    harness.dispatcher.settler.finished().await;
    assert_eq!(back.elapsed(), Duration::ZERO, "no delay is waited out");
    let answers = [kept, words(&["ack"])].concat();
    assert_eq!(
        harness.outcome(),
        (words(&["receive 7", "join", "open", "settled"]), answers)
    );
}

#[tokio::test(start_paused = true)]
async fn the_delays_between_two_tries_of_a_session_grow_to_half_a_minute() {
    let harness = refused(vec![NEW]);
    harness.handle(b"disk full").await;
    tokio::time::sleep(Duration::from_secs(180)).await; // paused time
    let tries = harness.scene.ports.feed.drained_at.lock().clone();
    let delays: Vec<f64> = tries
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs_f64())
        .collect();
    let bounds = [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0];
    for (delay, least) in delays.iter().zip(bounds) {
        assert!((least..=least * 1.5 + 0.1).contains(delay), "{delays:?}");
    }
    assert!(delays.len() >= 6, "{delays:?}");
}

#[tokio::test(start_paused = true)]
async fn a_redelivery_of_a_waiting_session_replaces_its_message_without_a_try() {
    let mut harness = refused(vec![NEW, Disposition::Opened]);
    harness.handle(b"disk full").await;
    let first = std::mem::take(&mut harness.delivery);
    tokio::time::sleep(Duration::from_millis(100)).await; // paused time
    let tries = harness.scene.ports.feed.drained_at.lock().len();
    harness.handle(b"disk full").await;
    tokio::time::sleep(Duration::from_millis(100)).await; // paused time
    assert_eq!(harness.scene.ports.feed.drained_at.lock().len(), tries);
    accepts(&harness);
    harness.dispatcher.settler.finished().await;
    assert_eq!(
        (
            first.acknowledgements(),
            harness.delivery.acknowledgements()
        ),
        (words(&[]), words(&["ack"]))
    );
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_tries_once_and_then_gives_what_it_cannot_settle_back() {
    let harness = refused(vec![NEW]);
    harness.handle(b"disk full").await;
    let began = Instant::now();
    harness.dispatcher.shutdown.drain.cancel();
    harness.dispatcher.settler.finished().await;
    assert_eq!(
        (harness.outcome().1, began.elapsed()),
        (words(&["nak now"]), Duration::ZERO)
    );
    assert_eq!(harness.scene.ports.feed.drained_at.lock().len(), 1);
    assert!(!harness.dispatcher.settler.holds(harness.scene.session));
}

#[tokio::test(start_paused = true)]
async fn a_message_without_room_returns_to_the_queue_for_a_minute() {
    let harness = refused(vec![]);
    let settler = &harness.dispatcher.settler;
    let delivery = Arc::new(FakeDelivery::default());
    for number in 0..MAX_WAITING as u128 {
        assert_eq!(
            settler.take(SessionId(Uuid::from_u128(number)), Some(&delivery)),
            Acknowledgement::Skip
        );
    }
    let one_more = settler.take(
        SessionId(Uuid::from_u128(MAX_WAITING as u128)),
        Some(&delivery),
    );
    assert!(
        matches!(one_more, Acknowledgement::Nak(delay) if delay >= NO_ROOM_DELAY),
        "{one_more:?}"
    );
}
