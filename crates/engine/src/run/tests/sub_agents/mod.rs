//! Tests of sub-agents: they run while their parent waits, and no crash loses, doubles or repeats their work.

mod limits;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::{control, run};
use crate::ports::{RunStatus, SessionEnd};
use crate::run::control::{Control, Interrupted, ReleaseReason};
use crate::testing::{Death, Scene, Turn};
use tarsy_core::execution::entry::{Entry, NotSent, Outcome, Role, StopReason, ToolResult};
use tarsy_core::ids::ExecutionId;
use tarsy_core::plan::{AgentPlan, SUB_AGENTS_VERSION, Strategy, SubAgent};
use tarsy_core::sub_agents;
use tarsy_core::timeline::EventType;

const NATIVE: Strategy = Strategy::NativeThinking;

type Calls = Vec<(&'static str, &'static str)>;

pub(super) fn says(text: &'static str) -> Turn {
    Turn::Says(text, vec![])
}

/// Changes the agent of the first stage.
pub(super) fn change(scene: &Scene, change: impl FnOnce(&mut AgentPlan)) {
    let mut disk = scene.disk();
    let agent = &mut disk.record.plan.stages[0].agents[0];
    let mut changed = AgentPlan::clone(agent);
    change(&mut changed);
    *agent = changed.into();
}

/// An agent that answers with these turns, and sub-agents with theirs; the model of each has its name.
pub(super) fn scene(turns: Vec<Turn>, agents: Vec<(&'static str, Vec<Turn>)>) -> Scene {
    let scene = Scene::new(NATIVE, 9, turns);
    change(&scene, |lead| {
        for (name, _) in &agents {
            let mut plan = AgentPlan::clone(lead);
            plan.providers[0].model = (*name).to_owned();
            plan.user_prompt = "The disk is full.".to_owned();
            plan.sub_agents.clear();
            lead.sub_agents.push(SubAgent {
                name: (*name).to_owned(),
                description: format!("Looks at {name}"),
                plan: plan.into(),
            });
        }
        lead.limits.max_agents = 8;
        let spec = sub_agents::spec(&lead.sub_agents);
        lead.tools.push(spec);
    });
    scene.disk().record.plan.version = SUB_AGENTS_VERSION;
    for (name, turns) in agents {
        let mut others = scene.ports.model.others.lock();
        others.insert(name.to_owned(), turns);
    }
    scene
}

pub(super) fn lead() -> ExecutionId {
    ExecutionId::derive(Scene::new(NATIVE, 1, vec![]).session, 1, 1)
}

pub(super) fn journal(scene: &Scene, execution: ExecutionId) -> Vec<Entry> {
    let disk = scene.disk();
    let entries = disk.entries.get(&execution).into_iter().flatten();
    entries.map(|recorded| recorded.entry.clone()).collect()
}

/// The results of the lead, in order.
pub(super) fn results(scene: &Scene) -> Vec<ToolResult> {
    let journal = journal(scene, lead());
    journal.iter().filter_map(Entry::result).cloned().collect()
}

pub(super) fn contents(scene: &Scene) -> Vec<(String, String)> {
    let results = results(scene).into_iter();
    results
        .map(|result| (result.call_id, result.content))
        .collect()
}

pub(super) fn end(scene: &Scene) -> SessionEnd {
    scene.disk().end.clone().expect("an end")
}

/// The statuses of the sub-agents by their calls.
pub(super) fn statuses(scene: &Scene) -> BTreeMap<String, RunStatus> {
    let calls: Vec<(ExecutionId, String)> = journal(scene, lead())
        .iter()
        .filter_map(Entry::dispatched)
        .map(|dispatched| (dispatched.execution_id, dispatched.call_id.clone()))
        .collect();
    let disk = scene.disk();
    let begun = disk.record.sub_agents.iter();
    begun
        .map(|begun| {
            assert_eq!(begun.parent, lead());
            let id = begun.execution.execution_id;
            let call = calls.iter().find(|(known, _)| *known == id);
            let call = call.expect("no sub-agent without the fact of its dispatch");
            (call.1.clone(), begun.execution.status)
        })
        .collect()
}

/// Two sub-agents with calls of their own, of which one fails, and a call before and after them.
fn busy() -> Scene {
    let calls = vec![
        ("a", "k8s.get"),
        ("one", "dispatch:logs"),
        ("bad", "dispatch:web"),
        ("two", "dispatch:db"),
        ("b", "k8s.get"),
    ];
    let logs = vec![
        Turn::Says("look", vec![("l1", "k8s.get"), ("l2", "k8s.lost")]),
        Turn::Slowly(5, "more", vec![("l3", "k8s.get")]),
        says("Found: the log is full"),
    ];
    let db = vec![
        Turn::Slowly(2, "look", vec![("d1", "k8s.get")]),
        Turn::Misconfigured,
    ];
    scene(
        vec![Turn::Says("both", calls), says("Cause: the log")],
        vec![("logs", logs), ("db", db)],
    )
}

#[tokio::test(start_paused = true)]
async fn sub_agents_answer_calls_of_their_parent() {
    let scene = busy();
    assert_eq!(run(&scene, control()).await, Ok(()));
    let found = contents(&scene);
    let calls: Vec<&str> = found.iter().map(|(call, _)| call.as_str()).collect();
    assert_eq!(calls, ["a", "one", "bad", "two", "b"]);
    assert_eq!(found[1].1, "Found: the log is full");
    assert!(
        found[2].1.contains("there is no agent \"web\""),
        "{found:?}"
    );
    assert_eq!(found[3].1, "the agent failed: no such backend");
    let results = results(&scene);
    let errors: Vec<bool> = results.iter().map(|result| result.is_error).collect();
    assert_eq!(errors, [false, false, true, true, false]);
    assert_eq!(results[2].not_sent, Some(NotSent::UnfitArguments));
    let spent: Vec<Option<u64>> = results
        .iter()
        .map(|result| Some(result.spent.as_ref()?.usage.total()))
        .collect();
    assert_eq!(spent, [None, Some(36), None, Some(12), None]);
    let spent = results[1].spent.as_ref().unwrap();
    assert!(spent.has_looked && spent.has_answer);
    assert_eq!(
        statuses(&scene),
        [("one", RunStatus::Completed), ("two", RunStatus::Failed)]
            .map(|(call, status)| (call.to_owned(), status))
            .into()
    );
    let end = end(&scene);
    assert_eq!(
        (
            end.status,
            end.final_analysis.as_deref(),
            end.error.as_deref()
        ),
        (RunStatus::Completed, Some("Cause: the log"), None),
        "a sub-agent that fails decides nothing"
    );
    assert_eq!(end.reason, StopReason::FinalAnswer);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_counts_what_its_sub_agents_have_used_once() {
    let scene = busy();
    assert_eq!(run(&scene, control()).await, Ok(()));
    let metadata = end(&scene).event.metadata;
    let answered = {
        let disk = scene.disk();
        let calls = disk.model_calls.iter();
        calls.filter(|call| call.answer.is_some()).count()
    };
    assert_eq!(answered, 6);
    assert_eq!(metadata["input_tokens"], 10 * answered);
    assert_eq!(metadata["output_tokens"], 2 * answered);
    assert_eq!(metadata["iterations"], 7, "with the failed one");
    // a, one, two, b, and l1, l2, l3, d1 of the sub-agents.
    assert_eq!(metadata["tool_calls"], 8);
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_gets_its_task_and_only_tools_that_read() {
    let scene = busy();
    assert_eq!(run(&scene, control()).await, Ok(()));
    let requests = scene.ports.model.requests.lock();
    let first = requests
        .iter()
        .find(|request| request.provider.model == "logs")
        .unwrap();
    let user = &first.messages[1];
    assert_eq!(user.role, Role::User);
    assert!(
        user.content.starts_with("The disk is full.") && user.content.contains("    Look at it."),
        "{}",
        user.content
    );
    let tools: BTreeSet<&str> = first.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["k8s.get", "k8s.lost", "k8s.refused"].into());
}

#[tokio::test(start_paused = true)]
async fn the_timeline_shows_a_dispatch_between_its_call_and_its_result() {
    let scene = busy();
    assert_eq!(run(&scene, control()).await, Ok(()));
    let disk = scene.disk();
    let of_call: Vec<(&EventType, &str)> = disk
        .events
        .iter()
        .filter(|event| event.metadata["call_id"] == "one")
        .map(|event| (&event.event_type, event.content.as_str()))
        .collect();
    assert_eq!(
        of_call,
        [
            (
                &EventType::LlmToolCall,
                r#"{"agent":"logs","task":"Look at it."}"#
            ),
            (&EventType::AgentDispatched, "Look at it."),
            (&EventType::ToolResult, "Found: the log is full"),
        ]
    );
    let dispatched = disk
        .events
        .iter()
        .find(|event| event.event_type == EventType::AgentDispatched)
        .unwrap();
    assert_eq!(dispatched.metadata["agent"], "logs");
    let id = lead().of_sub_agent("one");
    assert_eq!(dispatched.metadata["execution_id"], id.to_string());
}

#[tokio::test(start_paused = true)]
async fn results_come_in_the_order_of_the_calls_whatever_ends_first() {
    for seconds in [[1, 2, 3], [3, 2, 1], [2, 3, 1], [2, 1, 3]] {
        let calls: Calls = vec![
            ("one", "dispatch:x"),
            ("two", "dispatch:y"),
            ("three", "dispatch:z"),
        ];
        let names = ["x", "y", "z"].into_iter().zip(seconds);
        let agents = names.map(|(name, secs)| {
            let found = Turn::Slowly(secs, name, vec![]);
            (name, vec![found])
        });
        let scene = scene(
            vec![Turn::Says("all", calls), says("Cause: x")],
            agents.collect(),
        );
        assert_eq!(run(&scene, control()).await, Ok(()));
        let expected = [("one", "x"), ("two", "y"), ("three", "z")]
            .map(|(call, text)| (call.to_owned(), text.to_owned()));
        assert_eq!(contents(&scene), expected, "{seconds:?}");
    }
}

/// Runs until the worker dies, and then another one to the end.
async fn survived(scene: &Scene, death: Death) {
    scene.disk().death = death;
    tokio::select! {
        biased;
        () = scene.ports.journal.died.notified() => {}
        ended = run(scene, control()) => panic!("outlived {death:?}: {ended:?}"),
    }
    scene.disk().epoch += 1;
    scene.disk().death = Death::Never;
    if scene.disk().end.is_none() {
        assert_eq!(run(scene, control()).await, Ok(()), "{death:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_at_any_write_every_journal_is_the_same() {
    let whole = busy();
    assert_eq!(run(&whole, control()).await, Ok(()));
    let writes = whole.disk().writes;
    assert!(writes > 15, "only {writes} writes");
    let paid = *whole.ports.model.calls.lock();
    let entries = |scene: &Scene| -> BTreeMap<ExecutionId, Vec<Entry>> {
        let ids: Vec<ExecutionId> = scene.disk().entries.keys().copied().collect();
        ids.into_iter().map(|id| (id, journal(scene, id))).collect()
    };
    assert_eq!(entries(&whole).len(), 3);
    for death in (1..=writes).flat_map(|n| [Death::Before(n), Death::After(n)]) {
        let scene = busy();
        survived(&scene, death).await;
        assert_eq!(entries(&scene), entries(&whole), "{death:?}");
        let ended = SessionEnd {
            at: end(&whole).at,
            ..end(&scene)
        };
        assert_eq!(ended, end(&whole), "{death:?}");
        assert_eq!(statuses(&scene), statuses(&whole), "{death:?}");
        assert_eq!(scene.disk().events.len(), whole.disk().events.len());
        assert_eq!(scene.disk().tool_calls.len(), whole.disk().tool_calls.len());
        let calls = *scene.ports.model.calls.lock();
        // The parent's, or that of each of two sub-agents.
        assert!(calls <= paid + 2, "{calls} model calls: {death:?}");
        let sent = scene.ports.tools.calls.lock().clone();
        for (call, usual) in whole.ports.tools.calls.lock().iter() {
            let sent = sent[call];
            assert!(
                (1..=usual * 2).contains(&sent),
                "{call} was sent {sent} times: {death:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_that_has_ended_is_not_run_again() {
    let whole = busy();
    assert_eq!(run(&whole, control()).await, Ok(()));
    let id = lead().of_sub_agent("two");
    let writes = whole.disk().writes;
    for n in 1..=writes {
        let scene = busy();
        scene.disk().death = Death::After(n);
        tokio::select! {
            biased;
            () = scene.ports.journal.died.notified() => {}
            _ = run(&scene, control()) => panic!("outlived its death"),
        }
        let has_ended = {
            let disk = scene.disk();
            let mut begun = disk.record.sub_agents.iter();
            begun.any(|begun| {
                begun.execution.execution_id == id && begun.execution.status == RunStatus::Failed
            })
        };
        let asked = |scene: &Scene| {
            let requests = scene.ports.model.requests.lock();
            let of_db = requests
                .iter()
                .filter(|request| request.provider.model == "db");
            of_db.count()
        };
        let before = asked(&scene);
        scene.disk().epoch += 1;
        scene.disk().death = Death::Never;
        if scene.disk().end.is_none() {
            assert_eq!(run(&scene, control()).await, Ok(()));
        }
        if has_ended {
            assert_eq!(asked(&scene), before, "after write {n}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_sub_agent_is_one_of_the_run() {
    let calls = vec![("one", "dispatch:logs")];
    let scene = scene(
        vec![Turn::Says("look", calls), says("Cause: x")],
        vec![("logs", vec![Turn::Panics])],
    );
    assert_eq!(run(&scene, control()).await, Err(Interrupted::Panicked));
}

#[tokio::test(start_paused = true)]
async fn a_drain_releases_a_session_whose_sub_agents_continue_elsewhere() {
    let scene = busy();
    let drain = tokio_util::sync::CancellationToken::new();
    let draining = super::draining(drain.clone());
    let drained = async {
        tokio::time::sleep(Duration::from_secs(3)).await; // paused time
        drain.cancel();
        std::future::pending::<()>().await;
    };
    let ended = tokio::select! {
        ended = run(&scene, draining) => ended,
        () = drained => unreachable!(),
    };
    assert_eq!(ended, Err(Interrupted::Release(ReleaseReason::Drain)));
    assert!(scene.disk().end.is_none());
    assert_eq!(statuses(&scene).len(), 2);
    scene.disk().epoch += 1;
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(contents(&scene)[1].1, "Found: the log is full");
    let sent = scene.ports.tools.calls.lock().clone();
    assert!(sent.values().all(|sent| *sent <= 2), "{sent:?}");
}

/// Runs until `stop` ends the run.
async fn stopped(scene: &Scene, stop: impl FnOnce(&Control)) {
    let control = control();
    let stopping = control.clone();
    let running = run(scene, control);
    tokio::pin!(running);
    tokio::select! {
        ended = &mut running => panic!("ended before the stop: {ended:?}"),
        () = tokio::time::sleep(Duration::from_secs(10)) => {} // paused time
    }
    stop(&stopping);
    assert_eq!(running.await, Ok(()));
}

/// A sub-agent that never answers beside one that has answered.
pub(super) fn stuck() -> Scene {
    let calls = vec![("one", "dispatch:stuck"), ("two", "dispatch:quick")];
    scene(
        vec![Turn::Says("both", calls), says("Cause: y")],
        vec![
            ("stuck", vec![Turn::NeverAnswers]),
            ("quick", vec![says("Found: y")]),
        ],
    )
}

#[tokio::test(start_paused = true)]
async fn a_cancel_request_ends_the_sub_agents_and_then_their_parent() {
    let scene = stuck();
    stopped(&scene, Control::cancel).await;
    assert_eq!(end(&scene).status, RunStatus::Cancelled);
    let expected = [("one", RunStatus::Cancelled), ("two", RunStatus::Completed)];
    assert_eq!(
        statuses(&scene),
        expected
            .map(|(call, status)| (call.to_owned(), status))
            .into()
    );
    let expected = [("one", "the agent was cancelled"), ("two", "Found: y")]
        .map(|(call, text)| (call.to_owned(), text.to_owned()));
    assert_eq!(contents(&scene), expected);
    assert_eq!(
        journal(&scene, lead()).last(),
        Some(&Entry::Ended {
            outcome: Outcome::Cancelled
        })
    );
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_the_sub_agents_and_then_their_parent() {
    let scene = stuck();
    change(&scene, |lead| lead.limits.iteration_timeout_ms = 1_000_000);
    let control = control();
    let _timer = control.stop_after(Duration::from_secs(100));
    let began = Instant::now();
    assert_eq!(run(&scene, control).await, Ok(()));
    assert_eq!(began.elapsed().as_secs(), 100);
    assert_eq!(end(&scene).status, RunStatus::TimedOut);
    assert_eq!(
        statuses(&scene)["one"],
        RunStatus::TimedOut,
        "no sub-agent is left running"
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_at_any_write_a_cancelled_session_leaves_no_sub_agent_running() {
    let whole = stuck();
    stopped(&whole, Control::cancel).await;
    let writes = whole.disk().writes;
    for death in (1..=writes).flat_map(|n| [Death::Before(n), Death::After(n)]) {
        let scene = stuck();
        scene.disk().death = death;
        let running = async {
            let control = control();
            let stopping = control.clone();
            let stop = async {
                tokio::time::sleep(Duration::from_secs(10)).await; // paused time
                stopping.cancel();
                std::future::pending::<()>().await;
            };
            tokio::select! {
                ended = run(&scene, control) => panic!("outlived {death:?}: {ended:?}"),
                () = stop => {}
            }
        };
        tokio::select! {
            biased;
            () = scene.ports.journal.died.notified() => {}
            () = running => {}
        }
        scene.disk().epoch += 1;
        scene.disk().death = Death::Never;
        if scene.disk().end.is_none() {
            let cancelled = control();
            cancelled.cancel();
            assert_eq!(run(&scene, cancelled).await, Ok(()), "{death:?}");
        }
        assert_eq!(end(&scene).status, RunStatus::Cancelled, "{death:?}");
        let left = statuses(&scene);
        assert!(
            left.values().all(|status| *status != RunStatus::Running),
            "{left:?} {death:?}"
        );
    }
}
