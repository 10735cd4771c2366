//! Tests of admission: every way from an undecided alert to its disposition, and the attempts that count.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::ports::*;
use crate::testing::FakeDelivery;
use crate::testing::delivery::{DeliveryHarness, LEASE, NEW, SETTLED, words};
use tarsy_core::ids::SessionId;

fn other() -> SessionId {
    SessionId(Uuid::from_u128(9))
}

fn harness(dispositions: Vec<Disposition>, opened: Vec<Opened>) -> DeliveryHarness {
    DeliveryHarness::new(dispositions, opened, Claim::Unknown, SETTLED)
}

#[tokio::test(start_paused = true)]
async fn an_alert_that_killed_every_worker_preparing_it_is_a_dead_letter_unprepared() {
    let poison = harness(vec![Disposition::Undecided { attempts: 6 }], vec![]);
    poison.deliver(b"panic").await;
    let asked = words(&[
        "receive 7",
        "give_up 7 attempts_exhausted: 5 workers died while they read it",
        "settled",
    ]);
    assert_eq!(poison.outcome(), (asked, words(&["ack"])));

    let suspect = Disposition::Undecided { attempts: 5 };
    let last_chance = harness(
        vec![suspect.clone(), suspect],
        vec![Opened::NotInvestigated],
    );
    last_chance.deliver(b"x").await;
    assert_eq!(
        last_chance.outcome(),
        (
            words(&[
                "receive 7",
                "refund_attempt 7",
                "receive 7",
                "join",
                "open",
                "settled"
            ]),
            words(&["ack"])
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_suspected_alert_is_prepared_when_no_run_is_at_risk_of_losing_an_attempt() {
    let suspect = || {
        vec![
            Disposition::Undecided { attempts: 2 },
            Disposition::Undecided { attempts: 2 },
        ]
    };
    let waits = harness(suspect(), vec![]);
    let runs = &waits.dispatcher.runs;
    let (control, registered) = waits.insert_run(FakeDelivery::unanswered());
    control.resumed_after_death();
    assert!(
        tokio::time::timeout(LEASE, runs.exclusive()).await.is_err(),
        "an owner of the run has died before"
    );
    control.progressed();
    let exclusive = runs.exclusive().await;
    assert!(
        tokio::time::timeout(LEASE, runs.shared()).await.is_err(),
        "nothing begins in the isolation"
    );
    drop((exclusive, registered));

    let shared = waits.dispatcher.runs.shared().await;
    waits.deliver(b"x").await;
    let (asked, sent) = waits.outcome();
    assert_eq!(
        (asked, sent.last().map(String::as_str)),
        (words(&["receive 7", "refund_attempt 7"]), Some("nak later"))
    );
    drop(shared);
    let drains = harness(suspect(), vec![]);
    drains.dispatcher.shutdown.drain.cancel();
    drains.deliver(b"x").await;
    assert_eq!(
        drains.outcome(),
        (
            words(&["receive 7", "refund_attempt 7"]),
            words(&["nak now"])
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_an_alert_is_read_counts_and_the_worker_lives() {
    let harness = harness(vec![NEW], vec![]);
    harness.deliver(b"panic").await;
    assert_eq!(
        harness.outcome(),
        (words(&["receive 7"]), words(&["nak later"]))
    );
    assert!(
        harness.delivery.delays()[0] >= LEASE,
        "as long as after a death"
    );
}

#[tokio::test(start_paused = true)]
async fn an_attempt_without_death_or_decision_is_refunded() {
    let three = words(&[
        "receive 7",
        "join",
        "open",
        "refund_attempt 7",
        "receive 7",
        "join",
        "open",
        "refund_attempt 7",
        "receive 7",
        "join",
        "open",
        "refund_attempt 7",
    ]);
    let once = words(&["receive 7", "join", "open", "refund_attempt 7"]);
    let table = [
        ("races", vec![NEW; 3], vec![Opened::Raced; 3], None, three),
        (
            "a session that is being cancelled",
            vec![NEW],
            vec![Opened::TargetCancelling(other())],
            None,
            once.clone(),
        ),
        ("store unavailable", vec![NEW], vec![], Some("open"), once),
    ];
    for (what, dispositions, opened, unavailable, asked) in table {
        let harness = harness(dispositions, opened);
        *harness.sessions.unavailable.lock() = unavailable;
        harness.deliver(b"x").await;
        assert_eq!(harness.outcome(), (asked, words(&["nak later"])), "{what}");
    }
    let not_given_up = harness(vec![NEW], vec![]);
    *not_given_up.sessions.unavailable.lock() = Some("give_up");
    not_given_up.deliver(&[0xff]).await;
    let asked = words(&[
        "receive 7",
        "give_up 7 undecodable: no text",
        "refund_attempt 7",
    ]);
    assert_eq!(not_given_up.outcome(), (asked, words(&["nak later"])));
}

#[tokio::test(start_paused = true)]
async fn a_drain_interrupts_preparation_and_returns_the_message_at_once() {
    let harness = harness(vec![NEW], vec![]);
    let signal = async {
        tokio::time::sleep(Duration::from_secs(1)).await; // paused time
        harness.dispatcher.shutdown.drain.cancel();
    };
    tokio::join!(harness.deliver(b"hang"), signal);
    assert_eq!(
        harness.outcome(),
        (
            words(&["receive 7", "refund_attempt 7"]),
            words(&["nak now"])
        )
    );
}

#[tokio::test]
async fn a_draining_worker_claims_nothing_that_is_open() {
    let harness = harness(vec![Disposition::Opened], vec![]);
    harness.dispatcher.shutdown.drain.cancel();
    harness.deliver(b"x").await;
    assert_eq!(
        harness.outcome(),
        (words(&["receive 7"]), words(&["nak now"]))
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_preparation_sends_heartbeats_and_an_endless_one_is_refunded() {
    let slow = harness(vec![NEW], vec![Opened::NotInvestigated]);
    slow.deliver(b"slow").await;
    let sent = words(&["progress", "progress", "progress", "progress", "ack"]);
    assert_eq!(
        slow.outcome(),
        (words(&["receive 7", "join", "open", "settled"]), sent)
    );

    let hangs = harness(vec![NEW], vec![]);
    let began = Instant::now();
    hangs.deliver(b"hang").await;
    assert_eq!(began.elapsed(), 2 * LEASE);
    let sent = words(&[
        "progress",
        "progress",
        "progress",
        "progress",
        "progress",
        "nak later",
    ]);
    assert_eq!(
        hangs.outcome(),
        (words(&["receive 7", "refund_attempt 7"]), sent)
    );
}

#[tokio::test]
async fn an_alert_that_the_cooldown_covers_is_settled_and_acknowledged() {
    let harness = harness(vec![NEW], vec![Opened::CoveredByCooldown(other())]);
    harness.deliver(b"x").await;
    assert_eq!(
        harness.outcome(),
        (
            words(&["receive 7", "join", "open", "settled"]),
            words(&["ack"])
        )
    );
    let requests = harness.sessions.requests.lock();
    assert_eq!(
        (
            requests[0].cooldown,
            requests[0].force,
            requests[0].retry_of
        ),
        (Duration::from_hours(1), false, None)
    );
}

#[tokio::test]
async fn a_producer_can_ask_for_a_new_investigation_of_an_old_one() {
    let harness = harness(vec![NEW], vec![Opened::Joined(other())]);
    harness.deliver(b"forced").await;
    assert_eq!(
        harness.outcome(),
        (
            words(&["receive 7", "join", "open", "settled"]),
            words(&["ack"])
        )
    );
    let requests = harness.sessions.requests.lock();
    assert_eq!(
        (requests[0].force, requests[0].retry_of),
        (true, Some(SessionId(Uuid::from_u128(3))))
    );
}

#[tokio::test]
async fn an_alert_whose_preparation_finds_the_store_unavailable_is_not_counted() {
    let harness = harness(vec![NEW], vec![]);
    harness.deliver(b"unavailable").await;
    assert_eq!(
        harness.outcome(),
        (
            words(&["receive 7", "refund_attempt 7"]),
            words(&["nak later"])
        )
    );
}

#[tokio::test(start_paused = true)]
async fn an_alert_that_joins_a_session_is_placed_before_it_is_planned() {
    let harness = harness(vec![NEW], vec![]);
    *harness.sessions.joined.lock() = Some(Opened::Joined(other()));
    let began = Instant::now();
    harness.deliver(b"busy").await;
    assert_eq!(
        harness.outcome(),
        (words(&["receive 7", "join", "settled"]), words(&["ack"]))
    );
    assert_eq!(
        began.elapsed(),
        Duration::ZERO,
        "its plan would never be made"
    );
}

#[tokio::test(start_paused = true)]
async fn an_alert_waits_a_minute_for_its_tools_and_is_then_investigated_without() {
    let waits = harness(vec![NEW], vec![]);
    *waits.sessions.waited.lock() = Duration::from_secs(59);
    waits.deliver(b"toolless").await;
    let asked = words(&["receive 7", "join", "waited 7", "refund_attempt 7"]);
    assert_eq!(waits.outcome(), (asked, words(&["nak later"])));
    assert!(waits.delivery.delays()[0] >= Duration::from_secs(5));

    let goes_on = harness(vec![NEW], vec![Opened::NotInvestigated]);
    *goes_on.sessions.waited.lock() = Duration::from_secs(60);
    goes_on.deliver(b"toolless").await;
    let asked = words(&["receive 7", "join", "waited 7", "open", "settled"]);
    assert_eq!(goes_on.outcome(), (asked, words(&["ack"])));
}

#[tokio::test(start_paused = true)]
async fn an_alert_waits_for_a_required_tool_server_without_a_limit_and_without_an_attempt() {
    let waits = harness(vec![NEW], vec![]);
    *waits.sessions.waited.lock() = Duration::from_secs(3_600);
    waits.deliver(b"required").await;
    assert_eq!(
        waits.outcome(),
        (
            words(&["receive 7", "join", "refund_attempt 7"]),
            words(&["nak later"])
        )
    );
}

#[tokio::test(start_paused = true)]
async fn an_alert_that_the_store_refuses_is_counted_and_given_up_at_its_third_reading() {
    let first = harness(vec![NEW], vec![]);
    *first.sessions.refuses.lock() = Some("open");
    first.deliver(b"x").await;
    assert_eq!(
        first.outcome(),
        (words(&["receive 7", "join", "open"]), words(&["nak later"]))
    );

    let third = harness(vec![Disposition::Undecided { attempts: 3 }; 2], vec![]);
    *third.sessions.refuses.lock() = Some("open");
    third.deliver(b"x").await;
    let asked = [
        "receive 7",
        "refund_attempt 7",
        "receive 7",
        "join",
        "open",
        "give_up 7 attempts_exhausted: the store refused it: too long",
        "settled",
    ];
    assert_eq!(third.outcome(), (words(&asked), words(&["ack"])));
}

#[tokio::test(start_paused = true)]
async fn an_alert_that_alone_takes_the_store_too_long_is_given_up_at_the_third_time() {
    let slow = harness(vec![NEW; 5], vec![]);
    *slow.sessions.too_slow.lock() = Some("open");
    let returned = words(&["receive 7", "join", "open", "refund_attempt 7"]);
    // While it takes too long for every alert, no alert is to blame.
    for others in [false, false, true, true, true] {
        tokio::time::advance(Duration::from_secs(1)).await;
        if others {
            slow.dispatcher
                .backoff
                .admitted(SessionId(Uuid::from_u128(8)));
        }
        slow.deliver(b"x").await;
    }
    let given_up = "give_up 7 attempts_exhausted: the store takes too long for it, and not for others: statement timeout";
    let asked = [vec![returned; 5].concat(), words(&[given_up, "settled"])].concat();
    assert_eq!(
        slow.outcome(),
        (
            asked,
            words(&["nak later", "nak later", "nak later", "nak later", "ack"])
        )
    );
}

#[tokio::test(start_paused = true)]
async fn the_other_alerts_of_a_body_are_published_before_it_has_its_disposition() {
    let several = harness(vec![NEW], vec![Opened::NotInvestigated]);
    several.deliver(b"several").await;
    assert_eq!(
        several.outcome(),
        (
            words(&["receive 7", "join", "open", "settled"]),
            words(&["ack"])
        )
    );
    let first = SessionId(Uuid::from_u128(7));
    assert_eq!(
        *several.dispatcher.ports.queue.parts.lock(),
        [(first, 1), (first, 2)]
    );

    let unavailable = harness(vec![NEW], vec![]);
    *unavailable.dispatcher.ports.queue.holds.lock() =
        Err(BrokerUnavailable("no answer".to_owned()));
    unavailable.deliver(b"several").await;
    assert_eq!(
        unavailable.outcome(),
        (
            words(&["receive 7", "refund_attempt 7"]),
            words(&["nak later"])
        )
    );
}
