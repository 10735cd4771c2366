//! Tests of sessions with several agents: parallel stages, their synthesis, crashes, stops and failures.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{control, draining, run};
use crate::ports::{RunStatus, SessionEnd};
use crate::run::control::{Interrupted, ReleaseReason};
use crate::testing::{Death, Scene, Turn};
use tarsy_core::execution::entry::{Entry, Outcome, StopReason};
use tarsy_core::execution::event_refs::RecordedEntry;
use tarsy_core::ids::ExecutionId;
use tarsy_core::plan::{AgentPlan, StagePlan, Strategy, SuccessPolicy};
use tarsy_core::timeline::{EventStatus, EventType};

/// An agent with a model of its own, which has answers of its own.
fn agent(scene: &Scene, name: &str, turns: Vec<Turn>) -> AgentPlan {
    let mut agent = AgentPlan::clone(&scene.disk().record.plan.stages[0].agents[0]);
    name.clone_into(&mut agent.name);
    name.clone_into(&mut agent.providers[0].model);
    scene
        .ports
        .model
        .others
        .lock()
        .insert(name.to_owned(), turns);
    agent
}

/// Two agents at the same time, then a synthesis of their findings.
fn team(policy: SuccessPolicy, first: Vec<Turn>, second: Vec<Turn>) -> Scene {
    let scene = Scene::new(Strategy::NativeThinking, 9, vec![]);
    let agents = vec![
        agent(&scene, "sre", first).into(),
        agent(&scene, "dba", second).into(),
    ];
    let mut chief = agent(&scene, "chief", vec![Turn::Says("Cause: both", vec![])]);
    chief.strategy = Strategy::Synthesis;
    scene.disk().record.plan.stages = vec![
        StagePlan {
            name: "look".to_owned(),
            success_policy: policy,
            agents,
            review: None,
        },
        StagePlan {
            name: "look synthesis".to_owned(),
            success_policy: SuccessPolicy::default(),
            agents: vec![chief.into()],
            review: None,
        },
    ];
    scene
}

fn calls(ids: &[&'static str]) -> Vec<(&'static str, &'static str)> {
    ids.iter().map(|id| (*id, "k8s.get")).collect()
}

fn says(text: &'static str) -> Turn {
    Turn::Says(text, vec![])
}

fn end(scene: &Scene) -> SessionEnd {
    scene.disk().end.clone().expect("an end")
}

/// Status of every execution and of its stage.
fn statuses(scene: &Scene) -> Vec<(RunStatus, Vec<RunStatus>)> {
    let mut statuses = Vec::new();
    for stage in &scene.disk().record.stages {
        let of_executions = stage.executions.iter().map(|run| run.status).collect();
        statuses.push((stage.status, of_executions));
    }
    statuses
}

/// The journal of an agent.
fn journal(scene: &Scene, stage_no: u32, agent_no: u32) -> Vec<Entry> {
    let id = ExecutionId::derive(scene.session, stage_no, agent_no);
    let recorded = scene.disk().entries.get(&id).cloned().unwrap_or_default();
    recorded
        .into_iter()
        .map(|recorded| recorded.entry)
        .collect()
}

/// The journals of all agents, with the numbers of the events. The times are those of a real clock.
fn journals(scene: &Scene) -> BTreeMap<ExecutionId, Vec<RecordedEntry>> {
    let mut journals = scene.disk().entries.clone();
    for recorded in journals.values_mut().flatten() {
        recorded.at = None;
    }
    journals.into_iter().collect()
}

/// The number of calls of each agent's model.
fn paid(scene: &Scene) -> BTreeMap<String, usize> {
    let mut paid = BTreeMap::new();
    for request in scene.ports.model.requests.lock().iter() {
        *paid.entry(request.provider.model.clone()).or_default() += 1;
    }
    paid
}

/// The first user message to the model of an agent.
fn asked(scene: &Scene, model: &str) -> String {
    let requests = scene.ports.model.requests.lock();
    requests
        .iter()
        .find(|request| request.provider.model == model)
        .unwrap()
        .messages[1]
        .content
        .clone()
}

fn busy_team() -> Scene {
    let first = vec![
        Turn::Says("", calls(&["a", "b"])),
        Turn::Fails,
        says("Cause: logs"),
    ];
    let second = vec![
        Turn::Slowly(3, "", calls(&["c"])),
        Turn::Slowly(3, "", calls(&["d"])),
        says("Cause: slot"),
    ];
    team(SuccessPolicy::All, first, second)
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_at_any_write_a_parallel_stage_ends_with_the_same_journals() {
    let whole = busy_team();
    assert_eq!(run(&whole, control()).await, Ok(()));
    let writes = whole.disk().writes;
    let entries = journals(&whole);
    assert_eq!(end(&whole).final_analysis.as_deref(), Some("Cause: both"));
    assert!(writes > 15, "only {writes} writes");
    for death in (1..=writes).flat_map(|n| [Death::Before(n), Death::After(n)]) {
        let scene = busy_team();
        scene.disk().death = death;
        tokio::select! {
            biased;
            () = scene.ports.journal.died.notified() => {}
            ended = run(&scene, control()) => panic!("outlived {death:?}: {ended:?}"),
        }
        let ended = statuses(&scene).into_iter().flat_map(|(_, runs)| runs);
        let ended = ended
            .filter(|status| *status == RunStatus::Completed)
            .count();
        let before = paid(&scene);
        scene.disk().epoch += 1;
        scene.disk().death = Death::Never;
        if scene.disk().end.is_none() {
            assert_eq!(run(&scene, control()).await, Ok(()), "{death:?}");
        }
        assert_eq!(journals(&scene), entries, "{death:?}");
        let emitted = scene.disk().events.len();
        let all = whole.disk().events.len();
        assert_eq!(emitted, all, "no event is missing or doubled: {death:?}");
        for (model, count) in paid(&whole) {
            let again = paid(&scene)[&model] - count;
            assert!(
                again <= 1,
                "{model} was paid {again} times too often: {death:?}"
            );
        }
        // A completed agent is not asked again.
        let running = paid(&scene)
            .iter()
            .filter(|(model, count)| before.get(*model) != Some(count))
            .count();
        assert!(running + ended <= 3, "{death:?}");
        assert_eq!(
            end(&scene),
            SessionEnd {
                at: end(&scene).at,
                ..end(&whole)
            },
            "{death:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_synthesis_gets_the_findings_of_every_agent_and_who_has_none() {
    let scene = team(
        SuccessPolicy::Any,
        vec![says("Cause: logs [2]")],
        vec![Turn::Misconfigured],
    );
    assert_eq!(run(&scene, control()).await, Ok(()));
    let findings =
        "### sre\n\nCause: logs [2?]\n\n### dba\n\nNo analysis: this agent failed: no such backend";
    let asked = asked(&scene, "chief");
    assert!(
        asked.ends_with(&format!(
            "<!-- STAGE_CONTEXT_START -->\n{findings}\n<!-- STAGE_CONTEXT_END -->"
        )),
        "{asked}"
    );
    let end = end(&scene);
    assert_eq!(
        (end.status, end.reason, end.error),
        (RunStatus::Completed, StopReason::FinalAnswer, None)
    );
    assert_eq!(end.final_analysis.as_deref(), Some("Cause: both"));
}

#[tokio::test(start_paused = true)]
async fn stage_events_name_the_agents_the_policy_and_the_outcomes() {
    let scene = team(
        SuccessPolicy::Any,
        vec![says("Cause: logs")],
        vec![Turn::Misconfigured],
    );
    assert_eq!(run(&scene, control()).await, Ok(()));
    let stages = scene.disk().events.clone().into_iter().filter_map(|event| {
        let is_stage = matches!(
            event.event_type,
            EventType::StageStarted | EventType::StageCompleted
        );
        is_stage.then_some((event.event_type, event.status, event.metadata))
    });
    let started = |stage: &str, agents: &[&str]| {
        let metadata = json!({"stage": stage, "agents": agents, "success_policy": "any"});
        (EventType::StageStarted, EventStatus::Completed, metadata)
    };
    let completed = |stage: &str, outcomes: Value| {
        let metadata = json!({"stage": stage, "status": "completed", "outcomes": outcomes});
        (EventType::StageCompleted, EventStatus::Completed, metadata)
    };
    let expected = [
        started("look", &["sre", "dba"]),
        completed("look", json!({"sre": "completed", "dba": "failed"})),
        started("look synthesis", &["chief"]),
        completed("look synthesis", json!({"chief": "completed"})),
    ];
    assert_eq!(stages.collect::<Vec<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn under_the_policy_all_one_failure_ends_the_session() {
    let slow = vec![Turn::Slowly(60, "", calls(&["a"])), says("Cause: logs")];
    let scene = team(SuccessPolicy::All, slow, vec![Turn::Misconfigured]);
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(
        statuses(&scene),
        [(
            RunStatus::Failed,
            vec![RunStatus::Completed, RunStatus::Failed]
        )]
    );
    let end = end(&scene);
    assert_eq!(
        (end.status, end.reason, end.final_analysis),
        (RunStatus::Failed, StopReason::Error, None)
    );
    assert_eq!(end.error.as_deref(), Some("dba: no such backend"));
    let found = scene
        .disk()
        .events
        .iter()
        .filter(|event| event.event_type == EventType::FinalAnalysis)
        .count();
    assert_eq!(found, 1, "the other agent ran to its end");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_or_the_deadline_ends_both_agents_the_stage_and_the_session() {
    for (stop, status) in [
        (StopReason::Cancelled, RunStatus::Cancelled),
        (StopReason::Deadline, RunStatus::TimedOut),
    ] {
        let scene = team(
            SuccessPolicy::Any,
            vec![Turn::NeverAnswers],
            vec![Turn::NeverAnswers],
        );
        let control = control();
        let stopping = async {
            tokio::time::sleep(Duration::from_secs(30)).await; // paused time
            control.stop(stop);
        };
        let (ended, ()) = tokio::join!(run(&scene, control.clone()), stopping);
        assert_eq!(ended, Ok(()));
        assert_eq!(statuses(&scene), [(status, vec![status, status])]);
        assert_eq!((end(&scene).status, end(&scene).reason), (status, stop));
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_cancel_no_stage_begins_although_one_agent_had_completed() {
    let scene = team(
        SuccessPolicy::Any,
        vec![says("Cause: logs")],
        vec![Turn::NeverAnswers],
    );
    let control = control();
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(30)).await; // paused time
        control.stop(StopReason::Cancelled);
    };
    let (ended, ()) = tokio::join!(run(&scene, control.clone()), cancel);
    assert_eq!(ended, Ok(()));
    assert_eq!(
        statuses(&scene),
        [(
            RunStatus::Completed,
            vec![RunStatus::Completed, RunStatus::Cancelled]
        )]
    );
    assert_eq!(
        (end(&scene).status, end(&scene).reason),
        (RunStatus::Cancelled, StopReason::Cancelled)
    );
}

#[tokio::test(start_paused = true)]
async fn a_drain_lets_each_agent_finish_its_call_and_releases_the_session_once() {
    let turns = |secs, call| vec![Turn::Slowly(secs, "", calls(&[call]))];
    let scene = team(SuccessPolicy::Any, turns(5, "a"), turns(9, "b"));
    let drain = CancellationToken::new();
    let begin = async {
        tokio::time::sleep(Duration::from_secs(1)).await; // paused time
        drain.cancel();
    };
    let (ended, ()) = tokio::join!(run(&scene, draining(drain.clone())), begin);
    assert_eq!(ended, Err(Interrupted::Release(ReleaseReason::Drain)));
    for agent_no in [1, 2] {
        let answers = journal(&scene, 1, agent_no)
            .iter()
            .filter(|entry| matches!(entry, Entry::Answer(_)))
            .count();
        assert_eq!(answers, 1, "the answer of agent {agent_no} is written");
    }
    scene.disk().epoch += 1;
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(end(&scene).status, RunStatus::Completed);
    assert_eq!(
        paid(&scene).into_values().sum::<usize>(),
        2 + 2 + 1,
        "no call is paid twice"
    );
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_ends_every_agent_without_a_further_write() {
    let scene = team(
        SuccessPolicy::Any,
        vec![Turn::NeverAnswers],
        vec![Turn::Slowly(60, "", calls(&["b"]))],
    );
    let control = control();
    let lose = async {
        tokio::time::sleep(Duration::from_secs(5)).await; // paused time
        scene.disk().epoch += 1;
        control.lose();
        scene.disk().writes
    };
    let (ended, writes) = tokio::join!(run(&scene, control.clone()), lose);
    assert_eq!(
        (ended, scene.disk().writes),
        (Err(Interrupted::LeaseLost), writes)
    );
}

#[tokio::test(start_paused = true)]
async fn a_panic_beside_an_agent_that_is_released_counts_as_a_death() {
    let scene = team(
        SuccessPolicy::Any,
        vec![Turn::Unavailable],
        vec![Turn::Slowly(5, "", calls(&["a"])), Turn::Panics],
    );
    assert_eq!(run(&scene, control()).await, Err(Interrupted::Panicked));
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_model_is_unavailable_does_not_stop_another_one() {
    let scene = team(
        SuccessPolicy::Any,
        vec![Turn::Unavailable],
        vec![Turn::Slowly(5, "", calls(&["a"])), says("Cause: x")],
    );
    let unavailable = ReleaseReason::ModelUnavailable("no connection".to_owned());
    assert_eq!(
        run(&scene, control()).await,
        Err(Interrupted::Release(unavailable))
    );
    let Some(Entry::Ended {
        outcome: Outcome::Completed { .. },
    }) = journal(&scene, 1, 2).pop()
    else {
        panic!("the other agent ran to its end")
    };
    scene
        .ports
        .model
        .others
        .lock()
        .insert("sre".to_owned(), vec![says("Cause: y")]);
    scene.disk().epoch += 1;
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(
        paid(&scene)["dba"],
        2,
        "a completed agent is not asked again"
    );
    assert_eq!(end(&scene).status, RunStatus::Completed);
}
