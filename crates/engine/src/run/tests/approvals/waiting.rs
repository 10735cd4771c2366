//! Tests of the wait of one execution: what ends it, and what it costs.

use tokio_util::sync::CancellationToken;

use super::*;
use crate::ports::RunStatus;
use crate::run::control::ReleaseReason;
use crate::run::tests::draining;
use tarsy_core::alert::AlertStatus;
use tarsy_core::alert_update::AlertUpdate;
use tarsy_core::execution::entry::StopReason;

fn waits() -> Scene {
    let turns = vec![
        Turn::Says("", vec![("w", "k8s.restart")]),
        Turn::Says("Cause: y", vec![]),
    ];
    scene(Strategy::NativeThinking, turns)
}

#[tokio::test(start_paused = true)]
async fn a_session_that_only_waits_is_parked_and_its_lease_is_gone() {
    let scene = waits();
    assert_eq!(run(&scene, control()).await, Err(Interrupted::Parked));
    assert_eq!(scene.disk().epoch, 2);
    assert_eq!(scene.disk().outcome_reads, 1);
    let writes = scene.disk().writes;
    // Woken without a decision, it parks again and writes nothing else.
    assert_eq!(run(&scene, control()).await, Err(Interrupted::Parked));
    assert_eq!(scene.disk().writes, writes + 1);
    assert_eq!(sent(&scene, "w"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_decision_is_not_lost_between_a_read_and_a_park() {
    let scene = waits();
    scene.disk().decides_before_park = Some(("w".to_owned(), ApprovalOutcome::Approved));
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(sent(&scene, "w"), 1);
    assert_eq!(
        outcomes(&scene.disk()),
        [("w".to_owned(), ApprovalOutcome::Approved)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_resolution_is_not_lost_between_a_read_and_a_park() {
    let scene = waits();
    scene.disk().is_resolved_before_park = true;
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(
        outcomes(&scene.disk()),
        [("w".to_owned(), ApprovalOutcome::Withdrawn)]
    );
    assert_eq!(sent(&scene, "w"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_decision_in_the_last_moment_is_not_overwritten_by_the_expiry() {
    let scene = waits();
    assert_eq!(run(&scene, control()).await, Err(Interrupted::Parked));
    tokio::time::advance(TIMEOUT).await;
    // The statement of a vote had begun before the expiry, and commits between the read and the checkpoint.
    scene.disk().decides_before_append = Some(("w".to_owned(), ApprovalOutcome::Denied));
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(
        outcomes(&scene.disk()),
        [("w".to_owned(), ApprovalOutcome::Denied)]
    );
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_a_freeze_overtakes_is_not_started() {
    let scene = waits();
    assert_eq!(run(&scene, control()).await, Err(Interrupted::Parked));
    scene.disk().decide("w", ApprovalOutcome::Approved, None);
    scene.disk().freezes_before_append = true;
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(
        outcomes(&scene.disk()),
        [("w".to_owned(), ApprovalOutcome::Frozen)]
    );
    assert_eq!(sent(&scene, "w"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_resolved_alert_withdraws_a_request_unless_its_policy_keeps_it() {
    for on_resolved in [WhenResolved::Withdraw, WhenResolved::Keep] {
        let policy = ApprovalRule {
            on_resolved,
            ..rule()
        };
        let turns = vec![
            Turn::Says("", vec![("w", "k8s.restart")]),
            Turn::Says("Cause: y", vec![]),
        ];
        let scene = scene_with(policy, Strategy::NativeThinking, turns);
        assert_eq!(run(&scene, control()).await, Err(Interrupted::Parked));
        scene.disk().updates = vec![AlertUpdate {
            status: Some(AlertStatus::Resolved),
            ..AlertUpdate::default()
        }];
        let ended = run(&scene, control()).await;
        if on_resolved == WhenResolved::Withdraw {
            assert_eq!(ended, Ok(()));
            assert_eq!(
                outcomes(&scene.disk()),
                [("w".to_owned(), ApprovalOutcome::Withdrawn)]
            );
            assert!(result(&scene, "w").contains("the alert was resolved"));
        } else {
            assert_eq!(ended, Err(Interrupted::Parked));
            assert_eq!(outcomes(&scene.disk()), []);
        }
        assert_eq!(sent(&scene, "w"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_that_resolves_nothing_leaves_the_session_parked() {
    let scene = waits();
    assert_eq!(run(&scene, control()).await, Err(Interrupted::Parked));
    scene.disk().updates = vec![AlertUpdate::default()];
    assert_eq!(run(&scene, control()).await, Err(Interrupted::Parked));
    assert_eq!(outcomes(&scene.disk()), []);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_session_ends_without_the_call_that_waits() {
    let scene = waits();
    assert_eq!(run(&scene, control()).await, Err(Interrupted::Parked));
    scene.disk().decide("w", ApprovalOutcome::Approved, None);
    let cancelled = control();
    cancelled.cancel();
    assert_eq!(run(&scene, cancelled).await, Ok(()));
    assert_eq!(sent(&scene, "w"), 0);
    let end = scene.disk().end.clone().unwrap();
    assert_eq!(
        (end.status, end.reason),
        (RunStatus::Cancelled, StopReason::Cancelled)
    );
}

#[tokio::test(start_paused = true)]
async fn a_draining_worker_starts_no_approved_call_and_the_next_one_does() {
    let scene = waits();
    assert_eq!(run(&scene, control()).await, Err(Interrupted::Parked));
    scene.disk().decide("w", ApprovalOutcome::Approved, None);
    let drain = CancellationToken::new();
    drain.cancel();
    assert_eq!(
        run(&scene, draining(drain)).await,
        Err(Interrupted::Release(ReleaseReason::Drain))
    );
    assert_eq!(outcomes(&scene.disk()), []);
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(sent(&scene, "w"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_drain_does_not_stop_a_call_whose_start_is_committed() {
    let scene = waits();
    assert_eq!(run(&scene, control()).await, Err(Interrupted::Parked));
    scene.disk().decide("w", ApprovalOutcome::Approved, None);
    let start = scene.disk().writes + 1;
    scene.disk().death = Death::Hold(start);
    let drain = CancellationToken::new();
    let drains = async {
        scene.ports.journal.died.notified().await;
        drain.cancel();
        scene.ports.journal.go_on.notify_one();
    };
    let running = run(&scene, draining(drain.clone()));
    let ended = futures_util::future::join(running, drains).await.0;
    assert_eq!(ended, Err(Interrupted::Release(ReleaseReason::Drain)));
    assert_eq!(sent(&scene, "w"), 1);
    assert!(result(&scene, "w").contains("says hello"));
}
