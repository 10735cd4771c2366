//! Updates of the alert: the model gets each once before the next model call, also when a worker dies at any write.

use super::{control, run};
use crate::ports::RunStatus::Completed;
use crate::testing::{Death, Scene, Turn};
use tarsy_core::alert::policy::OnResolved;
use tarsy_core::alert::{AlertStatus, Severity};
use tarsy_core::alert_update::AlertUpdate;
use tarsy_core::execution::entry::{Entry, Role, StopReason};
use tarsy_core::execution::state::State;
use tarsy_core::plan::Strategy;
use tarsy_core::timeline::EventType;

const LOOK: &str = "Thought: look\nAction: k8s.get\nAction Input: {\"pod\": \"a\"}";
const FOUND: &str = "Thought: enough\nFinal Answer: Cause: y";

/// The strategy, its iterations, and the answers.
type Script = (Strategy, u32, Vec<Turn>);

fn scripts() -> [Script; 5] {
    use Turn::{Fails, Says};
    let native = Strategy::NativeThinking;
    let look = || Says("look", vec![("a", "k8s.get")]);
    [
        (native, 9, vec![look(), Fails, Says("Cause: y", vec![])]),
        (native, 1, vec![look(), Says("Cause: forced", vec![])]),
        (
            Strategy::React,
            9,
            vec![Says(LOOK, vec![]), Says(FOUND, vec![])],
        ),
        (Strategy::SingleCall, 9, vec![Says("Cause: y", vec![])]),
        (Strategy::Synthesis, 9, vec![Says("Cause: y", vec![])]),
    ]
}

fn updates() -> Vec<AlertUpdate> {
    let severity = AlertUpdate {
        severity: Some(Severity::Critical),
        ..AlertUpdate::default()
    };
    vec![
        severity,
        AlertUpdate {
            status: Some(AlertStatus::Resolved),
            ..AlertUpdate::default()
        },
    ]
}

/// A scene with two updates that are committed before this write.
fn scene(script: Script, from: u32) -> Scene {
    let (strategy, limit, turns) = script;
    let scene = Scene::new(strategy, limit, turns);
    scene.disk().updates = updates();
    scene.disk().updates_from = from;
    scene
}

fn sent(scene: &Scene) -> Vec<u32> {
    let mut sent = Vec::new();
    for entry in scene.journal() {
        if let Entry::AlertUpdated(updated) = entry {
            sent.push(updated.upto);
        }
    }
    sent
}

fn events(scene: &Scene) -> usize {
    scene
        .disk()
        .events
        .iter()
        .filter(|event| event.event_type == EventType::AlertUpdated)
        .count()
}

#[tokio::test(start_paused = true)]
async fn an_update_before_the_last_call_is_sent_once_at_any_death() {
    for script in scripts() {
        // The stage begins with write 1, the prompts are write 2, and the last call comes after them.
        for from in [0, 2] {
            let whole = scene(script.clone(), from);
            assert_eq!(run(&whole, control()).await, Ok(()));
            assert_eq!((sent(&whole), events(&whole)), (vec![2], 1), "{script:?}");
            assert_eq!(
                whole.disk().end.as_ref().map(|end| end.covered_updates),
                Some(2)
            );
            let writes = whole.disk().writes;
            for death in (1..=writes).flat_map(|n| [Death::Before(n), Death::After(n)]) {
                let scene = scene(script.clone(), from);
                scene.disk().death = death;
                tokio::select! {
                    biased;
                    () = scene.ports.journal.died.notified() => {}
                    ended = run(&scene, control()) => panic!("outlived {death:?}: {ended:?}"),
                }
                scene.disk().epoch += 1;
                scene.disk().death = Death::Never;
                if scene.disk().end.is_none() {
                    assert_eq!(run(&scene, control()).await, Ok(()), "{script:?} {death:?}");
                }
                assert_eq!(
                    (sent(&scene), events(&scene)),
                    (vec![2], 1),
                    "{script:?} {death:?}"
                );
                assert_eq!(scene.journal(), whole.journal(), "{script:?} {death:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_after_the_last_call_is_not_sent_and_not_covered() {
    for script in scripts() {
        let whole = scene(script.clone(), 0);
        assert_eq!(run(&whole, control()).await, Ok(()));
        let late = scene(script, whole.disk().writes - 2);
        assert_eq!(run(&late, control()).await, Ok(()));
        assert_eq!((sent(&late), events(&late)), (vec![], 0));
        assert_eq!(
            late.disk().end.as_ref().map(|end| end.covered_updates),
            Some(0)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_request_to_conclude_comes_after_an_update() {
    // Write 5 is the request to conclude: the update is known with its reply.
    for from in [0, 4, 5] {
        let scene = scene(scripts()[1].clone(), from);
        assert_eq!(run(&scene, control()).await, Ok(()));
        let journal = scene.journal();
        assert_eq!(sent(&scene), [2], "{from}: {journal:#?}");
        let before_last = journal
            .iter()
            .rposition(|entry| matches!(entry, Entry::Answer(_)))
            .unwrap();
        assert!(
            matches!(journal[before_last - 1], Entry::Feedback { .. }),
            "{journal:#?}"
        );
    }
}

/// Answers before the alert is resolved, the failure that follows, and the last answer.
fn concluding_scripts() -> [Script; 4] {
    use Turn::{Fails, Says};
    let native = Strategy::NativeThinking;
    let look = || Says("look", vec![("a", "k8s.get")]);
    [
        (native, 9, vec![look(), Says("Cause: over", vec![])]),
        (native, 9, vec![look(), Fails, Says("Cause: over", vec![])]),
        (
            Strategy::React,
            9,
            vec![Says(LOOK, vec![]), Says(FOUND, vec![])],
        ),
        (
            Strategy::React,
            9,
            vec![Says(LOOK, vec![]), Fails, Says(FOUND, vec![])],
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_resolved_alert_forces_the_same_conclusion_at_any_death() {
    for script in concluding_scripts() {
        // The stage begins with write 1; prompts, answer, result, and perhaps a failure follow.
        let from = 4 + u32::from(script.2.len() == 3);
        let concluding = || {
            let scene = scene(script.clone(), from);
            scene.disk().record.plan.on_resolved = OnResolved::Conclude;
            scene
        };
        let whole = concluding();
        assert_eq!(run(&whole, control()).await, Ok(()));
        let journal = whole.journal();
        let updated = journal
            .iter()
            .position(|entry| matches!(entry, Entry::AlertUpdated(_)))
            .unwrap();
        assert!(
            matches!(
                &journal[updated + 1..],
                [
                    Entry::Stopped {
                        reason: StopReason::AlertResolved
                    },
                    Entry::Concluding {
                        reason: StopReason::AlertResolved
                    },
                    Entry::Feedback { .. },
                    Entry::Answer(_),
                    ..
                ]
            ),
            "{journal:#?}"
        );
        let end = whole.disk().end.clone().unwrap();
        assert_eq!(
            (end.status, end.reason, end.covered_updates),
            (Completed, StopReason::AlertResolved, 2)
        );
        let writes = whole.disk().writes;
        for death in (1..=writes).flat_map(|n| [Death::Before(n), Death::After(n)]) {
            let scene = concluding();
            scene.disk().death = death;
            tokio::select! {
                biased;
                () = scene.ports.journal.died.notified() => {}
                ended = run(&scene, control()) => panic!("outlived {death:?}: {ended:?}"),
            }
            scene.disk().epoch += 1;
            scene.disk().death = Death::Never;
            // A write that was lost is repeated, and counts again.
            scene.disk().updates_from += u32::from(matches!(death, Death::Before(n) if n <= from));
            if scene.disk().end.is_none() {
                assert_eq!(run(&scene, control()).await, Ok(()), "{script:?} {death:?}");
            }
            assert_eq!(scene.journal(), journal, "{script:?} {death:?}");
            assert_eq!(
                scene.disk().end.as_ref().map(|end| end.reason),
                Some(StopReason::AlertResolved)
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_alert_that_fires_again_before_the_next_call_concludes_nothing() {
    let scene = scene(concluding_scripts()[0].clone(), 4);
    scene.disk().record.plan.on_resolved = OnResolved::Conclude;
    scene.disk().updates.push(AlertUpdate {
        status: Some(AlertStatus::Firing),
        ..AlertUpdate::default()
    });
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(
        scene.disk().end.as_ref().map(|end| end.reason),
        Some(StopReason::FinalAnswer)
    );
}

#[test]
fn an_update_is_a_message_with_a_fence_in_every_strategy() {
    for (strategy, ..) in scripts() {
        let plan = tarsy_core::testing::agent_plan(strategy, vec![]);
        let entry = tarsy_core::alert_update::entry(&[tarsy_core::alert_update::NumberedUpdate {
            number: 1,
            update: updates().remove(0),
        }]);
        let state = State::replay(std::sync::Arc::new(plan), None, entry);
        let [message] = state.messages().try_into().unwrap();
        assert_eq!(message.role, Role::User);
        assert!(
            message
                .content
                .contains("```text\nthe severity is now critical\n```\n"),
            "{}",
            message.content
        );
        assert_eq!((state.known_updates(), state.answered_updates()), (1, 0));
    }
}
