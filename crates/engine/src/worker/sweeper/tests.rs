//! Tests of the sweeper: each kind of orphaned row, and its repair.

use serde_json::json;

use crate::ports::{BrokerUnavailable, Pruned, SettlementStatus, Worded};
use crate::testing::delivery::{DeliveryHarness, SETTLED, until, words};
use crate::testing::written::Written;
use crate::testing::{FakeDelivery, Fakes};
use crate::worker::sweeper::*;
use tarsy_core::execution::entry::StopReason;
use tarsy_core::intake::headers::SESSION_ID;

fn sweeper(harness: &DeliveryHarness, retention: Retention) -> Sweeper<Fakes> {
    Sweeper::new(&harness.dispatcher, Duration::from_secs(15), retention)
}

/// The statements after the sweep of these rows, and how many alerts were queued again.
async fn swept(
    harness: &DeliveryHarness,
    queue: &Queued,
    found: Vec<Swept>,
) -> (Vec<String>, usize) {
    *harness.sessions.swept.lock() = vec![found];
    let queue_port = &harness.scene.ports.queue;
    queue_port.holds.lock().clone_from(queue);
    let mut sweeper = sweeper(harness, Retention::default());
    sweeper.sweep().await;
    assert!(!sweeper.store_unavailable);
    let requeued = queue_port.requeued.lock().len();
    (harness.sessions.asked().split_off(1), requeued)
}

fn harness(claim: Claim) -> DeliveryHarness {
    DeliveryHarness::new(vec![], vec![], claim, SETTLED)
}

fn any() -> DeliveryHarness {
    harness(Claim::Unknown)
}

fn idle(harness: &DeliveryHarness) -> IdleAlert {
    IdleAlert {
        alert_id: harness.scene.session,
        undecided: true,
        subject: "tarsy.alerts.normal".to_owned(),
        headers: json!({}),
        body: Some(b"disk full".to_vec()),
        stream_sequence: 3,
        woken_by: None,
    }
}

/// Whether the queue has the alert's message.
type Queued = Result<bool, BrokerUnavailable>;

const HELD: Queued = Ok(true);
const GONE: Queued = Ok(false);

#[tokio::test]
async fn a_session_past_its_deadline_is_ended_and_settled_without_a_job() {
    for (cancel_requested, reason) in [(false, StopReason::Deadline), (true, StopReason::Cancelled)]
    {
        let claimed = Claimed {
            remaining: Duration::ZERO,
            cancel_requested,
            ..any().claimed()
        };
        let harness = harness(Claim::Taken(claimed));
        let found = vec![Swept::Overdue(harness.scene.session)];
        let asked = swept(&harness, &HELD, found).await;
        assert_eq!(asked, (words(&["claim 7 without a job", "settled"]), 0));
        assert_eq!(
            harness.scene.disk().end.as_ref().map(|end| end.reason),
            Some(reason)
        );
    }
}

#[tokio::test]
async fn a_sweep_takes_nothing_from_a_faster_worker() {
    let busy = harness(Claim::Busy(Duration::from_secs(5)));
    let found = vec![Swept::Overdue(busy.scene.session)];
    assert_eq!(
        swept(&busy, &HELD, found).await.0,
        words(&["claim 7 without a job"])
    );

    let over = harness(Claim::Ended { settled: false });
    let found = vec![Swept::Overdue(over.scene.session)];
    assert_eq!(
        swept(&over, &HELD, found).await.0,
        words(&["claim 7 without a job", "settled"])
    );

    let standing = SettlementStatus {
        over: false,
        ..SETTLED
    };
    let early = DeliveryHarness::new(vec![], vec![], Claim::Taken(any().claimed()), standing);
    let found = vec![Swept::Overdue(early.scene.session)];
    assert_eq!(
        swept(&early, &HELD, found).await.0,
        words(&["claim 7 without a job", "release"])
    );
    assert!(early.scene.disk().end.is_none());
}

#[tokio::test]
async fn an_alert_whose_job_is_gone_is_queued_again_and_one_whose_job_is_there_is_left() {
    let held = any();
    assert_eq!(
        swept(&held, &HELD, vec![Swept::Idle(idle(&held))]).await,
        (vec![], 0)
    );
    let gone = any();
    let asked = swept(&gone, &GONE, vec![Swept::Idle(idle(&gone))]).await;
    assert_eq!(asked, (words(&["requeued 7 as 42"]), 1));
    let open = any();
    let without_body = IdleAlert {
        undecided: false,
        body: None,
        ..idle(&open)
    };
    assert_eq!(
        swept(&open, &GONE, vec![Swept::Idle(without_body)]).await,
        (vec![], 0)
    );
}

#[tokio::test]
async fn an_expiry_and_a_resolution_are_no_lost_messages_and_a_decision_without_one_is() {
    for (woken_by, level, words) in [
        (
            Some(WakeCause::Expiry),
            "INFO",
            "session woken: a request for an approval has expired",
        ),
        (
            Some(WakeCause::Resolved),
            "INFO",
            "session woken: its alert was resolved",
        ),
        (
            Some(WakeCause::Decision),
            "WARN",
            "lost message queued again",
        ),
        (None, "WARN", "lost message queued again"),
    ] {
        let harness = any();
        let alert = IdleAlert {
            undecided: false,
            woken_by,
            ..idle(&harness)
        };
        let (written, _guard) = Written::begin();
        assert_eq!(
            swept(&harness, &GONE, vec![Swept::Idle(alert)]).await.1,
            1,
            "{woken_by:?}"
        );
        let lines = written.lines("session_id=");
        assert_eq!(lines.len(), 1, "{lines:?}");
        for part in [level, words] {
            assert!(lines[0].contains(part), "{part}: {lines:?}");
        }
    }
}

#[tokio::test]
async fn a_session_that_runs_here_is_not_queued_again() {
    let harness = any();
    let _run = harness.insert_run(FakeDelivery::default());
    assert_eq!(
        swept(&harness, &GONE, vec![Swept::Idle(idle(&harness))]).await,
        (vec![], 0)
    );
}

#[tokio::test]
async fn an_orphaned_alert_that_the_bus_found_faulty_is_given_up() {
    let chosen = "019f0000-0000-7000-8000-000000000001";
    let used = format!("give_up 7 used_id: id {chosen} came before, with another body");
    let cases = [
        (
            json!({SESSION_ID: chosen}),
            Some(b"x".to_vec()),
            used.as_str(),
        ),
        (
            json!({SESSION_ID: "42"}),
            Some(b"x".to_vec()),
            "give_up 7 invalid_id: Tarsy-Session-Id holds no UUIDv7: 42",
        ),
        (
            json!({}),
            None,
            "give_up 7 too_large: the body is larger than what is taken",
        ),
    ];
    for (headers, body, given_up) in cases {
        let harness = any();
        let alert = IdleAlert {
            headers,
            body,
            ..idle(&harness)
        };
        let asked = swept(&harness, &HELD, vec![Swept::Idle(alert)]).await;
        assert_eq!(asked, (words(&[given_up, "settled"]), 0));
    }
    let sound = any();
    let id = SessionId::parse(chosen).unwrap();
    let alert = IdleAlert {
        alert_id: id,
        headers: json!({SESSION_ID: chosen}),
        ..idle(&sound)
    };
    assert_eq!(
        swept(&sound, &HELD, vec![Swept::Idle(alert)]).await,
        (vec![], 0)
    );
}

#[tokio::test]
async fn an_unsettled_end_is_settled_and_twice_does_no_harm() {
    let harness = any();
    let id = harness.scene.session;
    let found = vec![Swept::Unsettled(id), Swept::Unsettled(id)];
    assert_eq!(
        swept(&harness, &HELD, found).await.0,
        words(&["settled", "settled"])
    );

    let claimed = Claimed {
        remaining: Duration::ZERO,
        ..any().claimed()
    };
    let ended = self::harness(Claim::Taken(claimed));
    let found = vec![Swept::Overdue(id)];
    swept(&ended, &HELD, found.clone()).await;
    // The fence refuses the second writer.
    ended.scene.disk().epoch += 1;
    swept(&ended, &HELD, found).await;
    assert_eq!(ended.scene.disk().events.len(), 1, "one end");
}

#[tokio::test]
async fn one_failed_repair_stops_no_other() {
    let harness = any();
    let broker = Err(BrokerUnavailable("no servers".to_owned()));
    let found = vec![
        Swept::Idle(idle(&harness)),
        Swept::Unsettled(harness.scene.session),
    ];
    assert_eq!(
        swept(&harness, &broker, found).await,
        (words(&["settled"]), 0)
    );
}

#[tokio::test(start_paused = true)]
async fn sweeps_go_on_after_an_outage_of_the_store_and_end_on_their_token() {
    let harness = any();
    *harness.sessions.unavailable.lock() = Some("sweep");
    let end = CancellationToken::new();
    let sweeping = tokio::spawn(sweeper(&harness, Retention::default()).run(end.clone()));
    until(|| harness.sessions.asked().len() == 3).await;
    *harness.sessions.unavailable.lock() = None;
    *harness.sessions.swept.lock() = vec![vec![Swept::Unsettled(harness.scene.session)]];
    until(|| harness.sessions.asked().contains(&"settled".to_owned())).await;
    let began = tokio::time::Instant::now();
    until(|| harness.sessions.asked().len() == 7).await;
    assert_eq!(began.elapsed().as_secs(), 30, "one every 15 s");
    end.cancel();
    sweeping.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_old_is_deleted_in_batches_and_only_when_an_age_is_configured() {
    let batch = || Pruned {
        rows: [("entries", 500)].into(),
    };
    for (retention, left) in [
        (Retention::default(), 3),
        (Retention::of_all(Duration::from_hours(1)), 0),
    ] {
        let harness = any();
        *harness.sessions.pruned.lock() = vec![batch(), batch(), batch()];
        let end = CancellationToken::new();
        let sweeper = sweeper(&harness, retention);
        let sweeping = tokio::spawn(sweeper.run(end.clone()));
        until(|| {
            harness
                .sessions
                .asked()
                .iter()
                .filter(|asked| *asked == "sweep")
                .count()
                == 3
        })
        .await;
        assert_eq!(harness.sessions.pruned.lock().len(), left);
        end.cancel();
        sweeping.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_to_delete_is_swept_all_the_same() {
    let harness = any();
    *harness.sessions.unavailable.lock() = Some("prune");
    let end = CancellationToken::new();
    let retention = Retention::of_all(Duration::from_hours(1));
    let sweeping = tokio::spawn(sweeper(&harness, retention).run(end.clone()));
    until(|| harness.sessions.asked().len() == 6).await;
    assert_eq!(
        harness.sessions.asked(),
        words(&["sweep", "prune", "sweep", "prune", "sweep", "prune"])
    );
    end.cancel();
    sweeping.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_sweep_gives_words_to_old_sessions_in_batches_until_all_have_them() {
    let harness = any();
    let batch = |is_all| Worded {
        sessions: 200,
        is_all,
    };
    let found = [vec![batch(false); 30], vec![batch(true); 3]].concat();
    *harness.sessions.worded.lock() = found;
    let end = CancellationToken::new();
    let sweeping = tokio::spawn(sweeper(&harness, Retention::default()).run(end.clone()));
    let left = || harness.sessions.worded.lock().len();
    // The first sweep has 20 batches, the second one the other ten and the last of all; each later one looks once.
    until(|| left() == 13).await;
    assert_eq!(harness.sessions.asked(), words(&["sweep"]));
    until(|| left() == 2).await;
    assert_eq!(harness.sessions.asked(), words(&["sweep", "sweep"]));
    until(|| left() == 1).await;
    assert_eq!(
        harness.sessions.asked(),
        words(&["sweep", "sweep", "sweep"])
    );
    end.cancel();
    sweeping.await.unwrap();
}
