//! What an answer or a failure means: everything that the checkpoint after a model call writes.
//!
//! What was understood is stored with the answer, so a replay never parses again.

use std::collections::HashSet;

use super::entry::{Answer, Entry, FailureSource, Outcome, StopReason, ToolCall};
use super::plan::ToolSpec;
use super::state::State;

/// The entries for an answer.
///
/// Calls get ids that are unique in the execution and the plan's word on what they may do; a call of an unknown tool
/// is answered at once. An answer without calls, or the one after `concluding`, ends the execution.
pub fn absorb(state: &State, answer: Answer) -> Vec<Entry> {
    let last = state.concluding().is_some() || !state.plan().strategy.uses_tools();
    let mut answer = answer;
    if last {
        answer.calls.clear();
    }
    if answer.text.trim().is_empty() && answer.thinking.trim().is_empty() && answer.calls.is_empty() {
        return failed("empty", "the model gave an empty answer", false);
    }
    let calls = std::mem::take(&mut answer.calls);
    let mut seen = HashSet::new();
    answer.calls = (1..).zip(calls).map(|(n, call)| identified(state, call, n, &mut seen)).collect();
    let unknown =
        answer.calls.iter().filter(|call| spec(state, &call.tool).is_none()).map(|call| unknown_tool(state, call));
    let unknown: Vec<Entry> = unknown.collect();
    let ended = answer.calls.is_empty().then(|| completed(state, &answer));
    std::iter::once(Entry::Answer(answer)).chain(unknown).chain(ended).collect()
}

/// Codes of the LLM service that the same conversation can only meet again: nobody but an operator can mend it.
const PERMANENT: [&str; 4] = ["credentials", "invalid_backend", "invalid_request", "model_not_found"];

/// The entries for a model call without an answer. A permanent `code` ends the execution, any other is a failed
/// iteration, and the model is told.
pub fn failed(code: &str, error: &str, timeout: bool) -> Vec<Entry> {
    let next = if PERMANENT.contains(&code) {
        Entry::Ended { outcome: Outcome::Failed { error: error.to_owned(), reason: StopReason::Error } }
    } else {
        Entry::Feedback { content: format!("Error from previous attempt: {error}. Please try again.") }
    };
    vec![Entry::Failed { error: error.to_owned(), timeout, source: FailureSource::Model }, next]
}

fn completed(state: &State, answer: &Answer) -> Entry {
    let text = if answer.text.trim().is_empty() { &answer.thinking } else { &answer.text };
    let reason = state.concluding().unwrap_or(StopReason::FinalAnswer);
    Entry::Ended { outcome: Outcome::Completed { analysis: text.clone(), reason } }
}

fn spec<'a>(state: &'a State, tool: &str) -> Option<&'a ToolSpec> {
    state.plan().tools.iter().find(|spec| spec.name == tool)
}

/// Providers repeat ids or leave them out; the journal needs them unique.
fn identified(state: &State, call: ToolCall, n: u32, seen: &mut HashSet<String>) -> ToolCall {
    let taken = call.id.is_empty() || state.knows_call(&call.id) || seen.contains(&call.id);
    let id = if taken { format!("call-{}-{n}", state.iteration() + 1) } else { call.id };
    seen.insert(id.clone());
    let read_only = spec(state, &call.tool).is_some_and(|spec| spec.read_only);
    ToolCall { id, read_only, ..call }
}

fn unknown_tool(state: &State, call: &ToolCall) -> Entry {
    let names: Vec<&str> = state.plan().tools.iter().map(|spec| spec.name.as_str()).collect();
    let content = format!("Error: unknown tool '{}'. Available tools: {}", call.tool, names.join(", "));
    Entry::ToolResult { call_id: call.id.clone(), tool: call.tool.clone(), content, is_error: true }
}
