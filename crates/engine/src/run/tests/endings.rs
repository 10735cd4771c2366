//! Tests of the ends of executions: by a cancel, the deadline, a limit, or without an answer.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::control;
use crate::ports::RunStatus;
use crate::run::control::Control;
use crate::testing::{Death, Scene, Turn};
use tarsy_core::execution::entry::{Entry, Outcome, StopReason};
use tarsy_core::plan::Strategy;
use tarsy_core::timeline::EventType;

async fn run(scene: &Scene, control: Control) {
    assert_eq!(super::run(scene, control).await, Ok(()));
}

/// Runs and stops after so many seconds; returns the seconds that it took.
async fn run_stopped(scene: &Scene, after: u64, stops: &[StopReason]) -> u64 {
    let control = control();
    let began = Instant::now();
    let stopping = async {
        tokio::time::sleep(Duration::from_secs(after)).await; // paused time
        stops.iter().for_each(|stop| control.stop(*stop));
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = run(scene, control.clone()) => {}
        () = stopping => {}
    }
    began.elapsed().as_secs()
}

/// Model calls and tool calls that were sent.
fn sent(scene: &Scene) -> (u32, u32) {
    (
        *scene.ports.model.calls.lock(),
        scene.ports.tools.calls.lock().values().sum(),
    )
}

fn end(scene: &Scene) -> (RunStatus, StopReason, EventType) {
    let end = scene.disk().end.clone().unwrap();
    (end.status, end.reason, end.event.event_type)
}

const CANCELLED: (RunStatus, StopReason, EventType) = (
    RunStatus::Cancelled,
    StopReason::Cancelled,
    EventType::SessionCancelled,
);
const TIMED_OUT: (RunStatus, StopReason, EventType) = (
    RunStatus::TimedOut,
    StopReason::Deadline,
    EventType::SessionTimedOut,
);

#[tokio::test(start_paused = true)]
async fn an_investigation_that_is_stopped_at_any_write_makes_no_further_call() {
    let both = Turn::Says(
        "look",
        vec![("a", "k8s.get"), ("w", "k8s.restart"), ("b", "k8s.get")],
    );
    let react = Turn::Says("Thought: do\nAction: k8s.restart\nAction Input: {}", vec![]);
    let scripts = [
        (
            Strategy::NativeThinking,
            vec![
                both,
                Turn::Fails,
                Turn::Says("", vec![]),
                Turn::Says("Cause: y", vec![]),
            ],
        ),
        (
            Strategy::React,
            vec![react, Turn::Says("Final Answer: Cause: y", vec![])],
        ),
        (
            Strategy::Synthesis,
            vec![Turn::Fails, Turn::Says("Cause: y", vec![])],
        ),
    ];
    let stops = [
        (vec![StopReason::Cancelled], CANCELLED),
        (vec![StopReason::Deadline], TIMED_OUT),
        (vec![StopReason::Deadline, StopReason::Cancelled], TIMED_OUT),
        (vec![StopReason::Cancelled, StopReason::Deadline], CANCELLED),
    ];
    let mut cut_short = 0;
    for ((strategy, turns), (stops, expected)) in scripts
        .iter()
        .flat_map(|script| stops.iter().map(move |stop| (script, stop)))
    {
        for write in 1.. {
            let scene = Scene::new(*strategy, 9, turns.clone());
            scene.disk().death = Death::Hold(write);
            let control = control();
            let mut running = pin!(run(&scene, control.clone()));
            tokio::select! {
                () = scene.ports.journal.died.notified() => {}
                () = &mut running => break,
            }
            let before = sent(&scene);
            let last = scene.journal().pop();
            let over = matches!(last, Some(Entry::Ended { .. }));
            let started = matches!(last, Some(Entry::Started { .. }));
            stops.iter().for_each(|stop| control.stop(*stop));
            scene.ports.journal.go_on.notify_one();
            running.await;
            assert_eq!(sent(&scene), before, "{strategy:?} {write}");
            if !over {
                cut_short += 1;
                assert_eq!(&end(&scene), expected, "{strategy:?} {write}");
                let lost = scene
                    .journal()
                    .iter()
                    .any(|entry| matches!(entry, Entry::Lost { .. }));
                assert_eq!(
                    lost,
                    started,
                    "a call that may have been sent is recorded as lost: {write} {:#?}",
                    scene.journal()
                );
            }
        }
    }
    assert!(cut_short > 60, "only {cut_short}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_takes_effect_at_once_during_model_and_tool_calls() {
    let table = [
        (vec![Turn::NeverAnswers], vec![]),
        (
            vec![Turn::Says("", vec![("a", "k8s.get"), ("b", "k8s.get")])],
            vec!["a", "b"],
        ),
        (
            vec![Turn::Says("", vec![("w", "k8s.restart"), ("b", "k8s.get")])],
            vec!["w"],
        ),
    ];
    for (turns, tools) in table {
        for (stops, expected) in [
            ([StopReason::Cancelled, StopReason::Deadline], CANCELLED),
            ([StopReason::Deadline, StopReason::Cancelled], TIMED_OUT),
        ] {
            let scene = Scene::new(Strategy::NativeThinking, 9, turns.clone());
            *scene.ports.tools.call_duration.lock() = Duration::from_secs(60);
            assert_eq!(
                (run_stopped(&scene, 30, &stops).await, end(&scene)),
                (30, expected)
            );
            assert_eq!(*scene.ports.model.calls.lock(), 1);
            assert_eq!(
                scene.ports.tools.calls.lock().keys().collect::<Vec<_>>(),
                tools
            );
            let lost = scene
                .journal()
                .iter()
                .filter(|entry| matches!(entry, Entry::Lost { .. }))
                .count();
            assert_eq!(
                lost,
                usize::from(tools == ["w"]),
                "the outcome of a changing call is unknown"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_two_agents_wait_for_their_model_cancels_both_and_the_stage() {
    let scene = Scene::new(Strategy::NativeThinking, 9, vec![Turn::NeverAnswers]);
    let second = scene.disk().record.plan.stages[0].agents[0].clone();
    scene.disk().record.plan.stages[0].agents.push(second);
    assert_eq!(run_stopped(&scene, 5, &[StopReason::Cancelled]).await, 5);
    assert_eq!(end(&scene), CANCELLED);
    let stage = scene.disk().record.stages[0].clone();
    let runs: Vec<_> = stage.executions.iter().map(|run| run.status).collect();
    assert_eq!(
        (stage.status, runs),
        (RunStatus::Cancelled, vec![RunStatus::Cancelled; 2])
    );
}

#[tokio::test(start_paused = true)]
async fn another_stop_reason_forces_the_conclusion_and_a_cancel_after_it_ends_it() {
    let budget = Entry::Stopped {
        reason: StopReason::Budget,
    };
    let scene = Scene::new(
        Strategy::NativeThinking,
        9,
        vec![Turn::Says("", vec![("a", "k8s.get")])],
    );
    scene.disk().death = Death::Hold(3);
    let control = control();
    {
        let mut running = pin!(run(&scene, control.clone()));
        tokio::select! {
            () = scene.ports.journal.died.notified() => {}
            () = &mut running => panic!("not held"),
        }
    }
    // The worker died after its first answer; the next one finds a stop reason of another version in the journal.
    let mut resumed = scene.disk().clone();
    resumed
        .entries
        .values_mut()
        .for_each(|entries| entries.push(budget.clone().into()));
    (resumed.death, resumed.epoch) = (Death::Never, 2);
    *scene.disk() = resumed.clone();
    run(&scene, control.clone()).await;
    assert_eq!((end(&scene).1, sent(&scene)), (StopReason::Budget, (2, 1)));

    *scene.disk() = resumed;
    control.stop(StopReason::Cancelled);
    run(&scene, control).await;
    assert_eq!((end(&scene), sent(&scene)), (CANCELLED, (2, 1)));
}

#[tokio::test(start_paused = true)]
async fn a_forced_conclusion_has_its_own_time_within_that_of_the_session() {
    let scene = || {
        let turns = vec![
            Turn::Slowly(100, "", vec![("a", "k8s.get")]),
            Turn::NeverAnswers,
        ];
        let scene = Scene::new(Strategy::NativeThinking, 1, turns);
        *scene.ports.tools.call_duration.lock() = Duration::from_secs(15);
        scene
    };
    let whole = scene();
    let began = Instant::now();
    run(&whole, control()).await;
    assert_eq!(began.elapsed().as_secs(), 100 + 15 + 120);
    let error = "forced conclusion LLM call failed: no answer within 120 s".to_owned();
    let outcome = Outcome::Failed {
        error,
        reason: StopReason::Error,
    };
    assert_eq!(whole.journal().last(), Some(&Entry::Ended { outcome }));
    assert!(
        whole
            .ports
            .model
            .requests
            .lock()
            .last()
            .unwrap()
            .tools
            .is_empty()
    );

    let short = scene();
    assert_eq!(
        (
            run_stopped(&short, 150, &[StopReason::Deadline]).await,
            end(&short)
        ),
        (150, TIMED_OUT)
    );
}

#[tokio::test(start_paused = true)]
async fn tokens_that_are_used_up_force_the_conclusion_also_after_a_resume() {
    let scene = || {
        let look = Turn::Says("", vec![("a", "k8s.get")]);
        let scene = Scene::new(
            Strategy::NativeThinking,
            9,
            vec![look.clone(), look, Turn::Says("Cause: spent", vec![])],
        );
        Arc::make_mut(&mut scene.disk().record.plan.stages[0].agents[0])
            .limits
            .max_tokens = 20;
        scene
    };
    let whole = scene();
    run(&whole, control()).await;
    let expected = (
        RunStatus::Completed,
        StopReason::Budget,
        EventType::SessionCompleted,
    );
    assert_eq!(
        (end(&whole), sent(&whole)),
        (expected.clone(), (3, 2)),
        "two answers of 12 tokens"
    );
    let writes = whole.disk().writes;
    for write in 1..=writes {
        let scene = scene();
        scene.disk().death = Death::After(write);
        tokio::select! {
            () = scene.ports.journal.died.notified() => {}
            () = run(&scene, control()) => panic!("outlived"),
        }
        (scene.disk().death, scene.disk().epoch) = (Death::Never, 2);
        if write < writes {
            run(&scene, control()).await;
        }
        assert_eq!(
            (end(&scene), scene.journal()),
            (expected.clone(), whole.journal()),
            "{write}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_synthesis_that_fails_twice_leaves_the_analyses_of_its_agents() {
    let scene = Scene::new(
        Strategy::NativeThinking,
        9,
        vec![Turn::SaysWithTools("Cause: found first"); 2],
    );
    let mut stage = scene.disk().record.plan.stages[0].clone();
    let second = stage.agents[0].clone();
    scene.disk().record.plan.stages[0].agents.push(second);
    Arc::make_mut(&mut stage.agents[0]).strategy = Strategy::Synthesis;
    scene.disk().record.plan.stages.push(stage);
    run(&scene, control()).await;
    assert_eq!(
        sent(&scene),
        (4, 0),
        "two agents, and a synthesis that is tried twice"
    );
    assert_eq!(
        end(&scene),
        (
            RunStatus::Completed,
            StopReason::SynthesisFailed,
            EventType::SessionCompleted
        )
    );
    let analysis = scene.disk().end.clone().unwrap().final_analysis.unwrap();
    assert_eq!(
        analysis.matches("Cause: found first").count(),
        2,
        "{analysis}"
    );
    let emitted: Vec<_> = scene
        .disk()
        .events
        .iter()
        .map(|event| event.event_type.clone())
        .collect();
    let ends = [
        EventType::Error,
        EventType::Error,
        EventType::FinalAnalysis,
        EventType::StageCompleted,
        EventType::ExecutiveSummary,
        EventType::SessionCompleted,
    ];
    assert_eq!(emitted[emitted.len() - ends.len()..], ends);
}

/// An answer with so many calls of this tool, each with its own id.
fn asks(seconds: u64, count: usize, tool: &'static str) -> Turn {
    let mut calls = Vec::new();
    for number in 1..=count {
        let id: &'static str = Box::leak(format!("c{number}").into_boxed_str());
        calls.push((id, tool));
    }
    Turn::Slowly(seconds, "", calls)
}

/// The results of calls that were not run, in their order.
fn not_run(scene: &Scene) -> Vec<(String, String)> {
    let mut not_run = Vec::new();
    for entry in scene.journal() {
        if let Entry::ToolResult(result) = entry
            && result.content.starts_with("Error: not ")
        {
            not_run.push((result.call_id, result.content));
        }
    }
    not_run
}

const NO_TIME: &str =
    "Error: not sent, no time left: the calls before it used up the time of this iteration";

#[tokio::test(start_paused = true)]
async fn all_calls_of_an_answer_share_the_rest_of_the_iteration() {
    for model_secs in [0, 100] {
        let scene = Scene::new(
            Strategy::NativeThinking,
            9,
            vec![asks(model_secs, 17, "k8s.get")],
        );
        let began = Instant::now();
        *scene.ports.tools.call_duration.lock() = Duration::from_hours(1);
        run(&scene, control()).await;
        assert_eq!(
            began.elapsed().as_secs(),
            120,
            "17 calls that hang last no longer than 16"
        );
        assert_eq!(sent(&scene), (2, 16));
        assert_eq!(not_run(&scene), [("c17".to_owned(), NO_TIME.to_owned())]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_change_something_is_not_started_without_time() {
    let turns = vec![Turn::Says(
        "",
        vec![("a", "k8s.get"), ("w", "k8s.restart"), ("x", "k8s.restart")],
    )];
    let scene = Scene::new(Strategy::NativeThinking, 9, turns);
    *scene.ports.tools.call_duration.lock() = Duration::from_hours(1);
    run(&scene, control()).await;
    assert_eq!(sent(&scene), (2, 1));
    assert_eq!(
        not_run(&scene),
        ["w", "x"].map(|id| (id.to_owned(), NO_TIME.to_owned()))
    );
    for entry in scene.journal() {
        let is_started_or_lost = matches!(entry, Entry::Started { .. } | Entry::Lost { .. });
        assert!(!is_started_or_lost, "{:#?}", scene.journal());
    }
}

#[tokio::test(start_paused = true)]
async fn of_one_answer_64_calls_are_run_and_all_under_an_older_plan() {
    let refused = "Error: not run: at most 64 calls of one answer".to_owned();
    for (tool, most, run_calls) in [
        ("k8s.get", 64, 64),
        ("k8s.restart", 64, 64),
        ("k8s.get", 0, 70),
    ] {
        let scene = Scene::new(Strategy::NativeThinking, 9, vec![asks(0, 70, tool)]);
        Arc::make_mut(&mut scene.disk().record.plan.stages[0].agents[0])
            .limits
            .max_calls = most;
        run(&scene, control()).await;
        assert_eq!(sent(&scene), (2, run_calls), "{tool} {most}");
        let expected: Vec<_> = (run_calls + 1..=70)
            .map(|number| (format!("c{number}"), refused.clone()))
            .collect();
        assert_eq!(not_run(&scene), expected);
        let end = scene
            .disk()
            .events
            .iter()
            .find_map(|event| event.metadata.get("tool_calls").cloned());
        assert_eq!(
            end,
            Some(serde_json::json!(run_calls)),
            "only what was run is counted"
        );
    }
}
