//! Tests of tools that a provider refuses: what the next requests, the model and the timeline know of them.

use serde_json::json;

use crate::execution::entry::{Answer, Entry, RefusedTool, Role};
use crate::plan::Strategy;
use crate::testing::{Simulation, Turn, Written};
use crate::timeline::EventType;

fn refusing(turn: Turn, tools: &[&str]) -> Turn {
    let Turn::Says(answer) = turn else {
        panic!("a failure refuses no tool")
    };
    Turn::Says(Box::new(Answer {
        refused_tools: tools
            .iter()
            .map(|tool: &&str| RefusedTool {
                tool: (*tool).to_owned(),
                reason: "bad schema".to_owned(),
            })
            .collect(),
        ..*answer
    }))
}

fn looks(tools: &[&str]) -> Turn {
    Turn::says("", "", tools)
}

fn simulation(turns: Vec<Turn>) -> Simulation {
    Simulation {
        fallbacks: 1,
        ..Simulation::new(Strategy::NativeThinking, 9, turns)
    }
}

fn journal(written: &[Written]) -> Vec<Entry> {
    written
        .iter()
        .flat_map(|written| written.entries.clone())
        .collect()
}

/// The system message of each model call.
fn system_messages(written: &[Written]) -> Vec<String> {
    let shown = written.iter().filter_map(|written| written.shown().first());
    shown
        .inspect(|message| assert_eq!(message.role, Role::System))
        .map(|message| message.content.clone())
        .collect()
}

#[test]
fn the_next_requests_do_without_a_refused_tool_and_the_model_knows() {
    let turns = vec![
        refusing(looks(&["k8s.get"]), &["k8s.restart"]),
        refusing(
            looks(&["k8s.restart", "k8s.get"]),
            &["k8s.restart", "k8s.silent", "k8s.unknown"],
        ),
    ];
    let simulation = simulation(turns);
    let written = simulation.run(Vec::new());
    let entries = journal(&written);
    let [first, second, third] = &*system_messages(&written) else {
        panic!("{written:#?}")
    };
    assert_eq!(first, "system");
    assert!(
        second.starts_with("system\n\nThese tools cannot be called")
            && second.contains(": k8s__restart. "),
        "{second}"
    );
    assert!(third.contains(": k8s__restart, k8s__silent. "), "{third}");

    let results = entries
        .iter()
        .filter_map(Entry::result)
        .map(|result| (result.tool.as_str(), result.is_error));
    assert_eq!(
        results.collect::<Vec<_>>(),
        [
            ("k8s.get", false),
            ("k8s.restart", true),
            ("k8s.get", false)
        ]
    );
    assert!(
        !entries
            .iter()
            .any(|entry| matches!(entry, Entry::Started { .. })),
        "a refused tool is never called"
    );
    let state = simulation.replay(entries);
    let offered: Vec<String> = state
        .offered_tools()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(offered, ["k8s.get", "k8s.patch_silent"]);
    assert_eq!(state.tool_calls(), 2);
}

#[test]
fn the_timeline_names_each_refused_tool_once() {
    let first = refusing(looks(&["k8s.get"]), &["k8s.restart"]);
    let again = refusing(looks(&["k8s.get"]), &["k8s.restart"]);
    let written = simulation(vec![first, again]).run(Vec::new());
    let events: Vec<_> = written.iter().flat_map(|written| &written.events).collect();
    let errors: Vec<_> = events
        .iter()
        .filter(|event| event.event_type == EventType::Error)
        .collect();
    let [error] = &*errors else {
        panic!("{errors:#?}")
    };
    assert_eq!(
        error.content,
        "p refuses the definition of k8s.restart: the investigation goes on without"
    );
    let tools = json!([{"tool": "k8s.restart", "reason": "bad schema"}]);
    let metadata =
        json!({"kind": "refused_tools", "timeout": false, "provider": "p", "tools": tools});
    assert_eq!(error.metadata, metadata);
    assert_eq!(
        events[0].event_type,
        EventType::Error,
        "it precedes the call of the answer"
    );
}

#[test]
fn another_provider_is_offered_all_tools_again() {
    let turns = vec![
        refusing(looks(&["k8s.get"]), &["k8s.get"]),
        Turn::Fails {
            code: "credentials",
            timeout: false,
        },
        looks(&["k8s.get"]),
    ];
    let simulation = simulation(turns);
    let written = simulation.run(Vec::new());
    let systems = system_messages(&written);
    assert_eq!(
        systems
            .iter()
            .map(|system| system != "system")
            .collect::<Vec<_>>(),
        [false, true, false, false]
    );
    let journal = journal(&written);
    assert_eq!(simulation.replay(journal).offered_tools().len(), 4);
}

#[test]
fn an_answer_is_stored_as_before_unless_a_tool_was_refused() {
    let plain = serde_json::to_value(Answer::default()).unwrap();
    assert_eq!(plain.get("refused_tools"), None);
    let Turn::Says(refusing) = refusing(looks(&[]), &["k8s.get"]) else {
        panic!()
    };
    let stored = serde_json::to_value(&refusing).unwrap();
    assert_eq!(
        stored["refused_tools"],
        json!([{"tool": "k8s.get", "reason": "bad schema"}])
    );
    assert_eq!(serde_json::from_value::<Answer>(stored).unwrap(), *refusing);
}
