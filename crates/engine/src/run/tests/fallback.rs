//! Tests of the fallback between providers: crashes around the switch, the wait for a limit, and the next stage.

use std::sync::Arc;

use tokio::time::Instant;

use super::{control, run};
use crate::plan::follow_up::{self, Asked};
use crate::ports::{Listing, RunStatus};
use crate::testing::{Death, Scene, Turn};
use tarsy_config::Config;
use tarsy_core::execution::entry::{Entry, StopReason};
use tarsy_core::plan::{ProviderPlan, Strategy};
use tarsy_core::testing::thread;
use tarsy_core::timeline::EventType;

const LOOK: fn(&'static str) -> Turn = |id| Turn::Says("looking", vec![(id, "k8s.get")]);

/// An agent with the providers `p` and `second`; `others` are the turns of the second one.
fn scene(strategy: Strategy, turns: Vec<Turn>, others: Vec<Turn>) -> Scene {
    let scene = Scene::new(strategy, 9, turns);
    let second = "second".to_owned();
    scene
        .ports
        .model
        .others
        .lock()
        .insert(second.clone(), others);
    for agent in scene
        .disk()
        .record
        .plan
        .stages
        .iter_mut()
        .flat_map(|stage| &mut stage.agents)
    {
        let agent = Arc::make_mut(agent);
        let first = agent.providers[0].clone();
        agent.providers.push(ProviderPlan {
            name: second.clone(),
            model: second.clone(),
            ..first
        });
    }
    scene
}

/// The provider of each request, with a mark where the cache is to be cleared.
fn asked(scene: &Scene) -> Vec<String> {
    let requests = scene.ports.model.requests.lock();
    let each = requests
        .iter()
        .map(|request| (request.provider.name.as_str(), request.clear_cache));
    each.map(|(name, clear)| {
        if clear {
            format!("{name} (clear)")
        } else {
            name.to_owned()
        }
    })
    .collect()
}

fn switches(scene: &Scene) -> usize {
    scene
        .journal()
        .iter()
        .filter_map(Entry::switched_to)
        .count()
}

fn fallbacks(scene: &Scene) -> Vec<String> {
    let disk = scene.disk();
    let shown = disk
        .events
        .iter()
        .filter(|event| event.event_type == EventType::ProviderFallback);
    shown.map(|event| event.content.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_around_a_switch_the_next_worker_goes_on_with_one_switch() {
    let mut kills = 0;
    for (strategy, turns, others) in [
        (
            Strategy::NativeThinking,
            vec![LOOK("a"), Turn::Misconfigured],
            vec![LOOK("z"), LOOK("b"), LOOK("c")],
        ),
        (
            Strategy::NativeThinking,
            vec![Turn::Fails],
            vec![Turn::Says("", vec![("w", "k8s.restart")])],
        ),
        (
            Strategy::NativeThinking,
            vec![Turn::Says("", vec![]); 3],
            vec![],
        ),
        (
            Strategy::NativeThinking,
            vec![Turn::NeverAnswers; 3],
            vec![Turn::Fails; 3],
        ),
        (Strategy::React, vec![Turn::Fails], vec![]),
        (Strategy::SingleCall, vec![Turn::Fails], vec![]),
        (Strategy::Synthesis, vec![Turn::Fails], vec![Turn::Fails; 3]),
    ] {
        let new = || scene(strategy, turns.clone(), others.clone());
        let whole = new();
        assert_eq!(run(&whole, control()).await, Ok(()));
        assert_eq!(
            (switches(&whole), fallbacks(&whole).len()),
            (1, 1),
            "{turns:?}"
        );
        let journal = whole.journal();
        let writes = whole.disk().writes;
        let paid = asked(&whole).len();
        for death in (1..=writes).flat_map(|n| [Death::Before(n), Death::After(n)]) {
            let scene = new();
            scene.disk().death = death;
            tokio::select! {
                biased;
                () = scene.ports.journal.died.notified() => {}
                ended = run(&scene, control()) => panic!("outlived {death:?}: {ended:?}"),
            }
            scene.disk().epoch += 1;
            scene.disk().death = Death::Never;
            let switched = switches(&scene) == 1;
            let before = asked(&scene).len();
            if scene.disk().end.is_none() {
                assert_eq!(run(&scene, control()).await, Ok(()), "{turns:?} {death:?}");
            }
            kills += 1;
            // The loss of a call that may change something is the only difference that a crash makes.
            let kinds = |journal: &[Entry]| {
                journal
                    .iter()
                    .map(Entry::kind)
                    .filter(|kind| *kind != "lost")
                    .collect::<Vec<_>>()
            };
            assert_eq!(
                kinds(&scene.journal()),
                kinds(&journal),
                "{turns:?} {death:?}"
            );
            assert_eq!(
                (switches(&scene), fallbacks(&scene).len()),
                (1, 1),
                "{turns:?} {death:?}"
            );
            assert!(
                asked(&scene).len() <= paid + 1,
                "at most one model call is paid twice: {death:?}"
            );
            let after = asked(&scene).split_off(before);
            assert!(
                !switched || after.iter().all(|name| name.starts_with("second")),
                "{death:?} {after:?}"
            );
        }
    }
    assert!(kills > 60, "only {kills} kills");
}

#[tokio::test(start_paused = true)]
async fn the_next_provider_goes_on_in_the_same_conversation_with_an_empty_cache() {
    let scene = scene(
        Strategy::NativeThinking,
        vec![LOOK("a"), Turn::Misconfigured],
        vec![LOOK("z"), LOOK("b")],
    );
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(asked(&scene), ["p", "p", "second (clear)", "second"]);
    assert_eq!(
        fallbacks(&scene),
        ["p has failed (invalid_backend): second goes on"]
    );
    let requests = scene.ports.model.requests.lock();
    let [_, refused, taken_over, _] = requests.as_slice() else {
        panic!("four requests")
    };
    assert_eq!(
        refused.messages, taken_over.messages,
        "the failed call leaves nothing in the conversation"
    );
    let ids: Vec<&str> = taken_over
        .messages
        .iter()
        .filter_map(|message| message.tool_call_id.as_deref())
        .collect();
    assert_eq!(ids, ["a"]);
    let end = scene.disk().end.clone().unwrap();
    assert_eq!(
        (end.status, end.reason),
        (RunStatus::Completed, StopReason::FinalAnswer)
    );
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_cannot_be_waited_out_makes_the_next_provider_go_on_at_once() {
    for (seconds, requests, waited) in [
        (20, vec!["p", "p", "p"], 40.0),
        (61, vec!["p", "second (clear)"], 0.0),
        (100_000, vec!["p", "second (clear)"], 0.0),
    ] {
        let scene = scene(
            Strategy::NativeThinking,
            vec![Turn::Limited(3, seconds)],
            vec![],
        );
        let began = Instant::now();
        assert_eq!(run(&scene, control()).await, Ok(()));
        let took = began.elapsed().as_secs_f64();
        assert!((waited..waited + 1.0).contains(&took), "{seconds}: {took}");
        assert_eq!(asked(&scene), requests, "{seconds}");
        assert_eq!(
            scene.disk().end.as_ref().map(|end| end.status),
            Some(RunStatus::Completed)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn every_stage_begins_with_its_first_provider_again() {
    let scene = scene(Strategy::NativeThinking, vec![Turn::Misconfigured], vec![]);
    {
        let mut disk = scene.disk();
        let stage = disk.record.plan.stages[0].clone();
        disk.record.plan.stages.push(stage);
    }
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(
        asked(&scene),
        ["p", "second (clear)", "p", "second (clear)"]
    );
    assert_eq!(fallbacks(&scene).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_by_the_next_provider_of_its_plan() {
    let text = "llm_providers:\n  \
                p: {provider: openai, model: p, api_key_env: P_KEY}\n  \
                second: {provider: google, model: second, api_key_env: SECOND_KEY}\n\
                defaults: {llm_provider: p, fallback_providers: [second]}\n";
    let config = Config::parse("f", text, &|_| None).unwrap();
    let thread = thread();
    let route = follow_up::route(&config, &thread, None).unwrap();
    let question = Asked {
        thread: &thread,
        question: "Is it over?",
        skills: &[],
    };
    let plan = follow_up::plan(&config, &route, &question, &Listing::default()).unwrap();
    let scene = Scene::new(Strategy::NativeThinking, 9, vec![Turn::Misconfigured]);
    scene
        .ports
        .model
        .others
        .lock()
        .insert("second".to_owned(), vec![]);
    scene.disk().record.plan = plan;
    assert_eq!(run(&scene, control()).await, Ok(()));
    assert_eq!(asked(&scene), ["p", "second (clear)"]);
    assert_eq!(
        fallbacks(&scene),
        ["p has failed (invalid_backend): second goes on"]
    );
    let prompts = scene
        .ports
        .model
        .requests
        .lock()
        .iter()
        .map(|request| request.messages.clone())
        .collect::<Vec<_>>();
    assert!(
        prompts[0] == prompts[1] && prompts[1][1].content.contains("Is it over?"),
        "{prompts:?}"
    );
    assert_eq!(
        scene.disk().end.as_ref().map(|end| end.status),
        Some(RunStatus::Completed)
    );
}
