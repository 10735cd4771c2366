//! Tests of sessions that are inherited from a dead worker.

use std::time::Duration;

use uuid::Uuid;

use crate::ports::*;
use crate::testing::delivery::{DeliveryHarness, LEASE, SETTLED, words};
use tarsy_core::ids::WorkerId;

const DEAD: WorkerId = WorkerId(Uuid::from_u128(5));

fn session(harness: &DeliveryHarness) -> Inherited {
    Inherited {
        session_id: harness.scene.session,
        trace: None,
    }
}

async fn inherit(harness: &DeliveryHarness) {
    harness
        .dispatcher
        .inherit(session(harness), vec![DEAD])
        .await;
    harness.dispatcher.settler.finished().await;
}

#[tokio::test]
async fn an_inherited_session_runs_and_is_settled_without_a_message() {
    let harness = DeliveryHarness::new(vec![], vec![], Claim::Unknown, SETTLED);
    *harness.sessions.claim.lock() = Claim::Taken(harness.claimed());
    inherit(&harness).await;
    assert_eq!(
        harness.outcome(),
        (
            words(&["claim 7 without a job after 5", "settled"]),
            words(&[])
        )
    );
    assert_eq!(
        harness.scene.disk().end.as_ref().map(|end| end.status),
        Some(RunStatus::Completed)
    );
    assert_eq!(harness.dispatcher.runs.sessions(), []);
}

#[tokio::test(start_paused = true)]
async fn an_inherited_session_is_released_without_a_message() {
    let harness = DeliveryHarness::new(vec![], vec![], Claim::Unknown, SETTLED);
    *harness.sessions.claim.lock() = Claim::Taken(harness.claimed());
    harness.dispatcher.shutdown.abort.cancel();
    let drain = harness.dispatcher.shutdown.drain.clone();
    *harness.sessions.claim_takes.lock() = Duration::from_millis(1);
    tokio::join!(inherit(&harness), async { drain.cancel() });
    assert_eq!(
        harness.outcome(),
        (
            words(&["claim 7 without a job after 5", "release"]),
            words(&[])
        )
    );
}

#[tokio::test]
async fn a_session_that_another_worker_has_or_that_has_ended_is_not_inherited() {
    let others = [
        Claim::Busy(LEASE),
        Claim::Ended { settled: false },
        Claim::Incompatible,
        Claim::Unknown,
    ];
    for claim in others {
        let harness = DeliveryHarness::new(vec![], vec![], claim, SETTLED);
        inherit(&harness).await;
        assert_eq!(
            harness.outcome(),
            (words(&["claim 7 without a job after 5"]), words(&[]))
        );
    }
    let draining = DeliveryHarness::new(vec![], vec![], Claim::Unknown, SETTLED);
    draining.dispatcher.shutdown.drain.cancel();
    inherit(&draining).await;
    assert_eq!(draining.outcome(), (words(&[]), words(&[])));
}

#[tokio::test]
async fn a_worker_without_predecessors_asks_nothing_and_inherits_no_more_than_its_slots() {
    let harness = DeliveryHarness::new(vec![], vec![], Claim::Unknown, SETTLED);
    *harness.sessions.inherited.lock() = vec![session(&harness); 3];
    let dispatcher = &harness.dispatcher;
    assert_eq!(dispatcher.inherited(&[], 4).await, []);
    assert_eq!(harness.sessions.asked(), words(&[]));
    assert_eq!(
        dispatcher.inherited(&[DEAD], 2).await,
        [session(&harness), session(&harness)]
    );
    *harness.sessions.unavailable.lock() = Some("inherited");
    assert_eq!(
        dispatcher.inherited(&[DEAD], 2).await,
        [],
        "then their leases expire"
    );
}

#[tokio::test(start_paused = true)]
async fn a_worker_inherits_when_the_llm_service_serves_within_a_lease() {
    let harness = DeliveryHarness::new(vec![], vec![], Claim::Unknown, SETTLED);
    let dispatcher = &harness.dispatcher;
    let serving = &harness.scene.ports.model.serving;
    assert!(dispatcher.may_inherit().await);
    *serving.lock() = Some(false);
    let returns = async {
        tokio::time::sleep(LEASE / 2).await; // paused time
        *serving.lock() = Some(true);
    };
    assert!(tokio::join!(dispatcher.may_inherit(), returns).0);
    *serving.lock() = Some(false);
    assert!(
        !dispatcher.may_inherit().await,
        "it does not serve for a lease"
    );
    harness.dispatcher.shutdown.drain.cancel();
    *serving.lock() = Some(true);
    assert!(!dispatcher.may_inherit().await, "the worker drains");
}
