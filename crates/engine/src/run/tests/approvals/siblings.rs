//! Tests of a stage in which one execution waits for people and another one works.

use std::sync::Arc;

use super::*;
use crate::run::control::ReleaseReason;
use crate::testing::delivery::until;
use tarsy_core::plan::AgentPlan;

/// Two agents: `waits` has one call that needs a person, `works` does these turns.
fn two_agents(works: Vec<Turn>) -> Scene {
    let turns = vec![
        Turn::Says("", vec![("w", "k8s.restart")]),
        Turn::Says("Cause: y", vec![]),
    ];
    let scene = scene(Strategy::NativeThinking, turns);
    let mut disk = scene.disk();
    let stage = &mut disk.record.plan.stages[0];
    let mut other = AgentPlan::clone(&stage.agents[0]);
    other.name = "works".to_owned();
    for provider in &mut other.providers {
        provider.model = "other".to_owned();
    }
    stage.agents.push(Arc::new(other));
    drop(disk);
    let others = ("other".to_owned(), works);
    scene.ports.model.others.lock().extend([others]);
    scene
}

fn works(secs: u64) -> Vec<Turn> {
    vec![Turn::Slowly(secs, "Cause: z", vec![])]
}

#[tokio::test(start_paused = true)]
async fn an_execution_waits_in_memory_while_another_works_and_then_the_session_parks() {
    let scene = two_agents(works(60));
    let began = tokio::time::Instant::now();
    assert_eq!(run(&scene, control()).await, Err(Interrupted::Parked));
    assert_eq!(
        began.elapsed().as_secs(),
        60,
        "when the other one has ended"
    );
    assert_eq!(scene.disk().outcome_reads, 2, "it read nothing in between");
    drive_woken(&scene).await;
    assert_eq!(sent(&scene, "w"), 1);
}

/// Approves the call, and runs the rest.
async fn drive_woken(scene: &Scene) {
    scene.disk().decide("w", ApprovalOutcome::Approved, None);
    assert_eq!(run(scene, control()).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_decision_is_noticed_with_the_next_renewal_while_another_works() {
    let scene = two_agents(works(100));
    let control = control();
    let votes = async {
        until(|| !scene.disk().requests.is_empty()).await;
        tokio::time::sleep(Duration::from_secs(5)).await; // paused time
        scene.disk().decide("w", ApprovalOutcome::Approved, None);
        tokio::time::sleep(Duration::from_secs(5)).await; // paused time
        assert_eq!(sent(&scene, "w"), 0, "nothing has reported it");
        let last = u32::try_from(scene.disk().events.len()).unwrap();
        control.has_events(last);
        tokio::time::sleep(Duration::from_secs(1)).await; // paused time
        assert_eq!(sent(&scene, "w"), 1);
    };
    let both = futures_util::future::join(run(&scene, control.clone()), votes);
    assert_eq!(both.await.0, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_request_expires_in_memory_without_any_report() {
    let scene = two_agents(vec![Turn::Slowly(60, "", vec![("a", "k8s.get")]); 2]);
    let short = ApprovalRule {
        timeout_ms: 60_000,
        ..rule()
    };
    scene.disk().needs_approval(&short);
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(
        outcomes(&scene.disk()),
        [("w".to_owned(), ApprovalOutcome::Expired)]
    );
}

#[tokio::test(start_paused = true)]
async fn two_executions_that_wait_park_once_and_each_decision_has_its_own_call() {
    let works = vec![
        Turn::Slowly(5, "", vec![("v", "k8s.restart")]),
        Turn::Says("Cause: z", vec![]),
    ];
    let scene = two_agents(works);
    assert_eq!(run(&scene, control()).await, Err(Interrupted::Parked));
    assert_eq!(scene.disk().epoch, 2);
    scene.disk().decide("v", ApprovalOutcome::Denied, None);
    assert_eq!(
        run(&scene, control()).await,
        Err(Interrupted::Parked),
        "the other one waits"
    );
    assert_eq!([sent(&scene, "v"), sent(&scene, "w")], [0, 0]);
    drive_woken(&scene).await;
    assert_eq!([sent(&scene, "v"), sent(&scene, "w")], [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_end_with_a_sibling_that_has_to_be_released() {
    let scene = two_agents(vec![
        Turn::Slowly(5, "", vec![("a", "k8s.get")]),
        Turn::Unavailable,
    ]);
    let gone = ReleaseReason::ModelUnavailable("no connection".to_owned());
    assert_eq!(
        run(&scene, control()).await,
        Err(Interrupted::Release(gone))
    );
    assert_eq!(scene.disk().requests.len(), 1);
    assert_eq!(scene.disk().epoch, 1, "nothing was parked");
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_end_with_a_sibling_that_panics() {
    let scene = two_agents(vec![
        Turn::Slowly(5, "", vec![("a", "k8s.get")]),
        Turn::Panics,
    ]);
    assert_eq!(run(&scene, control()).await, Err(Interrupted::Panicked));
    assert_eq!(scene.disk().epoch, 1, "nothing was parked");
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_iteration_begins_with_the_sending_of_an_approved_call() {
    let scene = two_agents(works(110));
    // The first agent has less time for an iteration than people need.
    Arc::make_mut(&mut scene.disk().record.plan.stages[0].agents[0])
        .limits
        .iteration_timeout_ms = 60_000;
    *scene.ports.tools.call_duration.lock() = Duration::from_secs(1);
    let control = control();
    let votes = async {
        until(|| !scene.disk().requests.is_empty()).await;
        tokio::time::sleep(Duration::from_secs(100)).await; // paused time
        scene.disk().decide("w", ApprovalOutcome::Approved, None);
        let last = u32::try_from(scene.disk().events.len()).unwrap();
        control.has_events(last);
    };
    let both = futures_util::future::join(run(&scene, control.clone()), votes);
    assert_eq!(both.await.0, Ok(()));
    // The fake takes no call, and is asked once more: both within the new time.
    assert_eq!(sent(&scene, "w"), 2);
}

/// The ends of all requests, sorted by call: the executions of a stage have no order among them.
fn sorted_outcomes(scene: &Scene) -> Vec<(String, ApprovalOutcome)> {
    let mut ends = outcomes(&scene.disk());
    ends.sort_by(|one, other| one.0.cmp(&other.0));
    ends
}

#[tokio::test(start_paused = true)]
async fn two_agents_that_wait_survive_a_death_at_any_write() {
    let asks = vec![
        Turn::Says("", vec![("v", "k8s.restart")]),
        Turn::Says("Cause: z", vec![]),
    ];
    let acts = [("v", Act::Approve), ("v", Act::Deny), ("*", Act::Sleep)];
    for acts in acts.map(|act| people(&[act])) {
        let whole = two_agents(asks.clone());
        assert!(drive(&whole, &acts).await > 0);
        let writes = whole.disk().writes;
        for death in (1..=writes).flat_map(|n| [Death::Before(n), Death::After(n)]) {
            let scene = two_agents(asks.clone());
            scene.disk().death = death;
            drive(&scene, &acts).await;
            let about = format!("{acts:?} {death:?}");
            assert_eq!(sorted_outcomes(&scene), sorted_outcomes(&whole), "{about}");
            for call in ["v", "w"] {
                assert!(sent(&scene, call) <= sent(&whole, call), "{call}: {about}");
            }
            let disk = scene.disk();
            let end = disk.end.as_ref().map(|end| end.status);
            assert_eq!(end, whole.disk().end.as_ref().map(|end| end.status));
            assert!(
                disk.requests.iter().all(|request| request.closed.is_some()),
                "{about}"
            );
        }
    }
}
