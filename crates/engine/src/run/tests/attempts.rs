//! Tests of the numbers of attempts, in events and deltas.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{control, run};
use crate::testing::{Death, Scene, Turn};
use tarsy_core::plan::Strategy;
use tarsy_core::timeline::EventType;

/// Iteration and attempt of each checkpoint with events.
fn shown(scene: &Scene) -> Vec<(u32, u32)> {
    let disk = scene.disk();
    disk.shown
        .values()
        .flatten()
        .map(|(iteration, attempt, _)| (*iteration, *attempt))
        .collect()
}

/// The number of times that the model was asked for each iteration.
fn asked(scene: &Scene) -> BTreeMap<u32, u32> {
    let mut asked = BTreeMap::new();
    for request in scene.ports.model.requests.lock().iter() {
        let (_, iteration) = request.request_id.rsplit_once(':').unwrap();
        *asked.entry(iteration.parse().unwrap()).or_default() += 1;
    }
    asked
}

async fn crash(scene: &Scene, death: Death) {
    scene.disk().death = death;
    tokio::select! {
        biased;
        () = scene.ports.journal.died.notified() => {}
        ended = run(scene, control()) => panic!("outlived {death:?}: {ended:?}"),
    }
    scene.disk().death = Death::Never;
    scene.disk().epoch += 1;
}

#[tokio::test(start_paused = true)]
async fn a_model_call_that_a_crash_repeats_has_the_next_attempt() {
    let calls = vec![("a", "k8s.get"), ("w", "k8s.restart"), ("b", "k8s.get")];
    let script = || {
        vec![
            Turn::Says("look", calls.clone()),
            Turn::Fails,
            Turn::Says("again", vec![("c", "k8s.get")]),
        ]
    };
    let whole = Scene::new(Strategy::NativeThinking, 9, script());
    assert_eq!(run(&whole, control()).await, Ok(()));
    assert_eq!(
        shown(&whole),
        [
            (1, 1),
            (1, 1),
            (1, 1),
            (1, 1),
            (2, 1),
            (3, 1),
            (3, 1),
            (4, 1)
        ]
    );
    let mut repeated = 0;
    let writes = whole.disk().writes;
    for death in (1..=writes).flat_map(|n| [Death::Before(n), Death::After(n)]) {
        let scene = Scene::new(Strategy::NativeThinking, 9, script());
        crash(&scene, death).await;
        if scene.disk().end.is_none() {
            assert_eq!(run(&scene, control()).await, Ok(()));
        }
        let attempts: BTreeMap<u32, u32> = shown(&scene).into_iter().collect();
        let of_all: Vec<u32> = shown(&scene)
            .iter()
            .map(|(iteration, _)| attempts[iteration])
            .collect();
        let own: Vec<u32> = shown(&scene).iter().map(|(_, attempt)| *attempt).collect();
        assert_eq!(
            own, of_all,
            "all events of an iteration have the attempt of its answer: {death:?}"
        );
        for (iteration, asked) in asked(&scene) {
            // A worker that died before its call is a try, too.
            assert!(
                (asked..=2).contains(&attempts[&iteration]),
                "{death:?}: {attempts:?}, asked {asked} times"
            );
            repeated += u32::from(asked == 2);
        }
        assert!(
            attempts.values().filter(|attempt| **attempt == 2).count() <= 1,
            "{death:?}: {attempts:?}"
        );
        for delta in scene
            .ports
            .feed
            .deltas
            .lock()
            .iter()
            .filter(|delta| delta.epoch == scene.lease().epoch)
        {
            assert_eq!(delta.attempt, attempts[&delta.iteration], "{death:?}");
        }
    }
    assert_eq!(repeated, 4, "one for each answer");
}

#[tokio::test(start_paused = true)]
async fn each_worker_that_has_the_iteration_to_do_counts() {
    let scene = Scene::new(
        Strategy::NativeThinking,
        9,
        vec![Turn::Says("look", vec![("a", "k8s.get")])],
    );
    for _ in 0..3 {
        // The third write is the first answer.
        let third = scene.disk().writes.max(2) + 1;
        crash(&scene, Death::Before(third)).await;
    }
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(shown(&scene), [(1, 4), (1, 4), (2, 1)]);
    let attempts: Vec<_> = scene
        .ports
        .feed
        .deltas
        .lock()
        .iter()
        .map(|delta| (delta.epoch, delta.attempt))
        .collect();
    assert_eq!(attempts, [(1, 1), (2, 2), (3, 3), (4, 4), (4, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_repeated_after_a_rate_limit_has_the_next_attempt() {
    let scene = Scene::new(Strategy::NativeThinking, 9, vec![Turn::Limited(3, 20)]);
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(shown(&scene), [(1, 3)]);

    // The second wait would be longer than what is left: the failure has the attempt of the last try.
    let failing = Scene::new(Strategy::NativeThinking, 9, vec![Turn::Limited(9, 50); 2]);
    Arc::make_mut(&mut failing.disk().record.plan.stages[0].agents[0])
        .limits
        .max_iterations = 1;
    assert_eq!(run(&failing, control()).await, Ok(()));
    assert_eq!(failing.disk().events[1].event_type, EventType::Error);
    assert_eq!(failing.disk().events[1].metadata["retryable"], true);
    assert_eq!(shown(&failing)[0], (1, 2));
}
