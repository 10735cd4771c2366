//! Several actions in one answer of the text format.

use std::sync::Arc;

use crate::execution::absorb::absorb;
use crate::execution::decide::{Decision, decide};
use crate::execution::entry::{Answer, Entry, Unmasked};
use crate::execution::results::{ToolOutput, answered};
use crate::execution::state::State;
use crate::execution::unmasked::Arguments;
use crate::plan::{AgentPlan, Strategy};
use crate::react::ReplyKind;
use crate::testing::{agent_plan, changing_tool, read_only_tool};

const TWO: &str = "Thought: look\nAction: k8s.get\nAction Input: {\"n\": 1}\nAction: k8s__top\nAction Input: n: 2";

/// The plan's switch.
#[derive(Clone, Copy, PartialEq)]
enum Several {
    Allowed,
    Off,
}

fn state(several: Several) -> State {
    let tools = vec![
        read_only_tool("k8s.get"),
        changing_tool("k8s.restart"),
        read_only_tool("k8s.top"),
    ];
    let plan = AgentPlan {
        several_actions: several == Several::Allowed,
        ..agent_plan(Strategy::React, tools)
    };
    let mut state = State::replay(Arc::new(plan), None, Vec::<Entry>::new());
    let Decision::Append(entries) = decide(&state) else {
        panic!("it has no prompt yet")
    };
    entries.into_iter().for_each(|entry| state.apply(entry));
    state
}

fn said(text: &str) -> Answer {
    Answer {
        text: text.to_owned(),
        ..Answer::default()
    }
}

/// The tools of the calls of an answer, and the feedback on it.
fn taken(state: &State, text: &str) -> (Vec<String>, Option<String>) {
    let entries = absorb(state, said(text));
    let calls = entries.iter().filter_map(Entry::answer);
    let tools = calls
        .flat_map(|answer| &answer.calls)
        .map(|call| format!("{} {}", call.tool, call.arguments))
        .collect();
    let feedback = entries.iter().find_map(|entry| {
        if let Entry::Feedback { content, .. } = entry {
            content.lines().next().map(str::to_owned)
        } else {
            None
        }
    });
    (tools, feedback)
}

#[test]
fn several_actions_that_only_read_run_together_in_their_order() {
    let mut state = state(Several::Allowed);
    for entry in absorb(&state, said(TWO)) {
        state.apply(entry);
    }
    let Decision::RunTools(calls) = decide(&state) else {
        panic!("{:?}", decide(&state))
    };
    let named: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(named, ["k8s.get", "k8s.top"]);
    assert_eq!(
        taken(&state, TWO).0,
        ["k8s.get {\"n\": 1}", "k8s.top {\"n\":2}"]
    );
    for call in &calls {
        let content = format!("of {}", call.tool);
        let output = ToolOutput {
            content,
            ..ToolOutput::default()
        };
        state.apply(answered(Strategy::React, call, output));
    }
    let shown: Vec<String> = state
        .messages()
        .into_iter()
        .skip(3)
        .map(|message| message.content)
        .collect();
    assert_eq!(
        shown,
        [
            "Observation:\n    of k8s.get",
            "Observation:\n    of k8s.top"
        ]
    );
    assert!(matches!(decide(&state), Decision::CallModel(_)));
}

#[test]
fn without_the_switch_the_last_action_of_an_answer_counts() {
    let state = state(Several::Off);
    assert_eq!(taken(&state, TWO).0, ["k8s.top {\"n\":2}"]);
    let last = "Action: k8s.get\nAction Input: {}\nAction: k8s.restart\nAction Input: {}";
    assert_eq!(taken(&state, last).0, ["k8s.restart {}"]);
}

#[test]
fn one_action_that_may_change_something_stops_all() {
    let state = state(Several::Allowed);
    let get = "Action: k8s.get\nAction Input: {}\n";
    let restart = "Action: k8s.restart\nAction Input: {}\n";
    let unknown = "Action: k8s.nothing\nAction Input: {}\n";
    let nameless = "Action:\nAction Input: {}\n";
    let changes = "Your response has several actions, and 'k8s.restart' may change something.";
    let no_name = "Your response has several actions, and 'k8s.nothing' is no name of the list";
    let incomplete = "Your response has several actions, and one of them has no name";
    for (text, expected) in [
        (format!("{get}{restart}"), changes),
        (format!("{restart}{get}"), changes),
        (format!("{get}{restart}{get}"), changes),
        (format!("{restart}{restart}"), changes),
        (
            format!("{get}Final Answer: Cause: x\n{restart}{get}"),
            changes,
        ),
        (format!("{unknown}{get}"), no_name),
        (format!("{get}{nameless}"), incomplete),
        (format!("Action: k8s.restart\n{get}"), incomplete),
        (format!("{get}Action: k8s.top\n{get}"), incomplete),
    ] {
        let (calls, feedback) = taken(&state, &text);
        assert_eq!(calls, Vec::<String>::new(), "{text}");
        let feedback = feedback.unwrap_or_default();
        assert!(feedback.starts_with(expected), "{text}: {feedback}");
    }
    assert_eq!(taken(&state, restart).0, ["k8s.restart {}"]);
}

#[test]
fn masked_arguments_of_several_actions_stay_with_their_calls() {
    let mut state = state(Several::Allowed);
    let written = TWO.replace("{\"n\": 1}", "{\"key\": \"one\"}");
    let answer = Answer {
        unmasked: Some(Box::new(Unmasked {
            text: written.clone(),
            ..Unmasked::default()
        })),
        ..said(&written.replace("one", "[MASKED]"))
    };
    let entries = absorb(&state, answer);
    let ids: Vec<String> = entries
        .iter()
        .filter_map(Entry::answer)
        .flat_map(|answer| answer.calls.iter().map(|call| call.id.clone()))
        .collect();
    entries.into_iter().for_each(|entry| state.apply(entry));
    let [first, second] = ids.as_slice() else {
        panic!("{ids:?}")
    };
    assert_eq!(
        state.arguments(first),
        Arguments::Original("{\"key\": \"one\"}")
    );
    assert_eq!(state.arguments(second), Arguments::Stored);
}

#[test]
fn a_mask_that_hides_an_action_stops_all() {
    let state = state(Several::Allowed);
    let answer = Answer {
        unmasked: Some(Box::new(Unmasked {
            text: TWO.to_owned(),
            ..Unmasked::default()
        })),
        ..said(&TWO.replace("Action: k8s.get\nAction Input: {\"n\": 1}\n", "[MASKED]\n"))
    };
    let entries = absorb(&state, answer);
    let [Entry::Answer(answer), Entry::Feedback { .. }] = entries.as_slice() else {
        panic!("{entries:?}")
    };
    let kind = answer.reading.as_ref().map(|reading| reading.kind);
    assert_eq!((answer.calls.len(), kind), (0, Some(ReplyKind::Malformed)));
    assert!(answer.unmasked.is_none() || answer.masked_calls.is_empty());
}
