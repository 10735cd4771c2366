//! Journals of earlier versions: they replay for ever.

use std::sync::Arc;

use serde_json::Value;
use tarsy::investigation::decide::{Decision, decide};
use tarsy::investigation::entry::{Entry, Outcome, Role, StopReason, Usage};
use tarsy::investigation::plan::AgentPlan;
use tarsy::investigation::state::State;

fn journal() -> (AgentPlan, Vec<Value>) {
    let file: Value = serde_json::from_str(include_str!("../fixtures/journals/v1.json")).unwrap();
    (serde_json::from_value(file["agent"].clone()).unwrap(), file["entries"].as_array().unwrap().clone())
}

#[test]
fn a_journal_of_version_1_is_read_and_written_unchanged() {
    let (_, entries) = journal();
    for entry in entries {
        let read: Entry = serde_json::from_value(entry.clone()).unwrap();
        assert_eq!(read.kind(), entry["kind"]);
        assert_eq!(serde_json::to_value(&read).unwrap(), entry);
    }
}

#[test]
fn a_journal_of_version_1_leads_to_the_same_state() {
    let (plan, entries) = journal();
    let entries = entries.into_iter().map(|entry| serde_json::from_value(entry).unwrap());
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
