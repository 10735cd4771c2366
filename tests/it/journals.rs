//! Journals of earlier versions: they replay for ever.

use std::sync::Arc;

use serde_json::Value;
use tarsy::investigation::decide::{Decision, decide};
use tarsy::investigation::entry::{Entry, Outcome, Role, StopReason, Usage};
use tarsy::investigation::plan::AgentPlan;
use tarsy::investigation::state::State;

const V1: &str = include_str!("../fixtures/journals/v1.json");
const V2: &str = include_str!("../fixtures/journals/v2.json");

fn journal(file: &str) -> (AgentPlan, Vec<Value>) {
    let file: Value = serde_json::from_str(file).unwrap();
    (serde_json::from_value(file["agent"].clone()).unwrap(), file["entries"].as_array().unwrap().clone())
}

#[test]
fn a_journal_of_any_version_is_read_and_written_unchanged() {
    for entry in [V1, V2].into_iter().flat_map(|file| journal(file).1) {
        let read: Entry = serde_json::from_value(entry.clone()).unwrap();
        assert_eq!(read.kind(), entry["kind"]);
        assert_eq!(serde_json::to_value(&read).unwrap(), entry);
    }
}

#[test]
fn a_journal_of_version_1_leads_to_the_same_state() {
    let (plan, entries) = journal(V1);
    let entries = entries.into_iter().map(|entry| serde_json::from_value::<Entry>(entry).unwrap());
    let state = State::replay(Arc::new(plan), None, entries);
    let outcome = Outcome::Completed { analysis: "Cause: heap".to_owned(), reason: StopReason::Budget };
    assert_eq!(decide(&state), Decision::Done(outcome));
    assert_eq!((state.iteration(), state.provider(), state.tool_calls(), state.open_calls()), (3, 1, 2, &[][..]));
    let usage = Usage { input_tokens: 300, cached_tokens: 40, output_tokens: 50, thinking_tokens: 5 };
    assert_eq!(state.usage(), usage);
    let shown: Vec<_> = state.messages().iter().map(|m| (m.role, m.content.clone())).collect();
    let blanked = "[this result was removed to save space; call the tool again if you need it]";
    let expected = [
        (Role::System, "You are an SRE."),
        (Role::User, "The disk is full."),
        (Role::User, "Error from previous attempt: 503. Please try again."),
        (Role::Assistant, "looking"),
        (Role::Tool, blanked),
        (Role::Tool, "Error: unknown"),
        (Role::User, "Conclude now."),
        (Role::Assistant, "Cause: heap"),
    ];
    assert_eq!(shown, expected.map(|(role, text)| (role, text.to_owned())));
}

#[test]
fn a_journal_of_version_2_leads_to_the_same_state() {
    let (plan, entries) = journal(V2);
    let entries: Vec<Entry> = entries.into_iter().map(|entry| serde_json::from_value(entry).unwrap()).collect();
    let plan = Arc::new(plan);
    let state = State::replay(Arc::clone(&plan), None, entries.clone());
    let outcome = Outcome::Completed { analysis: "Cause: logs".to_owned(), reason: StopReason::FinalAnswer };
    assert_eq!(decide(&state), Decision::Done(outcome));
    assert_eq!((state.iteration(), state.tool_calls(), state.open_calls()), (5, 2, &[][..]));
    let shown: Vec<_> = state.messages().iter().map(|m| (m.role, m.content.clone())).collect();
    let expected = [
        (Role::System, "You are an SRE."),
        (Role::User, "The disk is full."),
        (Role::Assistant, "Thought: look\nAction: host.df\nAction Input: host: db-3\n- x"),
        (Role::User, "Observation: [this result was removed to save space; call the tool again if you need it]"),
        (Role::Assistant, "It is full."),
        (Role::User, "Your response has none of the sections."),
        (Role::Assistant, "Action: host.du\nAction Input: {}"),
        (Role::User, "Observation: Error - Unknown tool 'host.du'."),
        (Role::Assistant, "Action: host.restart\nAction Input: {}"),
        (Role::User, "Observation: Error - unknown"),
        (Role::Assistant, "Thought: enough\nFinal Answer: Cause: logs"),
    ];
    assert_eq!(shown, expected.map(|(role, text)| (role, text.to_owned())));
    assert!(state.messages().iter().all(|message| message.tool_calls.is_empty()));

    let cut = State::replay(plan, None, entries.into_iter().take(10));
    assert!(matches!(decide(&cut), Decision::Append(entries) if matches!(entries.as_slice(),
        [Entry::Lost { .. }, Entry::Observation { is_error: true, .. }])));
}
