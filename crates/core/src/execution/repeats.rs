//! Loop detection: counts consecutive answers of the model with the same calls.
//!
//! Two answers are the same if they request the same calls with the same arguments, in any order. An answer without a
//! call does not count. Calls whose results were removed from the conversation may be repeated.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::entry::ToolCall;

/// The third time, the calls run and the model gets feedback.
const FEEDBACK_AT: u32 = 3;
/// The repetition from which on the calls are refused.
const REFUSED_AT: u32 = 4;

/// The calls of the last answer with calls, and how many consecutive answers requested them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Repeats {
    calls: Vec<String>,
    times: u32,
    /// Number of that answer's entry.
    number: u32,
}

impl Repeats {
    /// Adds the calls of an answer; `number` is the number of its entry.
    pub(super) fn add(&mut self, calls: &[ToolCall], number: u32) {
        if !calls.is_empty() {
            let calls = all_canonical(calls);
            self.times = if calls == self.calls {
                self.times.saturating_add(1)
            } else {
                1
            };
            (self.calls, self.number) = (calls, number);
        }
    }

    /// Forgets the calls if their results are removed: results up to this entry number are.
    pub(super) fn blank(&mut self, up_to: u32) {
        if up_to > self.number {
            *self = Self::default();
        }
    }

    /// Whether the model gets feedback about its repeated calls.
    pub(super) fn need_feedback(&self) -> bool {
        self.times == FEEDBACK_AT
    }

    /// Whether the last calls are refused.
    pub(super) fn are_refused(&self) -> bool {
        self.times >= REFUSED_AT
    }
}

/// The calls in a form that depends neither on their order nor on the order of their arguments' keys.
fn all_canonical(calls: &[ToolCall]) -> Vec<String> {
    let mut calls: Vec<String> = calls
        .iter()
        .map(|call| canonical(&call.tool, &call.arguments))
        .collect();
    calls.sort();
    calls
}

/// A call as a text that does not depend on the order of its arguments' keys.
fn canonical(tool: &str, arguments: &str) -> String {
    let arguments = match arguments.trim() {
        "" => "{}".to_owned(),
        text => serde_json::from_str(text).map_or_else(|_| text.to_owned(), with_sorted_keys),
    };
    format!("{tool} {arguments}")
}

fn with_sorted_keys(mut value: Value) -> String {
    value.sort_all_objects();
    value.to_string()
}

/// A hash of the tool and its arguments that does not depend on the order of their keys: 16 hexadecimal digits. Events
/// have it, because their arguments may be masked or cut.
pub fn identity(tool: &str, arguments: &str) -> String {
    let hash = Sha256::digest(canonical(tool, arguments));
    hash.iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::execution::decide::{Decision, decide};
    use crate::execution::entry::{Answer, Entry};
    use crate::execution::results::{ToolOutput, answered, repeats_itself};
    use crate::execution::state::State;
    use crate::plan::Strategy;
    use crate::testing::{agent_plan, read_only_tool};

    fn calls(calls: &[(&str, &str)]) -> Vec<ToolCall> {
        calls
            .iter()
            .map(|(tool, arguments): &(&str, &str)| ToolCall {
                id: String::new(),
                tool: (*tool).to_owned(),
                arguments: (*arguments).to_owned(),
                read_only: true,
            })
            .collect()
    }

    #[test]
    fn the_order_of_calls_and_keys_and_their_spaces_make_no_difference() {
        let same = [
            calls(&[("k8s.get", r#"{"a": 1, "b": [2]}"#), ("k8s.top", "")]),
            calls(&[("k8s.top", "{}"), ("k8s.get", r#"{"b":[2],"a":1}"#)]),
            calls(&[("k8s.get", "{\"a\":1,\n \"b\":[2]}"), ("k8s.top", " { } ")]),
        ];
        let mut repeats = Repeats::default();
        for calls in &same {
            assert!(!repeats.need_feedback());
            repeats.add(calls, 1);
        }
        assert!(repeats.need_feedback() && !repeats.are_refused());
        repeats.add(&[], 1);
        assert!(
            repeats.need_feedback(),
            "an answer without a call does not count"
        );
        repeats.add(&same[1], 1);
        assert!(repeats.are_refused());
    }

    #[test]
    fn another_tool_another_argument_or_one_call_more_resets_the_count() {
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
            assert!(!repeats.need_feedback(), "{other:?}");
        }
    }

    #[test]
    fn calls_whose_results_were_removed_may_be_made_again() {
        let same = calls(&[("k8s.get", "{}")]);
        let mut repeats = Repeats::default();

        for number in [3, 5, 7] {
            repeats.add(&same, number);
        }
        repeats.blank(6);
        assert!(repeats.need_feedback(), "the last result is still there");
        repeats.blank(8);
        assert!(!repeats.need_feedback());
        repeats.add(&same, 11);
        assert!(!repeats.are_refused());
    }

    #[test]
    fn a_model_that_repeats_itself_gets_feedback_once() {
        let plan = Arc::new(agent_plan(Strategy::React, vec![read_only_tool("k8s.get")]));
        let mut state = State::replay(plan, None, Vec::<Entry>::new());
        let Decision::Append(opening) = decide(&state) else {
            panic!()
        };
        opening.into_iter().for_each(|entry| state.apply(entry));
        state.apply(Entry::Feedback {
            content: "keep to the form".to_owned(),
            about: None,
        });
        for id in ["a", "b", "c"] {
            let call = ToolCall {
                id: id.to_owned(),
                ..calls(&[("k8s.get", "{}")]).remove(0)
            };
            state.apply(Entry::Answer(Answer {
                calls: vec![call.clone()],
                ..Answer::default()
            }));
            state.apply(answered(
                Strategy::React,
                &call,
                ToolOutput {
                    content: "94 %".to_owned(),
                    is_error: false,
                    whole_bytes: 0,
                    facts: None,
                },
            ));
        }
        assert_eq!(decide(&state), Decision::Append(vec![repeats_itself()]));
        state.apply(repeats_itself());
        assert!(matches!(decide(&state), Decision::CallModel(_)));
    }
}
