//! Tests of the soft deadline: an investigation concludes before its deadline, and loses nothing that was paid for.

use std::pin::pin;
use std::time::Duration;

use tokio::time::Instant;

use super::survival::calls_of;
use super::{control, run};
use crate::ports::{RunStatus, SessionEnd};
use crate::testing::{Death, Scene, Turn};
use tarsy_core::execution::decide::Purpose;
use tarsy_core::execution::entry::{Entry, Mark, NotSent, Outcome, StopReason};
use tarsy_core::plan::{AgentPlan, AnswerCheck, StagePlan, Strategy, SuccessPolicy};

const NATIVE: Strategy = Strategy::NativeThinking;
/// The time of the session, of which the last minute is kept.
const SESSION: Duration = Duration::from_secs(600);
const WRAP_UP: Duration = Duration::from_secs(60);
const SOFT: Duration = Duration::from_secs(540);
const MARK: Duration = Duration::from_secs(560);

const LOOK: &str = "Thought: look\nAction: k8s.get\nAction Input: {}";
const PATCH: &str = "Thought: do\nAction: k8s.patch.lost\nAction Input: {}";
const RESTART: &str = "Thought: do\nAction: k8s.restart\nAction Input: {}";

/// Sets the times of every agent of the plan.
fn keep(scene: &Scene, iteration: Duration, wrap_up: Duration) {
    let mut disk = scene.disk();
    for agent in disk
        .record
        .plan
        .stages
        .iter_mut()
        .flat_map(|stage| &mut stage.agents)
    {
        let mut changed = AgentPlan::clone(agent);
        changed.limits.iteration_timeout_ms = u64::try_from(iteration.as_millis()).unwrap();
        changed.wrap_up_ms = u64::try_from(wrap_up.as_millis()).unwrap();
        *agent = changed.into();
    }
}

/// A session whose iterations may take all of its time.
fn long_iterations(strategy: Strategy, turns: Vec<Turn>) -> Scene {
    let scene = Scene::new(strategy, 9, turns);
    keep(&scene, SESSION, WRAP_UP);
    scene
}

/// Runs with a deadline; returns the time that it took.
async fn run_within(scene: &Scene, remaining: Duration) -> Duration {
    let began = Instant::now();
    let control = control();
    let _timer = control.stop_after(remaining);
    assert_eq!(run(scene, control).await, Ok(()));
    began.elapsed()
}

fn end(scene: &Scene) -> SessionEnd {
    scene.disk().end.clone().expect("an end")
}

fn purposes(scene: &Scene) -> Vec<Purpose> {
    let disk = scene.disk();
    disk.model_calls.iter().map(|call| call.purpose).collect()
}

fn is_stopped(scene: &Scene) -> usize {
    let stop = Entry::Stopped {
        reason: StopReason::TimeBudget,
    };
    let disk = scene.disk();
    let entries = disk.entries.values().flatten();
    entries.filter(|recorded| recorded.entry == stop).count()
}

/// The contents of the results, by call.
fn results(scene: &Scene) -> Vec<(String, String, Option<NotSent>)> {
    let journal = scene.journal();
    let results = journal.iter().filter_map(Entry::result);
    results
        .map(|result| {
            (
                result.call_id.clone(),
                result.content.clone(),
                result.not_sent,
            )
        })
        .collect()
}

fn scripts() -> Vec<(Strategy, Vec<Turn>)> {
    let calls = vec![
        ("a", "k8s.get"),
        ("w", "k8s.restart"),
        ("b", "k8s.get"),
        ("v", "k8s.patch.lost"),
    ];
    let says = |text| Turn::Says(text, vec![]);
    vec![
        (
            NATIVE,
            vec![Turn::Says("look", calls), says(""), says("Cause: y")],
        ),
        (NATIVE, vec![says("Cause: y")]),
        (
            Strategy::React,
            vec![says(LOOK), says(RESTART), says("Final Answer: Cause: y")],
        ),
    ]
}

/// A chain of two stages with the same agent.
fn two_stages(strategy: Strategy, turns: Vec<Turn>) -> Scene {
    let scene = Scene::new(strategy, 9, turns);
    {
        let mut disk = scene.disk();
        let stage = StagePlan {
            name: "decide".to_owned(),
            ..disk.record.plan.stages[0].clone()
        };
        disk.record.plan.stages.push(stage);
    }
    keep(&scene, Duration::from_secs(120), WRAP_UP);
    scene
}

#[tokio::test(start_paused = true)]
async fn an_analysis_exists_whenever_a_call_can_still_finish() {
    let mut wrapped_up = [0, 0];
    for (strategy, turns) in scripts() {
        for write in 1.. {
            let scene = two_stages(strategy, turns.clone());
            scene.disk().death = Death::Hold(write);
            let began = Instant::now();
            let control = control();
            let _timer = control.stop_after(SESSION);
            let mut running = pin!(run(&scene, control));
            tokio::select! {
                () = scene.ports.journal.died.notified() => {}
                _ended = &mut running => break,
            }
            // The first stage keeps two iterations for the second one, at most half of the time.
            let stage = scene.disk().record.stages.len().max(1);
            let soft = if stage == 1 { SESSION / 2 } else { SOFT };
            let before = is_stopped(&scene);
            tokio::time::sleep_until(began + soft).await; // paused time
            scene.ports.journal.go_on.notify_one();
            assert_eq!(running.await, Ok(()));
            let end = end(&scene);
            let case = format!("{strategy:?} {turns:?} {write}");
            assert_eq!(end.status, RunStatus::Completed, "{case}");
            assert!(end.final_analysis.is_some(), "{case}");
            wrapped_up[stage - 1] += is_stopped(&scene) - before;
            assert!(began.elapsed() <= SESSION, "{case}");
        }
    }
    assert!(
        wrapped_up.iter().all(|count| *count > 8),
        "in each stage: {wrapped_up:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn no_iteration_begins_behind_the_soft_deadline() {
    let mut forced = 0;
    for (strategy, turns) in scripts() {
        // The first write begins the stage, from which its time counts.
        for write in 2.. {
            let scene = Scene::new(strategy, 9, turns.clone());
            keep(&scene, Duration::from_secs(120), WRAP_UP);
            scene.disk().death = Death::Hold(write);
            let began = Instant::now();
            let control = control();
            let _timer = control.stop_after(SESSION);
            let mut running = pin!(run(&scene, control));
            tokio::select! {
                () = scene.ports.journal.died.notified() => {}
                _ended = &mut running => break,
            }
            tokio::time::sleep_until(began + SOFT).await; // paused time
            let asked = purposes(&scene).len();
            let sent: u32 = scene.ports.tools.calls.lock().values().sum();
            scene.ports.journal.go_on.notify_one();
            assert_eq!(running.await, Ok(()));
            let later = purposes(&scene).split_off(asked);
            forced += later.len();
            assert!(
                later.iter().all(|purpose| *purpose == Purpose::Conclusion),
                "{strategy:?} {write}: {later:?}"
            );
            let sent_later: u32 = scene.ports.tools.calls.lock().values().sum();
            assert_eq!(sent_later, sent, "{strategy:?} {write}");
        }
    }
    assert!(forced > 10, "only {forced}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_provider_ends_at_the_soft_deadline() {
    let failed = Turn::Slowly(539, "", vec![]);
    for turns in [
        vec![Turn::Limited(9, 250), Turn::Limited(9, 250)],
        vec![
            failed,
            Turn::Fails,
            Turn::Fails,
            Turn::Says("Cause: y", vec![]),
        ],
    ] {
        let scene = long_iterations(NATIVE, turns.clone());
        run_within(&scene, SESSION).await;
        let purposes = purposes(&scene);
        let conclusions = purposes
            .iter()
            .filter(|purpose| **purpose == Purpose::Conclusion);
        assert_eq!(conclusions.count(), 1, "{turns:?} {purposes:?}");
        assert_eq!(is_stopped(&scene), 1, "{turns:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_by_the_soft_deadline_is_no_failure_of_the_provider() {
    for strategy in [NATIVE, Strategy::React] {
        let scene = long_iterations(strategy, vec![Turn::OnlyConcludes("Cause: y")]);
        {
            let mut disk = scene.disk();
            let agent = &mut disk.record.plan.stages[0].agents[0];
            let mut changed = AgentPlan::clone(agent);
            changed.providers.extend(changed.providers.clone());
            *agent = changed.into();
        }
        assert_eq!(run_within(&scene, SESSION).await, MARK, "{strategy:?}");
        let journal = scene.journal();
        let failures = journal.iter().filter(|entry| {
            entry.model_failure().is_some() || matches!(entry, Entry::Switched { .. })
        });
        assert_eq!(failures.count(), 0, "{journal:#?}");
        assert_eq!(purposes(&scene), [Purpose::Conclusion]);
        let end = end(&scene);
        assert_eq!(
            (end.status, end.reason),
            (RunStatus::Completed, StopReason::TimeBudget)
        );
        assert_eq!(end.final_analysis.as_deref(), Some("Cause: y"));
        assert_eq!(end.event.metadata["stop_reason"], "time_budget");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_counts_that_ends_in_the_first_third_of_the_reserve() {
    let scene = long_iterations(NATIVE, vec![Turn::Slowly(550, "Cause: y", vec![])]);
    assert_eq!(run_within(&scene, SESSION).await.as_secs(), 550);
    assert_eq!(end(&scene).reason, StopReason::FinalAnswer);
    assert_eq!(is_stopped(&scene), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_that_only_read_end_at_the_soft_deadline_and_later_ones_are_not_sent() {
    let calls = vec![("a", "k8s.get"), ("b", "k8s.get"), ("w", "k8s.restart")];
    let scene = long_iterations(NATIVE, vec![Turn::Says("look", calls)]);
    *scene.ports.tools.call_duration.lock() = 2 * SESSION;
    assert_eq!(run_within(&scene, SESSION).await, SOFT);
    let not_finished = "Error: not finished: the time of this investigation is used up";
    let not_sent = "Error: not sent: the time of this investigation is used up";
    let expected = [
        ("a".to_owned(), not_finished.to_owned(), None),
        ("b".to_owned(), not_finished.to_owned(), None),
        ("w".to_owned(), not_sent.to_owned(), Some(NotSent::NoTime)),
    ];
    assert_eq!(results(&scene), expected);
    assert!(
        !scene
            .journal()
            .iter()
            .any(|entry| matches!(entry, Entry::Failed { .. })),
        "no time-out of a tool"
    );
    assert_eq!(end(&scene).reason, StopReason::TimeBudget);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_change_something_goes_on_behind_the_soft_deadline() {
    let turns = [
        (
            NATIVE,
            Turn::Says("", vec![("w", "k8s.restart"), ("v", "k8s.restart")]),
        ),
        (Strategy::React, Turn::Says(RESTART, vec![])),
    ];
    for (strategy, turn) in turns {
        let scene = long_iterations(strategy, vec![turn]);
        *scene.ports.tools.call_duration.lock() = Duration::from_secs(570);
        assert_eq!(run_within(&scene, SESSION).await.as_secs(), 570);
        let results = results(&scene);
        assert!(results[0].1.contains("no connection"), "{results:?}");
        for later in &results[1..] {
            assert!(later.1.contains("not sent"), "{later:?}");
        }
        assert_eq!(end(&scene).reason, StopReason::TimeBudget);
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_takes_over_concludes_as_the_one_before_would_have() {
    let turns = vec![Turn::OnlyConcludes("Cause: y")];
    let whole = long_iterations(NATIVE, turns.clone());
    run_within(&whole, SESSION).await;
    let stopped = whole
        .journal()
        .iter()
        .position(|entry| matches!(entry, Entry::Stopped { .. }));
    assert_eq!(stopped, Some(2), "after the opening");
    // The stage begins, the opening, the stop.
    for write in [3, 4] {
        let scene = long_iterations(NATIVE, turns.clone());
        scene.disk().death = Death::After(write);
        let control = control();
        let _timer = control.stop_after(SESSION);
        tokio::select! {
            biased;
            () = scene.ports.journal.died.notified() => {}
            ended = run(&scene, control) => panic!("outlived {write}: {ended:?}"),
        }
        scene.disk().epoch += 1;
        scene.disk().death = Death::Never;
        run_within(&scene, SESSION).await;
        assert_eq!(scene.journal(), whole.journal(), "{write}");
    }
}

/// Gives the iterations of the first stage 400 s.
fn takes_longer(scene: &Scene) {
    let mut disk = scene.disk();
    let agent = &mut disk.record.plan.stages[0].agents[0];
    let mut changed = AgentPlan::clone(agent);
    changed.limits.iteration_timeout_ms = 400_000;
    *agent = changed.into();
}

/// Sessions whose soft deadline comes during a model call, a call that only reads, one that may change something, and
/// in the second stage of two. A call of a tool takes 20 s.
fn wrapped_up() -> Vec<Scene> {
    let read = vec![("a", "k8s.get"), ("w", "k8s.patch.lost")];
    let change = vec![("w", "k8s.patch.lost"), ("b", "k8s.get")];
    let scripts = [
        (NATIVE, Turn::OnlyConcludes("Cause: y")),
        (NATIVE, Turn::LooksSlowly(530, "look", read)),
        (NATIVE, Turn::LooksSlowly(530, "do", change)),
        (Strategy::React, Turn::OnlyConcludes("Cause: y")),
        (Strategy::React, Turn::LooksSlowly(530, LOOK, vec![])),
        (Strategy::React, Turn::LooksSlowly(530, PATCH, vec![])),
    ];
    let mut scenes: Vec<Scene> = scripts
        .into_iter()
        .map(|(strategy, turn)| {
            let end = Turn::Says("Final Answer: Cause: y", vec![]);
            long_iterations(strategy, vec![turn, end])
        })
        .collect();
    let both = vec![("a", "k8s.get"), ("w", "k8s.patch.lost")];
    let two = two_stages(NATIVE, vec![Turn::LooksSlowly(290, "look", both)]);
    takes_longer(&two);
    {
        let mut disk = two.disk();
        let agent = &mut disk.record.plan.stages[1].agents[0];
        let mut chief = AgentPlan::clone(agent);
        "chief".clone_into(&mut chief.providers[0].model);
        *agent = chief.into();
    }
    let at_once = vec![Turn::Says("Cause: y", vec![])];
    let models = &two.ports.model.others;
    models.lock().insert("chief".to_owned(), at_once);
    scenes.push(two);
    for scene in &scenes {
        *scene.ports.tools.call_duration.lock() = Duration::from_secs(20);
    }
    scenes
}

/// Takes the session over. The times of its entries are real, so the paused time that has passed is taken off them.
fn take_over_after(scene: &Scene, passed: Duration) {
    let mut disk = scene.disk();
    disk.epoch += 1;
    disk.death = Death::Never;
    for recorded in disk.entries.values_mut().flatten() {
        recorded.at = recorded.at.map(|at| at - passed);
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_at_any_write_a_session_still_concludes_before_its_deadline() {
    let mut kills = 0;
    let mut stopped = 0;
    for script in 0..wrapped_up().len() {
        let whole = wrapped_up().remove(script);
        run_within(&whole, SESSION).await;
        assert!(is_stopped(&whole) > 0, "{script}");
        let writes = whole.disk().writes;
        let paid = *whole.ports.model.calls.lock();
        for death in (1..=writes).flat_map(|n| [Death::Before(n), Death::After(n)]) {
            let scene = wrapped_up().remove(script);
            scene.disk().death = death;
            let began = Instant::now();
            let dying = control();
            let _timer = dying.stop_after(SESSION);
            tokio::select! {
                biased;
                () = scene.ports.journal.died.notified() => {}
                ended = run(&scene, dying) => panic!("outlived {death:?}: {ended:?}"),
            }
            take_over_after(&scene, began.elapsed());
            let has_ended = scene.disk().end.is_some();
            if !has_ended {
                run_within(&scene, SESSION - began.elapsed()).await;
            }
            kills += 1;
            let case = format!("{script} {death:?}");
            let end = end(&scene);
            assert_eq!(end.status, RunStatus::Completed, "{case}");
            assert!(end.final_analysis.is_some(), "{case}");
            // A lost call takes no time, so the next iteration may come before the soft deadline.
            assert!(is_stopped(&scene) <= is_stopped(&whole), "{case}");
            stopped += is_stopped(&scene);
            assert!(*scene.ports.model.calls.lock() <= paid + 1, "{case}");
            for call in calls_of(&scene.journal()) {
                let sent = scene.ports.tools.calls.lock().get(&call.id).copied();
                let is_sent_twice = !call.read_only && sent.unwrap_or(0) > 1;
                assert!(!is_sent_twice, "{case}: {call:?}");
            }
        }
    }
    assert!(kills > 60 && stopped > 60, "{kills} kills, {stopped} stops");
}

#[tokio::test(start_paused = true)]
async fn a_conclusion_has_what_remains_up_to_the_time_of_the_later_stages() {
    // The second stage keeps 240 s of 600 s, and the first one 60 s: 300 s in all. The calls end at once.
    for (secs, status) in [(50, RunStatus::Completed), (60, RunStatus::Failed)] {
        let look = Turn::Slowly(305, "look", vec![("a", "k8s.get")]);
        let first = vec![look, Turn::Slowly(secs, "Cause: y", vec![])];
        let scene = ends_in_the_second_stage();
        let models = &scene.ports.model.others;
        models.lock().insert("first".to_owned(), first);
        models.lock().remove("chief");
        takes_longer(&scene);
        {
            let mut disk = scene.disk();
            let agent = &mut disk.record.plan.stages[0].agents[0];
            let mut changed = AgentPlan::clone(agent);
            "first".clone_into(&mut changed.providers[0].model);
            *agent = changed.into();
        }
        run_within(&scene, SESSION).await;
        assert_eq!(end(&scene).status, status, "{secs}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_still_arrives_may_take_half_of_its_time_more() {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    for (wrap_up, secs, takes) in [
        (WRAP_UP, 150, Some(150)),
        (WRAP_UP, 200, None),
        (Duration::ZERO, 150, None),
    ] {
        let scene = Scene::new(NATIVE, 9, vec![Turn::Streams(secs, "Cause: y")]);
        keep(&scene, minutes(2), wrap_up);
        let took = run_within(&scene, minutes(60)).await.as_secs();
        let has_failed = scene
            .journal()
            .iter()
            .any(|entry| entry.model_failure().is_some());
        assert_eq!(has_failed, takes.is_none(), "{wrap_up:?} {secs}");
        if let Some(takes) = takes {
            assert_eq!(took, takes);
        }
    }
    let silent = Scene::new(NATIVE, 9, vec![Turn::Slowly(150, "Cause: y", vec![])]);
    keep(&silent, minutes(2), WRAP_UP);
    run_within(&silent, minutes(60)).await;
    assert!(
        silent
            .journal()
            .iter()
            .any(|entry| entry.model_failure().is_some()),
        "no piece has arrived"
    );
}

/// An agent with tools, then one that never answers.
fn ends_in_the_second_stage() -> Scene {
    let scene = Scene::new(NATIVE, 9, vec![Turn::Says("Cause: found", vec![])]);
    {
        let mut disk = scene.disk();
        let mut chief = AgentPlan::clone(&disk.record.plan.stages[0].agents[0]);
        "chief".clone_into(&mut chief.name);
        "chief".clone_into(&mut chief.providers[0].model);
        let stage = StagePlan {
            name: "decide".to_owned(),
            success_policy: SuccessPolicy::Any,
            agents: vec![chief.into()],
            review: None,
        };
        disk.record.plan.stages.push(stage);
    }
    let never = vec![Turn::NeverAnswers; 9];
    scene
        .ports
        .model
        .others
        .lock()
        .insert("chief".to_owned(), never);
    keep(&scene, Duration::from_secs(120), WRAP_UP);
    scene
}

fn is_taken_over(scene: &Scene, status: RunStatus, reason: StopReason) {
    let end = end(scene);
    assert_eq!((end.status, end.reason), (status, reason));
    assert_eq!(end.final_analysis.as_deref(), Some("Cause: found"));
    assert_eq!(end.mark, Some(Mark::OfStage));
    assert_eq!(end.event.metadata["of_stage"], "investigate");
    assert_eq!(end.event.metadata["mark"], "of_stage");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_stopped_in_a_later_stage_takes_over_what_was_found() {
    for (reason, status) in [
        (StopReason::Cancelled, RunStatus::Cancelled),
        (StopReason::Deadline, RunStatus::TimedOut),
    ] {
        let scene = ends_in_the_second_stage();
        let control = control();
        let stopping = async {
            tokio::time::sleep(Duration::from_secs(9)).await; // paused time
            control.stop(reason);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = run(&scene, control.clone()) => assert_eq!(ended, Ok(())),
            () = stopping => {}
        }
        is_taken_over(&scene, status, reason);
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_takes_over_too_late_asks_no_model_and_keeps_what_was_found() {
    let scene = ends_in_the_second_stage();
    let interrupted = control();
    tokio::select! {
        ended = run(&scene, interrupted) => panic!("{ended:?}"),
        () = tokio::time::sleep(Duration::from_secs(9)) => {} // paused time
    }
    scene.disk().epoch += 1;
    let asked = *scene.ports.model.calls.lock();
    run_within(&scene, Duration::from_secs(9)).await;
    assert_eq!(*scene.ports.model.calls.lock(), asked);
    is_taken_over(&scene, RunStatus::TimedOut, StopReason::Deadline);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_to_be_given_again_is_kept_at_the_deadline() {
    let scene = Scene::new(
        NATIVE,
        9,
        vec![Turn::Says("Cause: held", vec![]), Turn::NeverAnswers],
    );
    keep(&scene, Duration::from_secs(120), WRAP_UP);
    {
        let mut disk = scene.disk();
        let agent = &mut disk.record.plan.stages[0].agents[0];
        let mut changed = AgentPlan::clone(agent);
        changed.answer_check = AnswerCheck::Once;
        *agent = changed.into();
    }
    tokio::select! {
        ended = run(&scene, control()) => panic!("{ended:?}"),
        () = tokio::time::sleep(Duration::from_secs(9)) => {} // paused time
    }
    scene.disk().epoch += 1;
    run_within(&scene, Duration::from_secs(9)).await;
    let end = end(&scene);
    assert_eq!(
        (end.status, end.final_analysis.as_deref()),
        (RunStatus::TimedOut, Some("Cause: held"))
    );
    assert_eq!(end.mark, Some(Mark::NotLooked), "the worse of the two");
}

#[tokio::test(start_paused = true)]
async fn a_plan_of_an_older_version_has_no_soft_deadline() {
    let scene = long_iterations(NATIVE, vec![Turn::OnlyConcludes("Cause: y")]);
    keep(&scene, SESSION, Duration::ZERO);
    let plan = scene.disk().record.plan.stages[0].agents[0].clone();
    let stored = serde_json::to_value(&*plan).unwrap();
    assert_eq!(stored.get("wrap_up_ms"), None);
    assert_eq!(serde_json::from_value::<AgentPlan>(stored).unwrap(), *plan);
    assert_eq!(run_within(&scene, SESSION).await, SESSION);
    let end = end(&scene);
    assert_eq!(
        (end.status, end.final_analysis),
        (RunStatus::TimedOut, None)
    );
    assert!(scene.journal().iter().any(|entry| matches!(
        entry,
        Entry::Ended {
            outcome: Outcome::TimedOut
        }
    )));
}
