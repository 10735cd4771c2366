//! Tests of requests that are made again from what is stored: they are the requests that the model received.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;

use super::survival::scripts;
use super::{control, run};
use crate::ports::{Journal as _, ModelRequest, Timeline};
use crate::testing::{Death, Disk, Scene, Turn};
use tarsy_core::clock::ClockPlan;
use tarsy_core::execution::decide::Purpose;
use tarsy_core::execution::request::rebuilt::{CallSite, StoredCall};
use tarsy_core::ids::ExecutionId;
use tarsy_core::plan::{AgentPlan, ProviderPlan, Strategy, SummaryPlan};
use tarsy_core::testing::alert;

/// An addition to the plan of an agent.
#[derive(Clone, Copy, Debug)]
enum Addition {
    Nothing,
    /// A second provider, which takes over; a second stage, which gets the findings of the first.
    Provider,
    /// A context window in which the results of two iterations have no room.
    LittleRoom,
    /// Summaries of every result, and times.
    Summaries,
    /// Tools that a conclusion declares.
    Declared,
}

const ADDITIONS: [Addition; 5] = [
    Addition::Nothing,
    Addition::Provider,
    Addition::LittleRoom,
    Addition::Summaries,
    Addition::Declared,
];

impl Addition {
    fn add_to(self, scene: &Scene) {
        let mut disk = scene.disk();
        let stages = &mut disk.record.plan.stages;
        let agent = Arc::make_mut(&mut stages[0].agents[0]);
        let named = |name: &str, provider: &ProviderPlan| ProviderPlan {
            name: name.to_owned(),
            model: name.to_owned(),
            ..provider.clone()
        };
        match self {
            Self::Nothing => {}
            Self::Declared => agent.providers[0].keeps_tools = true,
            Self::Provider => {
                agent.providers.push(named("second", &agent.providers[0]));
                let second = stages[0].clone();
                stages.push(second);
                scene.ports.model.others.lock().insert(
                    "second".to_owned(),
                    vec![Turn::Says("again", vec![("z", "k8s.get")])],
                );
            }
            Self::LittleRoom => {
                agent.providers[0].context_window = 400;
                *scene.ports.tools.rest.lock() = " and more of it".repeat(30);
            }
            Self::Summaries => {
                let provider = named("cheap", &agent.providers[0]);
                agent.summaries = Some(SummaryPlan {
                    provider,
                    over_tokens: [("k8s".to_owned(), 2)].into(),
                });
                agent.clock = Some(ClockPlan::of_alert(&alert("x"), Utc::now()));
                scene
                    .ports
                    .model
                    .others
                    .lock()
                    .insert("cheap".to_owned(), vec![Turn::Says("3 pods", vec![])]);
            }
        }
    }
}

/// The plan of the agent of an execution.
fn plan_of(scene: &Scene, execution: ExecutionId) -> Arc<AgentPlan> {
    let disk = scene.disk();
    for stage in &disk.record.stages {
        let mut executions = stage.executions.iter();
        if let Some(found) = executions.find(|run| run.execution_id == execution) {
            let stage = disk.record.plan.stage(stage.stage_no).unwrap();
            return Arc::clone(stage.agent(found.agent_no).unwrap());
        }
    }
    panic!("no stage has {execution}");
}

/// The request of a stored call, made again. `timeout` is the one part that is not made from the journal.
async fn rebuilt(
    scene: &Scene,
    execution: ExecutionId,
    call: StoredCall,
    timeout: Duration,
) -> ModelRequest {
    let journal = scene
        .ports
        .journal
        .entries(scene.session, execution)
        .await
        .unwrap();
    let site = CallSite::find(plan_of(scene, execution), journal, call).unwrap();
    let result = match site.result_event() {
        Some(event) => {
            scene
                .ports
                .journal
                .result(scene.session, Timeline::Own, event)
                .await
                .unwrap()
                .unwrap()
                .text
        }
        None => None,
    };
    ModelRequest::new(
        scene.session,
        execution,
        site.request(result.as_deref()).unwrap(),
        timeout,
    )
}

/// Asserts that each stored call is the last request that the model received under its id. Counts by kind.
async fn assert_rebuilt(scene: &Scene, what: &str, counts: &mut BTreeMap<&'static str, usize>) {
    let mut last: BTreeMap<String, ModelRequest> = BTreeMap::new();
    for sent in scene.ports.model.requests.lock().iter() {
        last.insert(
            sent.request_id.clone(),
            ModelRequest {
                timeout: Duration::ZERO,
                ..sent.clone()
            },
        );
    }
    let Disk {
        call_places,
        model_calls,
        ..
    } = scene.disk().clone();
    assert!(
        call_places.len() == model_calls.len() && !call_places.is_empty(),
        "{what}"
    );
    for ((execution, call), record) in call_places.into_iter().zip(model_calls) {
        let rebuilt = rebuilt(scene, execution, call, Duration::ZERO).await;
        // Each call has its own request, so it is taken out.
        assert_eq!(
            last.remove(&rebuilt.request_id),
            Some(rebuilt.clone()),
            "{what}"
        );
        assert_eq!(rebuilt.provider.name, record.provider.name, "{what}");
        *counts.entry(call.purpose.as_str()).or_default() += 1;
        for message in &rebuilt.messages {
            let is_blanked = message.content.contains("was removed to save space");
            *counts.entry("blanked").or_default() += usize::from(is_blanked);
        }
        *counts.entry("switched").or_default() += usize::from(rebuilt.clear_cache);
    }
}

/// Different calls, one after the other.
fn looks_at_pods() -> Vec<Turn> {
    const POD_A: &str = "Thought: look\nAction: k8s.get\nAction Input: {\"pod\": \"a\"}";
    const POD_B: &str = "Thought: look\nAction: k8s.get\nAction Input: {\"pod\": \"b\"}";
    const POD_C: &str = "Thought: look\nAction: k8s.get\nAction Input: {\"pod\": \"c\"}";
    const POD_D: &str = "Thought: look\nAction: k8s.get\nAction Input: {\"pod\": \"d\"}";
    [POD_A, POD_B, POD_C, POD_D]
        .map(|text| Turn::Says(text, vec![]))
        .to_vec()
}

#[tokio::test(start_paused = true)]
async fn the_rebuilt_request_is_the_sent_one() {
    let mut counts = BTreeMap::new();
    let further = [9, 3].map(|limit| (Strategy::React, limit, looks_at_pods()));
    for (strategy, limit, turns) in scripts().into_iter().chain(further) {
        for addition in ADDITIONS {
            let scene = || {
                let scene = Scene::new(strategy, limit, turns.clone());
                addition.add_to(&scene);
                scene
            };
            let whole = scene();
            assert_eq!(run(&whole, control()).await, Ok(()));
            assert_rebuilt(
                &whole,
                &format!("{strategy:?} {addition:?} {turns:?}"),
                &mut counts,
            )
            .await;
            let writes = whole.disk().writes;
            // The test of crashes has every write.
            for n in (1..=writes).step_by(2) {
                let death = if n % 4 == 1 {
                    Death::Before(n)
                } else {
                    Death::After(n)
                };
                let scene = scene();
                scene.disk().death = death;
                tokio::select! {
                    biased;
                    () = scene.ports.journal.died.notified() => {}
                    ended = run(&scene, control()) => panic!("outlived {death:?}: {ended:?}"),
                }
                scene.disk().epoch += 1;
                scene.disk().death = Death::Never;
                if scene.disk().end.is_none() {
                    assert_eq!(run(&scene, control()).await, Ok(()), "{turns:?} {death:?}");
                }
                assert_rebuilt(
                    &scene,
                    &format!("{strategy:?} {addition:?} {turns:?} {death:?}"),
                    &mut counts,
                )
                .await;
            }
        }
    }
    println!("requests made again: {counts:?}");
    let seen = Purpose::ALL
        .map(Purpose::as_str)
        .into_iter()
        .chain(["blanked", "switched"]);
    let rare: Vec<&str> = seen
        .filter(|kind| counts.get(kind).copied().unwrap_or_default() < 50)
        .collect();
    assert_eq!(rare, Vec::<&str>::new(), "{counts:?}");
}
