//! What becomes of a message whose session is over while the timeline stream takes no events.

use std::sync::atomic::Ordering;

use tokio::time::Instant;
use uuid::Uuid;

use crate::engine::delivery::settler::*;
use crate::engine::ports::{Claim, Disposition, Opened};
use crate::engine::testing::delivery::{Desk, LEASE, NEW, SETTLED, Told, words};
use crate::engine::testing::lock;

/// A worker whose next alert opens a session, beside a stream that takes no events.
fn refused(places: Vec<Disposition>) -> Desk {
    let desk = Desk::new(places, vec![], Claim::Ended { settled: false }, SETTLED);
    *lock(&desk.sessions.opened) = vec![Opened::Session(desk.claimed())];
    desk.scene.ports.feed.refuses.store(true, Ordering::Relaxed);
    desk.timeline.send_replace(Timeline::Unavailable("no stream".to_owned()));
    desk
}

fn accepts(desk: &Desk) {
    desk.scene.ports.feed.refuses.store(false, Ordering::Relaxed);
    desk.timeline.send_replace(Timeline::Accepting);
}

#[tokio::test(start_paused = true)]
async fn a_finished_session_frees_its_slot_at_once_and_is_settled_when_events_are_taken_again() {
    let desk = refused(vec![NEW]);
    let began = Instant::now();
    desk.handle(b"disk full").await;
    assert_eq!(began.elapsed(), Duration::ZERO, "nothing is waited for in the slot");
    assert!(desk.scene.disk().end.is_some() && desk.dispatcher.settler.holds(desk.scene.session));
    tokio::time::sleep(LEASE).await; // paused time
    let kept = words(&["progress", "progress"]);
    assert_eq!(
        desk.outcome(),
        (words(&["receive 7", "join", "open"]), kept.clone()),
        "the message is kept, not put back"
    );
    accepts(&desk);
    let back = Instant::now();
    desk.dispatcher.settler.finished().await;
    assert_eq!(back.elapsed(), Duration::ZERO, "no delay is waited out");
    let told = [kept, words(&["ack"])].concat();
    assert_eq!(desk.outcome(), (words(&["receive 7", "join", "open", "settled"]), told));
}

#[tokio::test(start_paused = true)]
async fn the_delays_between_two_tries_of_a_session_grow_to_half_a_minute() {
    let desk = refused(vec![NEW]);
    desk.handle(b"disk full").await;
    tokio::time::sleep(Duration::from_secs(180)).await; // paused time
    let tries = lock(&desk.scene.ports.feed.drained_at).clone();
    let delays: Vec<f64> = tries.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    let bounds = [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0];
    for (delay, least) in delays.iter().zip(bounds) {
        assert!((least..=least * 1.5 + 0.1).contains(delay), "{delays:?}");
    }
    assert!(delays.len() >= 6, "{delays:?}");
}

#[tokio::test(start_paused = true)]
async fn a_redelivery_of_what_waits_is_taken_in_without_a_try_and_is_the_one_that_is_answered() {
    let mut desk = refused(vec![NEW, Disposition::Opened]);
    desk.handle(b"disk full").await;
    let first = std::mem::take(&mut desk.told);
    tokio::time::sleep(Duration::from_millis(100)).await; // paused time
    let tries = lock(&desk.scene.ports.feed.drained_at).len();
    desk.handle(b"disk full").await;
    tokio::time::sleep(Duration::from_millis(100)).await; // paused time
    assert_eq!(lock(&desk.scene.ports.feed.drained_at).len(), tries);
    accepts(&desk);
    desk.dispatcher.settler.finished().await;
    assert_eq!((lock(&first.0).clone(), lock(&desk.told.0).clone()), (words(&[]), words(&["ack"])));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_tries_once_and_then_gives_what_it_cannot_settle_back() {
    let desk = refused(vec![NEW]);
    desk.handle(b"disk full").await;
    let began = Instant::now();
    desk.dispatcher.drain.cancel();
    desk.dispatcher.settler.finished().await;
    assert_eq!((desk.outcome().1, began.elapsed()), (words(&["nak now"]), Duration::ZERO));
    assert_eq!(lock(&desk.scene.ports.feed.drained_at).len(), 1);
    assert!(!desk.dispatcher.settler.holds(desk.scene.session));
}

#[tokio::test(start_paused = true)]
async fn what_finds_no_room_to_wait_goes_back_to_the_queue_for_a_minute() {
    let desk = refused(vec![]);
    let settler = &desk.dispatcher.settler;
    let delivery = Arc::new(Told::default());
    for number in 0..MOST as u128 {
        assert_eq!(settler.take(SessionId(Uuid::from_u128(number)), &delivery), Answer::Nothing);
    }
    let one_more = settler.take(SessionId(Uuid::from_u128(MOST as u128)), &delivery);
    assert!(matches!(one_more, Answer::Nak(delay) if delay >= NO_ROOM), "{one_more:?}");
}
