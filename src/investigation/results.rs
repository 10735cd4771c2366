//! What a tool call comes to, as the journal and the model get it.
//!
//! A model with bound tools gets a tool result; one that writes its calls down gets an observation, which a person
//! could have written.

use super::entry::{Entry, ToolCall};
use super::plan::Strategy;

/// How every observation begins.
const OBSERVATION: &str = "Observation: ";

/// What the model is told of a call whose outcome nobody knows.
const OUTCOME_UNKNOWN: &str = "the connection was lost after this call was sent. Its outcome is unknown and it is \
    not sent again. Check the present state before you decide what to do.";

/// The entry for an answer of a tool.
pub fn answered(strategy: Strategy, call: &ToolCall, content: String, is_error: bool) -> Entry {
    let content = match (observes(strategy), is_error) {
        (false, _) => content,
        (true, false) => format!("{OBSERVATION}{content}"),
        (true, true) => format!("{}{content}", failed_execution(&call.tool)),
    };
    entry(strategy, call, content, is_error)
}

/// The entry for a call without an answer.
pub fn unanswered(strategy: Strategy, call: &ToolCall, error: &str) -> Entry {
    let content = if observes(strategy) {
        format!("{OBSERVATION}Error - Tool execution failed: {error}")
    } else {
        format!("Error: {error}")
    };
    entry(strategy, call, content, true)
}

/// The entries for a call that was sent and whose outcome nobody knows.
pub fn lost(strategy: Strategy, call: &ToolCall) -> Vec<Entry> {
    let content = if observes(strategy) {
        format!("{OBSERVATION}Error - {OUTCOME_UNKNOWN}")
    } else {
        format!("Error: {OUTCOME_UNKNOWN}")
    };
    vec![Entry::Lost { call_id: call.id.clone() }, entry(strategy, call, content, true)]
}

/// What the model is told after a model call that gave no answer.
pub fn try_again(strategy: Strategy, error: &str) -> Entry {
    let head = if observes(strategy) { OBSERVATION } else { "" };
    Entry::Feedback { content: format!("{head}Error from previous attempt: {error}. Please try again.") }
}

/// An observation without the words around it: what the tool said.
pub fn plain<'a>(tool: &str, observation: &'a str) -> &'a str {
    let said = observation.strip_prefix(OBSERVATION).unwrap_or(observation);
    observation.strip_prefix(failed_execution(tool).as_str()).unwrap_or(said)
}

/// What stands in the place of an observation that was removed.
pub fn removed(text: &str) -> String {
    format!("{OBSERVATION}{text}")
}

/// An observation with a heading before what the tool said.
pub fn numbered(observation: &str, heading: &str) -> String {
    format!("{OBSERVATION}{heading}{}", observation.strip_prefix(OBSERVATION).unwrap_or(observation))
}

fn failed_execution(tool: &str) -> String {
    format!("{OBSERVATION}Error executing {tool}: ")
}

fn observes(strategy: Strategy) -> bool {
    match strategy {
        Strategy::React => true,
        Strategy::SingleCall | Strategy::NativeThinking | Strategy::Synthesis | Strategy::SynthesisNativeThinking => {
            false
        }
    }
}

fn entry(strategy: Strategy, call: &ToolCall, content: String, is_error: bool) -> Entry {
    let (call_id, tool) = (call.id.clone(), call.tool.clone());
    if observes(strategy) {
        Entry::Observation { call_id, tool, content, is_error }
    } else {
        Entry::ToolResult { call_id, tool, content, is_error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_says_what_became_of_the_call_and_the_timeline_only_what_the_tool_said() {
        let call = ToolCall { id: "c".into(), tool: "k8s.get".into(), arguments: "{}".into(), read_only: true };
        let told = |entry: &Entry| {
            let Entry::Observation { content, .. } = entry else { panic!("{entry:?}") };
            (content.clone(), plain("k8s.get", content).to_owned())
        };
        let shown = |entry: Entry, content: &str, said: &str| {
            assert_eq!(told(&entry), (content.to_owned(), said.to_owned()));
        };
        let react = Strategy::React;
        shown(answered(react, &call, "12 pods".into(), false), "Observation: 12 pods", "12 pods");
        let refused = answered(react, &call, "forbidden".into(), true);
        shown(refused, "Observation: Error executing k8s.get: forbidden", "forbidden");
        let silent = "Error - Tool execution failed: no answer within 3 s";
        shown(unanswered(react, &call, "no answer within 3 s"), &format!("Observation: {silent}"), silent);
        assert!(told(&lost(react, &call)[1]).0.starts_with("Observation: Error - the connection was lost"));
    }
}
