//! Tests of the projection: which events each strategy has, and in which order.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use crate::execution::absorb::absorb;
use crate::execution::decide::{Decision, decide};
use crate::execution::entry::StopReason;
use crate::execution::results::{
    ToolOutput, answered as result_of, no_time_left, not_reached, unfit,
};
use crate::plan::Strategy;
use crate::projection::*;
use crate::testing::{Simulation, Turn, agent_plan, read_only_tool};

/// An event as a word: its type, the kind of an error, the source of thinking, `!` for a result that is an error, with
/// the reason if no tool has answered.
fn word(event: &EventDraft) -> String {
    let of = |key: &str| event.metadata[key].as_str().unwrap_or_default().to_owned();
    let is = |key: &str| event.metadata[key] == true;
    let event_type = &event.event_type;
    if *event_type == EventType::LlmThinking {
        format!("thinking:{}", of("source"))
    } else if *event_type == EventType::ToolResult {
        let without = if is("no_answer") { "silent" } else { "" };
        let lost = if is("lost") { "lost" } else { "" };
        format!(
            "result{}{without}{lost}",
            if is("is_error") { "!" } else { "" }
        )
    } else if *event_type == EventType::Error {
        format!("error:{}", of("kind"))
    } else if *event_type == EventType::FinalAnalysis {
        let forced = if is("forced_conclusion") {
            format!(":{}", of("stop_reason"))
        } else {
            String::new()
        };
        format!(
            "final{forced}{}",
            if is("fallback") { ":fallback" } else { "" }
        )
    } else {
        event_type
            .as_str()
            .trim_start_matches("llm_tool_")
            .trim_start_matches("llm_")
            .to_owned()
    }
}

fn events(simulation: &Simulation) -> Vec<EventDraft> {
    simulation
        .run(Vec::new())
        .into_iter()
        .flat_map(|written| written.events)
        .collect()
}

fn summary(simulation: &Simulation) -> String {
    events(simulation)
        .iter()
        .map(word)
        .collect::<Vec<_>>()
        .join(" ")
}

const LOOK: &str = "Thought: look\nAction: k8s.get\nAction Input: {}";
const DONE: &str = "Thought: enough\nFinal Answer: Cause: y";

#[test]
fn each_strategy_has_its_own_types_of_events_and_no_others() {
    let all = [
        EventType::LlmResponse,
        EventType::LlmThinking,
        EventType::LlmToolCall,
        EventType::ToolResult,
        EventType::FinalAnalysis,
        EventType::Error,
    ];
    let table = [
        (Strategy::React, [false, true, true, true, true, true]),
        (
            Strategy::NativeThinking,
            [true, true, true, true, true, true],
        ),
        (Strategy::Synthesis, [false, true, false, false, true, true]),
        (
            Strategy::SynthesisNativeThinking,
            [false, true, false, false, true, true],
        ),
        (
            Strategy::SingleCall,
            [false, true, false, false, true, true],
        ),
    ];
    for (strategy, cells) in table {
        let last = Turn::says(DONE, "hm", &[]);
        let scripts = [
            vec![
                Turn::says(LOOK, "hm", &["k8s.get"]),
                Turn::fails(),
                last.clone(),
            ],
            vec![last],
            vec![Turn::fails(), Turn::fails(), Turn::fails()],
        ];
        let emitted: BTreeSet<String> = scripts
            .into_iter()
            .flat_map(|turns| events(&Simulation::new(strategy, 3, turns)))
            .map(|event| event.event_type.to_string())
            .collect();
        let expected = all
            .iter()
            .zip(cells)
            .filter(|(_, emitted)| *emitted)
            .map(|(event_type, _)| event_type.to_string());
        assert_eq!(emitted, expected.collect(), "{strategy:?}");
    }
}

#[test]
fn within_an_iteration_events_have_one_order() {
    let says = Turn::says;
    let native = [
        (
            vec![says("t", "hm", &["k8s.get", "k8s.get"])],
            "thinking:native response call call result result final",
        ),
        (
            vec![says("", "", &["k8s.restart", "k8s.get"])],
            "call call result result final",
        ),
        (vec![says("t", "hm", &[])], "thinking:native final"),
        (
            vec![says("t", "", &["no.such", "k8s.get"])],
            "response error:unknown_tool call result final",
        ),
        (
            vec![says("", "", &["k8s.silent"])],
            "call result!silent final",
        ),
        (
            vec![says("", "", &["k8s.patch_silent"])],
            "call result!lost final",
        ),
        (vec![Turn::fails()], "error:model final"),
        (vec![says("", "", &[])], "final"),
        (
            vec![says("", "hm", &[]), says("", "", &[])],
            "thinking:native error:empty final",
        ),
        (
            vec![
                Turn::fails(),
                says("", "", &[]),
                says("", "", &[]),
                Turn::fails(),
            ],
            "error:model error:empty error:model final",
        ),
        (
            vec![says("", "", &["k8s.get"]); 4],
            "call result call result call result call result! final:repeated_calls",
        ),
        (
            vec![says("", "", &["no.such"]); 4],
            "error:unknown_tool error:unknown_tool error:unknown_tool error:unknown_tool final:repeated_calls",
        ),
    ];
    let react = [
        (
            vec![says(LOOK, "", &[])],
            "thinking:react call result final",
        ),
        (
            vec![says(LOOK, "hm", &["k8s.get"])],
            "thinking:native thinking:react call result final",
        ),
        (vec![says(DONE, "", &[])], "thinking:react final"),
        (
            vec![says("Thought: hm", "", &[])],
            "thinking:react error:malformed final",
        ),
        (
            vec![says(
                "Thought: hm\nAction: no.such\nAction Input: {}",
                "",
                &[],
            )],
            "thinking:react error:unknown_tool final",
        ),
        (
            vec![says("Action: k8s.silent\nAction Input: {}", "", &[])],
            "call result!silent final",
        ),
        (vec![Turn::times_out()], "error:model final"),
        (
            vec![says("", "hm", &["k8s.get"]), says(" ", "", &[])],
            "thinking:native error:empty final",
        ),
    ];
    let synthesis = [
        (vec![says("t", "hm", &["k8s.get"])], "thinking:native final"),
        (vec![says("", "hm", &[])], "thinking:native final"),
        (vec![Turn::fails()], "error:model final"),
        (
            vec![says("", "", &[]), says("", "", &[])],
            "error:empty final",
        ),
        (
            vec![Turn::fails(), Turn::times_out()],
            "error:model error:model final:fallback",
        ),
        (
            vec![Turn::Fails {
                code: "credentials",
                timeout: false,
            }],
            "error:model final:fallback",
        ),
    ];
    for (strategy, rows) in [
        (Strategy::NativeThinking, native.to_vec()),
        (Strategy::React, react.to_vec()),
        (Strategy::Synthesis, synthesis.to_vec()),
        (Strategy::SynthesisNativeThinking, synthesis.to_vec()),
    ] {
        for (turns, expected) in rows {
            let simulation = Simulation::new(strategy, 9, turns);
            assert_eq!(
                summary(&simulation),
                expected,
                "{strategy:?} {:?}",
                simulation.turns
            );
        }
    }
}

#[test]
fn a_forced_conclusion_names_its_limit() {
    let look = || Turn::says(LOOK, "", &["k8s.get"]);
    let looks = "call result final:max_iterations";
    let table = [
        (
            Strategy::NativeThinking,
            vec![look()],
            format!("response {looks}"),
        ),
        (
            Strategy::NativeThinking,
            vec![look(), Turn::says("t", "hm", &["k8s.get"])],
            { "response call result thinking:native final:max_iterations".to_owned() },
        ),
        (
            Strategy::NativeThinking,
            vec![look(), Turn::fails()],
            "response call result error:model".to_owned(),
        ),
        (
            Strategy::NativeThinking,
            vec![look(), Turn::says("", "", &[])],
            format!("response {looks}"),
        ),
        (
            Strategy::NativeThinking,
            vec![Turn::fails()],
            "error:model".to_owned(),
        ),
        (
            Strategy::React,
            vec![look()],
            format!("thinking:react {looks}"),
        ),
        (Strategy::React, vec![look(), look()], {
            "thinking:react call result thinking:react final:max_iterations".to_owned()
        }),
    ];
    for (strategy, turns, expected) in table {
        let simulation = Simulation::new(strategy, 1, turns);
        assert_eq!(
            summary(&simulation),
            expected,
            "{strategy:?} {:?}",
            simulation.turns
        );
    }
    // Asking again after an empty conclusion does not count as an iteration.
    let simulation = Simulation::new(
        Strategy::NativeThinking,
        1,
        vec![look(), Turn::says("", "", &[])],
    );
    let last = events(&simulation).pop().unwrap();
    let expected = json!({
        "took_ms": 0, "finish_reason": "stop", "forced_conclusion": true, "stop_reason": "max_iterations",
        "iterations_used": 1, "max_iterations": 1,
    });
    assert_eq!(last.metadata, expected);
}

#[test]
fn an_end_without_an_event_of_a_failure_has_its_own() {
    let silent = Turn::says("", "", &["k8s.silent"]);
    let mut simulation = Simulation::new(Strategy::NativeThinking, 9, vec![silent]);
    simulation.limits.max_timeouts = 1;
    assert_eq!(summary(&simulation), "call result!silent error:timeouts");
    let last = events(&simulation).pop().unwrap();
    assert_eq!(
        last.content,
        "aborted after 1 consecutive timeouts (iteration 2/9): k8s.silent: no answer within 3 s"
    );
    simulation.stop = Some((3, StopReason::Cancelled));
    assert_eq!(
        summary(&simulation),
        "call",
        "a cancel is an event of the session"
    );
}

/// A state after its first answer, and the events of this answer.
fn after(answer: Answer) -> (State, Vec<EventDraft>) {
    let plan = agent_plan(Strategy::NativeThinking, vec![read_only_tool("k8s.get")]);
    let mut state = State::replay(Arc::new(plan), None, Vec::<Entry>::new());
    let Decision::Append(opening) = decide(&state) else {
        panic!("no opening")
    };
    opening.into_iter().for_each(|entry| state.apply(entry));
    let entries = absorb(&state, answer);
    let events = project(&state, &entries, &Measured::default());
    entries.into_iter().for_each(|entry| state.apply(entry));
    (state, events)
}

#[test]
fn a_call_that_was_not_sent_has_its_reason_and_does_not_count() {
    let call = || ToolCall {
        id: String::new(),
        tool: "k8s.get".to_owned(),
        arguments: "{}".to_owned(),
        read_only: false,
    };
    let (mut state, _) = after(Answer {
        calls: vec![call(), call(), call(), call()],
        ..Answer::default()
    });
    let calls: Vec<ToolCall> = state
        .open_calls()
        .iter()
        .map(|open| open.call.clone())
        .collect();
    let strategy = Strategy::NativeThinking;
    let silent = results::CallError {
        message: "no connection",
        timeout: false,
    };
    let entries = [
        vec![unfit(strategy, &calls[0], "- /pod is missing".to_owned())],
        not_reached(strategy, &calls[1], silent),
        no_time_left(strategy, &calls[2]),
        vec![result_of(
            strategy,
            &calls[3],
            ToolOutput {
                content: "12 pods".to_owned(),
                ..ToolOutput::default()
            },
        )],
    ]
    .concat();
    let events = project(&state, &entries, &Measured::default());
    let why: Vec<_> = events
        .iter()
        .map(|event| event.metadata.get("not_sent").and_then(Value::as_str))
        .collect();
    assert_eq!(
        why,
        [
            Some("unfit_arguments"),
            Some("unavailable"),
            Some("no_time"),
            None
        ]
    );
    assert_eq!(events[0].content, "- /pod is missing");
    entries.into_iter().for_each(|entry| state.apply(entry));
    assert_eq!((state.tool_calls(), state.open_calls().len()), (1, 0));
}

#[test]
fn reasoning_that_its_provider_has_signed_says_so() {
    for (is_signed, expected) in [(true, Some(&json!(true))), (false, None)] {
        let answer = Answer {
            text: "Cause: x".to_owned(),
            thinking: "hm".to_owned(),
            is_signed,
            ..Answer::default()
        };
        let (_, events) = after(answer);
        assert_eq!(
            (word(&events[0]).as_str(), events[0].metadata.get("signed")),
            ("thinking:native", expected)
        );
        assert!(
            events[1..]
                .iter()
                .all(|event| event.metadata.get("signed").is_none())
        );
    }
}
