//! Tests of event numbers in the conversation: they name the right events and survive a change of the worker.

use std::collections::BTreeMap;

use super::control;
use crate::ports::Message;
use crate::testing::{Death, Scene, Turn};
use tarsy_core::execution::entry::Role;
use tarsy_core::execution::results::indented;
use tarsy_core::plan::Strategy;

const LOOK: &str = "Thought: look\nAction: k8s.get\nAction Input: {}";

fn scene(strategy: Strategy) -> Scene {
    let turns = match strategy {
        Strategy::React => vec![
            Turn::Says(LOOK, vec![]),
            Turn::Fails,
            Turn::Says(LOOK, vec![]),
        ],
        Strategy::NativeThinking
        | Strategy::SingleCall
        | Strategy::Synthesis
        | Strategy::SynthesisNativeThinking => {
            vec![
                Turn::Says(
                    "1",
                    vec![("a", "k8s.get"), ("b", "no.such"), ("c", "k8s.refused")],
                ),
                Turn::Fails,
                Turn::Says("2", vec![("d", "k8s.get")]),
            ]
        }
    };
    Scene::new(strategy, 9, turns)
}

async fn run(scene: &Scene) {
    tokio::select! {
        ended = super::run(scene, control()) => ended.unwrap(),
        () = scene.ports.journal.died.notified() => {}
    }
}

/// The conversation of each request, by its iteration; a repeated request has to have the same conversation.
fn conversations(scene: &Scene) -> BTreeMap<String, Vec<Message>> {
    let mut all = BTreeMap::new();
    for request in scene.ports.model.requests.lock().iter() {
        let known = all
            .entry(request.request_id.clone())
            .or_insert_with(|| request.messages.clone());
        assert_eq!(*known, request.messages, "{}", request.request_id);
    }
    all
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_at_any_write_the_model_sees_the_same_event_numbers() {
    for strategy in [Strategy::React, Strategy::NativeThinking] {
        let whole = scene(strategy);
        run(&whole).await;
        let expected = conversations(&whole);
        let writes = whole.disk().writes;
        assert!(format!("{expected:?}").contains("[event "), "{expected:?}");
        for death in (1..=writes).flat_map(|n| [Death::Before(n), Death::After(n)]) {
            let scene = scene(strategy);
            scene.disk().death = death;
            run(&scene).await;
            scene.disk().epoch += 1;
            scene.disk().death = Death::Never;
            if scene.disk().end.is_none() {
                run(&scene).await;
            }
            assert_eq!(conversations(&scene), expected, "{strategy:?} {death:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_result_is_shown_with_the_number_of_the_event_that_tells_it() {
    let scene = scene(Strategy::NativeThinking);
    run(&scene).await;
    let requests = scene.ports.model.requests.lock();
    let results = requests
        .last()
        .unwrap()
        .messages
        .iter()
        .filter(|message| message.role == Role::Tool);
    let shown: Vec<_> = results
        .map(|message| (message.tool_name.clone().unwrap(), message.content.clone()))
        .collect();
    let disk = scene.disk();
    // A call of an unknown tool has no result event.
    let (numbered, unnumbered): (Vec<_>, Vec<_>) = shown
        .iter()
        .partition(|(_, content)| content.starts_with("[event "));
    assert!(
        unnumbered
            .iter()
            .all(|(_, content)| content.trim_start().starts_with("Error: unknown tool")),
        "{unnumbered:?}"
    );
    for (tool, content) in &numbered {
        let number: usize = content
            .strip_prefix("[event ")
            .unwrap()
            .split_once(']')
            .unwrap()
            .0
            .parse()
            .unwrap();
        let event = &disk.events[number - 1];
        assert_eq!(
            content.split_once('\n').unwrap().1,
            indented(&event.content)
        );
        assert_eq!(event.metadata["tool_name"], **tool);
    }
    assert_eq!((numbered.len(), unnumbered.len()), (3, 1));
}
