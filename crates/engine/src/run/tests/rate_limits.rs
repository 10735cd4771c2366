//! Tests of the delays between model calls: the provider's own, and the back-off after failures.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{control, draining, run};
use crate::ports::RunStatus;
use crate::run::control::{Interrupted, ReleaseReason};
use crate::testing::{Scene, Turn};
use tarsy_core::execution::entry::{Entry, StopReason};
use tarsy_core::plan::Strategy;
use tarsy_core::timeline::EventType;

/// Codes of the failed calls in the journal.
fn failures(scene: &Scene) -> Vec<String> {
    let mut codes = Vec::new();
    for entry in scene.journal() {
        if let Entry::Failed { code, .. } = entry {
            codes.push(code);
        }
    }
    codes
}

fn calls(scene: &Scene) -> u32 {
    *scene.ports.model.calls.lock()
}

/// Runs to the end; returns the seconds that it took.
async fn finish(scene: &Scene) -> f64 {
    let began = Instant::now();
    assert_eq!(run(scene, control()).await, Ok(()));
    began.elapsed().as_secs_f64()
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_waits_as_told_and_costs_no_iteration() {
    for strategy in [
        Strategy::NativeThinking,
        Strategy::SingleCall,
        Strategy::Synthesis,
    ] {
        let scene = Scene::new(strategy, 1, vec![Turn::Limited(3, 20)]);
        let took = finish(&scene).await;
        assert!((40.0..41.0).contains(&took), "{took}");
        assert_eq!((calls(&scene), failures(&scene)), (3, vec![]));
        let end = scene.disk().end.clone().unwrap();
        assert_eq!(
            (end.status, end.reason),
            (RunStatus::Completed, StopReason::FinalAnswer)
        );
        let requests = scene.ports.model.requests.lock();
        let timeouts: Vec<f64> = requests
            .iter()
            .map(|request| request.timeout.as_secs_f64().round())
            .collect();
        assert_eq!(
            timeouts,
            [120.0, 100.0, 80.0],
            "the waits are a part of the iteration's time"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_too_long_for_the_iteration_fails_it_and_delays_the_next() {
    for (asked, waited) in [(100, 100.0), (100_000, 120.0)] {
        let scene = Scene::new(
            Strategy::NativeThinking,
            9,
            vec![Turn::Limited(2, asked), Turn::Limited(2, asked)],
        );
        let took = finish(&scene).await;
        assert!((waited..waited + 1.0).contains(&took), "{asked}: {took}");
        assert_eq!(
            (calls(&scene), failures(&scene)),
            (2, vec!["rate_limited".to_owned()])
        );
        let disk = scene.disk();
        let error = disk
            .events
            .iter()
            .find(|event| event.event_type == EventType::Error)
            .unwrap();
        let metadata = serde_json::json!({"kind": "model", "timeout": false, "code": "rate_limited", "retryable": true});
        assert_eq!(error.metadata, metadata);
    }
}

#[tokio::test(start_paused = true)]
async fn failed_calls_in_a_row_are_followed_by_longer_and_longer_delays() {
    let turns = vec![
        Turn::Fails,
        Turn::Fails,
        Turn::Fails,
        Turn::Fails,
        Turn::Fails,
    ];
    let scene = Scene::new(Strategy::NativeThinking, 9, turns);
    let took = finish(&scene).await;
    assert!(
        (15.0..=31.1).contains(&took),
        "1, 2, 4, 8 and 16 seconds, or up to a half less: {took}"
    );
    assert_eq!((calls(&scene), failures(&scene).len()), (6, 5));
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_wait_for_a_provider_at_once() {
    for (asked, entries) in [(50, 0), (100, 1)] {
        let scene = Scene::new(
            Strategy::NativeThinking,
            9,
            vec![Turn::Limited(9, asked); 9],
        );
        let control = control();
        let began = Instant::now();
        let stop = async {
            tokio::time::sleep(Duration::from_secs(5)).await; // paused time
            control.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = run(&scene, control.clone()) => assert_eq!(ended, Ok(())),
            () = stop => {}
        }
        assert_eq!(
            (
                began.elapsed().as_secs(),
                calls(&scene),
                failures(&scene).len()
            ),
            (5, 1, entries)
        );
        assert_eq!(
            scene.disk().end.as_ref().map(|end| end.status),
            Some(RunStatus::Cancelled)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_the_wait_for_a_provider_and_the_next_worker_goes_on() {
    for (asked, entries) in [(50, 0), (100, 1)] {
        let scene = Scene::new(
            Strategy::NativeThinking,
            9,
            vec![Turn::Limited(2, asked); 9],
        );
        let drain = CancellationToken::new();
        let began = Instant::now();
        let stop = async {
            tokio::time::sleep(Duration::from_secs(5)).await; // paused time
            drain.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = run(&scene, draining(drain.clone())) => {
                assert_eq!(ended, Err(Interrupted::Release(ReleaseReason::Drain)));
            }
            () = stop => {}
        }
        assert_eq!(
            (
                began.elapsed().as_secs(),
                calls(&scene),
                failures(&scene).len()
            ),
            (5, 1, entries)
        );
        assert!(finish(&scene).await <= 1.0);
        assert_eq!((calls(&scene), failures(&scene).len()), (2, entries));
        assert_eq!(
            scene.disk().end.as_ref().map(|end| end.status),
            Some(RunStatus::Completed)
        );
    }
}
