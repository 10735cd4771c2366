//! Calls that a model makes again and again, as if it had not seen their results.
//!
//! An answer repeats the one before it when it asks for the same calls with the same arguments, in whatever order.
//! Answers without a call are passed over: they bring nothing new. Calls whose results were removed from the
//! conversation may be made again.

use serde_json::Value;

use super::entry::ToolCall;

/// The same calls for the third time are run, and the model is told.
const TOLD_AT: u32 = 3;
/// From the fourth time on they are not run.
const REFUSED_AT: u32 = 4;

/// The calls of the last answer that had any, and how many answers in a row asked for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Repeats {
    calls: Vec<String>,
    times: u32,
    /// Number of that answer's entry.
    number: u32,
}

impl Repeats {
    /// Takes the calls of an answer in; `number` is that of its entry.
    pub(super) fn add(&mut self, calls: &[ToolCall], number: u32) {
        if !calls.is_empty() {
            let calls = all_canonical(calls);
            self.times = if calls == self.calls { self.times.saturating_add(1) } else { 1 };
            (self.calls, self.number) = (calls, number);
        }
    }

    /// Takes in that results up to this entry number are removed.
    pub(super) fn blank(&mut self, up_to: u32) {
        if up_to > self.number {
            *self = Self::default();
        }
    }

    /// Whether it is time to tell the model.
    pub(super) fn are_to_be_told(&self) -> bool {
        self.times == TOLD_AT
    }

    /// Whether the last calls come too often to be run.
    pub(super) fn are_refused(&self) -> bool {
        self.times >= REFUSED_AT
    }
}

/// Neither the order of the calls nor that of the keys of their arguments makes a difference.
fn all_canonical(calls: &[ToolCall]) -> Vec<String> {
    let mut calls: Vec<String> = calls.iter().map(canonical).collect();
    calls.sort();
    calls
}

/// A call as a text that is the same for the same tool and arguments, whatever the order of their keys.
pub(super) fn canonical(call: &ToolCall) -> String {
    let arguments = match call.arguments.trim() {
        "" => "{}".to_owned(),
        // Objects of `serde_json` are sorted.
        text => serde_json::from_str(text).map_or_else(|_| text.to_owned(), |value: Value| value.to_string()),
    };
    format!("{} {arguments}", call.tool)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::investigation::execution::decide::{Decision, decide};
    use crate::investigation::execution::entry::{Answer, Entry};
    use crate::investigation::execution::results::{ToolOutput, answered, repeats_itself};
    use crate::investigation::execution::state::State;
    use crate::investigation::plan::Strategy;
    use crate::investigation::testing::{agent_plan, read_only_tool};

    fn calls(calls: &[(&str, &str)]) -> Vec<ToolCall> {
        let call = |(tool, arguments): &(&str, &str)| ToolCall {
            id: String::new(),
            tool: (*tool).to_owned(),
            arguments: (*arguments).to_owned(),
            read_only: true,
        };
        calls.iter().map(call).collect()
    }

    #[test]
    fn calls_are_the_same_whatever_their_order_their_spaces_and_that_of_their_keys() {
        let same = [
            calls(&[("k8s.get", r#"{"a": 1, "b": [2]}"#), ("k8s.top", "")]),
            calls(&[("k8s.top", "{}"), ("k8s.get", r#"{"b":[2],"a":1}"#)]),
            calls(&[("k8s.get", "{\"a\":1,\n \"b\":[2]}"), ("k8s.top", " { } ")]),
        ];
        let mut repeats = Repeats::default();
        for calls in &same {
            assert!(!repeats.are_to_be_told());
            repeats.add(calls, 1);
        }
        assert!(repeats.are_to_be_told() && !repeats.are_refused());
        repeats.add(&[], 1);
        assert!(repeats.are_to_be_told(), "an answer without a call is passed over");
        repeats.add(&same[1], 1);
        assert!(repeats.are_refused());
    }

    #[test]
    fn another_tool_another_argument_or_one_call_more_begins_again() {
        let first = calls(&[("k8s.get", "{\"a\":1}")]);
        let others = [
            calls(&[("k8s.top", "{\"a\":1}")]),
            calls(&[("k8s.get", "{\"a\":2}")]),
            calls(&[("k8s.get", "{\"a\":1}"), ("k8s.get", "{\"a\":1}")]),
            calls(&[("k8s.get", "not JSON")]),
        ];
        for other in others {
            let mut repeats = Repeats::default();
            for calls in [&first, &first, &first, &other, &first, &first] {
                repeats.add(calls, 1);
                assert!(!repeats.are_refused(), "{other:?}");
            }
            assert!(!repeats.are_to_be_told(), "{other:?}");
        }
    }

    #[test]
    fn calls_whose_results_were_removed_may_be_made_again() {
        let (same, mut repeats) = (calls(&[("k8s.get", "{}")]), Repeats::default());
        for number in [3, 5, 7] {
            repeats.add(&same, number);
        }
        repeats.blank(6);
        assert!(repeats.are_to_be_told(), "the last result is still there");
        repeats.blank(8);
        assert!(!repeats.are_to_be_told());
        repeats.add(&same, 11);
        assert!(!repeats.are_refused());
    }

    #[test]
    fn a_model_that_repeats_itself_is_told_once_whatever_it_was_told_before() {
        let plan = Arc::new(agent_plan(Strategy::React, vec![read_only_tool("k8s.get")]));
        let mut state = State::replay(plan, None, Vec::<Entry>::new());
        let Decision::Append(opening) = decide(&state) else { panic!() };
        opening.into_iter().for_each(|entry| state.apply(entry));
        state.apply(Entry::Feedback { content: "keep to the form".to_owned() });
        for id in ["a", "b", "c"] {
            let call = ToolCall { id: id.to_owned(), ..calls(&[("k8s.get", "{}")]).remove(0) };
            state.apply(Entry::Answer(Answer { calls: vec![call.clone()], ..Answer::default() }));
            state.apply(answered(Strategy::React, &call, ToolOutput { content: "94 %".to_owned(), is_error: false }));
        }
        assert_eq!(decide(&state), Decision::Append(vec![repeats_itself()]));
        state.apply(repeats_itself());
        assert!(matches!(decide(&state), Decision::CallModel(_)));
    }
}
