//! Tests of the dispatcher: the statements and acknowledgements of every way that a delivery can take, in order.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::delivery::heartbeat::with_heartbeat;
use crate::ports::*;
use crate::testing::delivery::{DeliveryHarness, LEASE, NEW, SETTLED, words};
use crate::testing::{FakeDelivery, Scene, Turn};
use crate::worker::renewal::LeaseRenewal;
use tarsy_core::execution::entry::StopReason;
use tarsy_core::ids::SessionId;
use tarsy_core::plan::Strategy;

#[tokio::test]
async fn a_new_alert_is_investigated_settled_and_then_acknowledged() {
    let harness = DeliveryHarness::new(vec![NEW], vec![], Claim::Unknown, SETTLED);
    *harness.sessions.opened.lock() = vec![Opened::Session(harness.claimed())];
    harness.deliver(b"disk full").await;
    assert_eq!(
        harness.outcome(),
        (
            words(&["receive 7", "join", "open", "settled"]),
            words(&["ack"])
        )
    );
    assert_eq!(
        harness.scene.disk().end.as_ref().map(|end| end.status),
        Some(RunStatus::Completed)
    );
}

#[tokio::test]
async fn a_lost_race_looks_at_the_place_again() {
    let harness = DeliveryHarness::new(
        vec![NEW, Disposition::Joined(SessionId(Uuid::from_u128(9)))],
        vec![Opened::Raced],
        Claim::Unknown,
        SETTLED,
    );
    harness.deliver(b"disk full").await;
    assert_eq!(
        harness.outcome(),
        (
            words(&[
                "receive 7",
                "join",
                "open",
                "refund_attempt 7",
                "receive 7",
                "settled"
            ]),
            words(&["ack"])
        )
    );
}

#[tokio::test]
async fn another_body_under_a_used_id_is_given_up_under_the_derived_id() {
    let harness = DeliveryHarness::new(
        vec![Disposition::UsedId, NEW],
        vec![],
        Claim::Unknown,
        SETTLED,
    );
    harness.deliver(b"other").await;
    assert_eq!(
        harness.outcome().0,
        words(&[
            "receive 7",
            "receive 8",
            "give_up 8 used_id: id 00000000-0000-0000-0000-000000000007 came before, with another body",
            "settled"
        ])
    );
}

#[tokio::test]
async fn a_body_that_is_no_text_is_given_up_and_terminated_with_its_reason() {
    let letter = DeadLetter {
        alert_id: SessionId(Uuid::from_u128(7)),
        reason: DeadReason::Undecodable,
        detail: String::new(),
        body: vec![],
        headers: json!({}),
        subject: String::new(),
        stream_sequence: 1,
        deliveries: 1,
    };
    let harness = DeliveryHarness::new(
        vec![NEW],
        vec![],
        Claim::Unknown,
        SettlementStatus {
            owes: Some(letter),
            ..SETTLED
        },
    );
    harness.deliver(&[0xff]).await;
    let asked = words(&["receive 7", "give_up 7 undecodable: no text", "settled"]);
    assert_eq!(harness.outcome(), (asked, words(&["term undecodable"])));
}

#[tokio::test]
async fn a_live_lease_elsewhere_delays_the_message_and_an_ended_session_is_settled() {
    let busy = DeliveryHarness::new(
        vec![Disposition::Opened],
        vec![],
        Claim::Busy(Duration::from_secs(5)),
        SETTLED,
    );
    busy.deliver(b"x").await;
    assert_eq!(
        busy.outcome(),
        (words(&["receive 7", "claim"]), words(&["nak later"]))
    );
    let over = DeliveryHarness::new(
        vec![Disposition::Opened],
        vec![],
        Claim::Ended { settled: false },
        SETTLED,
    );
    over.deliver(b"x").await;
    assert_eq!(
        over.outcome(),
        (words(&["receive 7", "claim", "settled"]), words(&["ack"]))
    );
}

#[tokio::test]
async fn a_redelivery_of_a_running_session_becomes_its_delivery() {
    let harness = DeliveryHarness::new(vec![Disposition::Opened], vec![], Claim::Unknown, SETTLED);
    let (_control, registered) = harness.insert_run(FakeDelivery::default());
    harness.deliver(b"x").await;
    assert_eq!(harness.outcome(), (words(&["receive 7"]), words(&[])));
    assert!(
        registered
            .remove()
            .unwrap()
            .delivery
            .unwrap()
            .is(&harness.delivery)
    );
}

#[tokio::test]
async fn a_draining_worker_frees_the_session_before_it_gives_the_message_back() {
    let harness = DeliveryHarness::new(vec![NEW], vec![], Claim::Unknown, SETTLED);
    *harness.sessions.opened.lock() = vec![Opened::Session(harness.claimed())];
    *harness.sessions.cancels.lock() = Some(harness.dispatcher.shutdown.drain.clone());
    harness.deliver(b"x").await;
    assert_eq!(
        harness.outcome(),
        (
            words(&["receive 7", "join", "open", "release"]),
            words(&["nak now"])
        )
    );
}

#[tokio::test]
async fn tools_of_a_run_are_closed_once_and_learn_whether_the_session_goes_on() {
    for (released, after) in [
        (false, SessionAfterRun::Ended),
        (true, SessionAfterRun::Continues),
    ] {
        let harness = DeliveryHarness::new(vec![NEW], vec![], Claim::Unknown, SETTLED);
        let claimed = harness.claimed();
        let lease = claimed.lease;
        *harness.sessions.opened.lock() = vec![Opened::Session(claimed)];
        if released {
            *harness.sessions.cancels.lock() = Some(harness.dispatcher.shutdown.drain.clone());
        }
        harness.deliver(b"disk full").await;
        assert_eq!(
            *harness.scene.ports.tools.ended_runs.lock(),
            [(lease, after)]
        );
    }
}

#[tokio::test]
async fn a_release_of_a_session_that_is_over_or_lost_does_not_give_the_message_back() {
    let lost = StoreError::LeaseLost {
        held: 1,
        current: 2,
    };
    let table = [
        (
            lost,
            words(&["receive 7", "join", "open", "release"]),
            words(&[]),
        ),
        (
            StoreError::Ended,
            words(&["receive 7", "join", "open", "release", "settled"]),
            words(&["ack"]),
        ),
        (
            StoreError::Unavailable("gone".to_owned()),
            words(&["receive 7", "join", "open", "release"]),
            words(&["nak later"]),
        ),
    ];
    for (refusal, asked, sent) in table {
        let harness = DeliveryHarness::new(vec![NEW], vec![], Claim::Unknown, SETTLED);
        *harness.sessions.opened.lock() = vec![Opened::Session(harness.claimed())];
        *harness.sessions.released.lock() = Err(refusal);
        *harness.sessions.cancels.lock() = Some(harness.dispatcher.shutdown.drain.clone());
        harness.deliver(b"x").await;
        assert_eq!(harness.outcome(), (asked, sent));
    }
}

#[tokio::test]
async fn an_execution_that_panics_is_a_death_and_not_a_release() {
    let harness = DeliveryHarness::opening(Scene::new(Strategy::SingleCall, 1, vec![Turn::Panics]));
    harness.deliver(b"x").await;
    assert_eq!(
        harness.outcome(),
        (words(&["receive 7", "join", "open"]), words(&["nak later"]))
    );
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_does_not_answer_holds_up_no_renewal_and_not_their_end() {
    let harness = DeliveryHarness::new(vec![], vec![], Claim::Unknown, SETTLED);
    let _run = harness.insert_run(FakeDelivery::unanswered());
    let began = Instant::now();
    let end = CancellationToken::new();
    let renewing = LeaseRenewal(Arc::clone(&harness.dispatcher)).run(end.clone());
    let ending = async {
        tokio::time::sleep(Duration::from_secs(31)).await; // paused time
        end.cancel();
    };
    tokio::join!(renewing, ending);
    assert_eq!(began.elapsed().as_secs(), 31);
    let renewed: Vec<u64> = harness
        .sessions
        .renewed
        .lock()
        .iter()
        .map(|(at, _)| (*at - began).as_secs())
        .collect();
    assert_eq!(renewed, [0, 10, 20, 30]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_answered_too_late_begins_nothing() {
    let lease = DeliveryHarness::new(vec![], vec![], Claim::Unknown, SETTLED).claimed();
    let harness = DeliveryHarness::new(
        vec![Disposition::Opened],
        vec![],
        Claim::Taken(lease),
        SETTLED,
    );
    *harness.sessions.claim_takes.lock() = Duration::from_secs(25);
    harness.deliver(b"x").await;
    assert_eq!(
        harness.outcome(),
        (
            words(&["receive 7", "claim", "release"]),
            words(&["nak later"])
        )
    );
    assert_eq!(*harness.scene.ports.model.calls.lock(), 0);
}

#[tokio::test]
async fn too_many_deaths_a_passed_deadline_and_a_cancel_end_the_session_at_once() {
    let table = [
        (
            Claimed {
                attempts: 5,
                ..DeliveryHarness::new(vec![], vec![], Claim::Unknown, SETTLED).claimed()
            },
            StopReason::AttemptsExhausted,
        ),
        (
            Claimed {
                remaining: Duration::ZERO,
                ..DeliveryHarness::new(vec![], vec![], Claim::Unknown, SETTLED).claimed()
            },
            StopReason::Deadline,
        ),
        (
            Claimed {
                cancel_requested: true,
                ..DeliveryHarness::new(vec![], vec![], Claim::Unknown, SETTLED).claimed()
            },
            StopReason::Cancelled,
        ),
    ];
    for (claimed, reason) in table {
        let harness = DeliveryHarness::new(
            vec![Disposition::Opened],
            vec![],
            Claim::Taken(claimed),
            SETTLED,
        );
        harness.deliver(b"x").await;
        let end = harness.scene.disk().end.clone().unwrap();
        assert_eq!(end.reason, reason);
        assert_eq!(
            end.dead_letter.is_some(),
            reason == StopReason::AttemptsExhausted
        );
        assert_eq!(*harness.scene.ports.model.calls.lock(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_does_not_answer_delays_no_preparation() {
    let delivery = FakeDelivery::unanswered();
    let done = with_heartbeat(LEASE / 3, || delivery.progress(), async {
        tokio::time::sleep(LEASE).await; // paused time
        7
    });
    assert_eq!(done.await, 7);
}

fn calling(turns: Vec<Turn>) -> DeliveryHarness {
    DeliveryHarness::opening(Scene::new(Strategy::NativeThinking, 5, turns))
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_model_is_unavailable_is_delayed_longer_each_time_and_not_counted() {
    let harness = calling(vec![Turn::Unavailable]);
    for _ in 0..5 {
        *harness.sessions.dispositions.lock() = vec![Disposition::Opened];
        *harness.sessions.claim.lock() = Claim::Taken(harness.claimed());
        harness.deliver(b"x").await;
    }
    let delays = harness.delivery.delays();
    let bounds = [
        (5.0, 7.5),
        (5.0, 15.0),
        (10.0, 30.0),
        (20.0, 60.0),
        (40.0, 90.0),
    ];
    for (delay, (least, most)) in delays.iter().zip(bounds) {
        assert!((least..=most).contains(&delay.as_secs_f64()), "{delays:?}");
    }
    assert_eq!(
        harness
            .sessions
            .asked()
            .iter()
            .filter(|asked| *asked == "release")
            .count(),
        5
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ended_in_between_waits_for_its_model_no_longer_than_a_new_one() {
    let harness = calling(vec![Turn::Unavailable]);
    for cancel_requested in [false, false, false, true, false] {
        *harness.sessions.dispositions.lock() = vec![Disposition::Opened];
        *harness.sessions.claim.lock() = Claim::Taken(Claimed {
            cancel_requested,
            ..harness.claimed()
        });
        harness.deliver(b"x").await;
    }
    let delays = harness.delivery.delays();
    let [.., before, after] = delays.as_slice() else {
        panic!("{delays:?}")
    };
    assert!(
        *before >= Duration::from_secs(10) && *after <= Duration::from_millis(7500),
        "{delays:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn while_leases_cannot_be_renewed_a_call_is_finished_and_none_begins() {
    let harness = calling(vec![Turn::Slowly(25, "look", vec![("c1", "k8s.get")])]);
    *harness.sessions.renewal.lock() = None;
    let renewing = LeaseRenewal(Arc::clone(&harness.dispatcher)).run(CancellationToken::new());
    tokio::select! {
        biased;
        () = renewing => {}
        () = harness.deliver(b"x") => {}
    }
    assert_eq!(
        harness.outcome(),
        (
            words(&["receive 7", "join", "open", "release"]),
            words(&["nak later"])
        )
    );
    assert_eq!(*harness.scene.ports.model.calls.lock(), 1);
    assert!(
        harness.scene.ports.tools.calls.lock().is_empty(),
        "no tool call begins"
    );
    assert!(
        harness
            .scene
            .journal()
            .iter()
            .any(|entry| format!("{entry:?}").contains("look")),
        "the answer is kept"
    );
    let grace = harness.dispatcher.outages.grace(LEASE);
    assert_eq!(grace.as_secs(), 25, "no owner died in this time: {grace:?}");
}

#[tokio::test(start_paused = true)]
async fn a_drain_lets_the_call_finish_for_a_while_and_a_second_signal_does_not() {
    for (aborted, waited) in [(false, 45), (true, 0)] {
        let harness = calling(vec![Turn::NeverAnswers]);
        *harness.sessions.cancels.lock() = None;
        let began = Instant::now();
        let signals = async {
            crate::testing::delivery::until(|| *harness.scene.ports.model.calls.lock() == 1).await;
            harness.dispatcher.shutdown.drain.cancel();
            if aborted {
                harness.dispatcher.shutdown.abort.cancel();
            }
        };
        tokio::join!(harness.deliver(b"x"), signals);
        assert_eq!(
            harness.outcome(),
            (
                words(&["receive 7", "join", "open", "release"]),
                words(&["nak now"])
            )
        );
        assert_eq!(began.elapsed().as_secs(), waited);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_stuck_in_a_step_gets_no_renewal_or_heartbeat_and_loses_its_lease() {
    let harness = DeliveryHarness::new(vec![], vec![], Claim::Unknown, SETTLED);
    let (control, _registered) = harness.insert_run(harness.delivery.clone());
    let renewing = LeaseRenewal(Arc::clone(&harness.dispatcher)).run(CancellationToken::new());
    let began = Instant::now();
    let stuck = control.within(Duration::from_secs(25), control.lost());
    tokio::select! {
        () = renewing => {}
        () = stuck => {}
    }
    let renewed: Vec<u64> = harness
        .sessions
        .renewed
        .lock()
        .iter()
        .map(|(at, _)| (*at - began).as_secs())
        .collect();
    assert_eq!(renewed, [0, 10, 20, 30], "25 s and a margin of 10 s");
    assert_eq!(
        harness.delivery.acknowledgements().len(),
        renewed.len(),
        "a heartbeat goes with each renewal and not without"
    );
    assert_eq!(
        began.elapsed().as_secs(),
        70,
        "a lease later the run is stopped"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stuck_run_whose_lease_is_lost_frees_its_slot() {
    let harness = calling(vec![]);
    let taken = async {
        crate::testing::delivery::until(|| {
            harness.dispatcher.runs.get(harness.scene.session).is_some()
        })
        .await;
        harness
            .dispatcher
            .runs
            .get(harness.scene.session)
            .unwrap()
            .control
            .lose();
    };
    // A disk that never answers its first write.
    harness.scene.disk().death = crate::testing::Death::Before(1);
    tokio::join!(harness.deliver(b"x"), taken);
    assert_eq!(
        harness.outcome(),
        (words(&["receive 7", "join", "open"]), words(&[]))
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_call_breaks_the_llm_service_is_given_up_after_counted_releases() {
    let harness = calling(vec![Turn::Breaks]);
    let mut deaths = 0;
    for _ in 0..7 {
        *harness.sessions.dispositions.lock() = vec![Disposition::Opened];
        *harness.sessions.claim.lock() = Claim::Taken(Claimed {
            attempts: deaths,
            ..harness.claimed()
        });
        harness.deliver(b"x").await;
        deaths += u32::from(
            harness
                .sessions
                .asked()
                .last()
                .is_some_and(|asked| asked == "release counted"),
        );
    }
    let asked = harness.sessions.asked();
    let released: Vec<&str> = asked
        .iter()
        .map(String::as_str)
        .filter(|asked| asked.starts_with("release"))
        .collect();
    let free = "release";
    let counted = "release counted";
    assert_eq!(
        released,
        [free, free, counted, counted, counted, counted],
        "two are free, the fifth attempt is the end"
    );
    let end = harness.scene.disk().end.clone().unwrap();
    assert_eq!(
        (end.status, end.reason),
        (RunStatus::Failed, StopReason::AttemptsExhausted)
    );
    assert_eq!(end.dead_letter, Some(DeadReason::AttemptsExhausted));
    let why =
        "given up: llm service broke off before it answered: connection reset, again and again";
    assert_eq!(end.error.as_deref(), Some(why));
    assert_eq!(
        harness
            .delivery
            .acknowledgements()
            .last()
            .map(String::as_str),
        Some("ack")
    );
}
