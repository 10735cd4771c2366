//! What an answer or a failure means: everything that the checkpoint after a model call writes.
//!
//! What was understood is stored with the answer, so a replay never parses again.

use std::collections::HashSet;

use super::entry::{Answer, Entry, FailureSource, Outcome, Reading, StopReason, ToolCall};
use super::plan::{Strategy, ToolSpec};
use super::react::{self, ReplyKind};
use super::results::try_again;
use super::state::State;
use super::window::EXCEEDED;

/// The entries for an answer.
///
/// Calls get ids that are unique in the execution and the plan's word on what they may do; a call of an unknown tool
/// is answered at once. An answer that is final, or the one after `concluding`, ends the execution.
pub fn absorb(state: &State, answer: Answer) -> Vec<Entry> {
    let strategy = state.plan().strategy;
    let last = state.concluding().is_some() || !strategy.uses_tools();
    let mut answer = answer;
    if last || !strategy.binds_tools() {
        answer.calls.clear();
    }
    let says_nothing = answer.text.trim().is_empty() && (!last || answer.thinking.trim().is_empty());
    match strategy {
        Strategy::React if says_nothing => empty(strategy),
        Strategy::React if last => concluded(state, answer),
        Strategy::React => read(state, answer),
        Strategy::SingleCall | Strategy::NativeThinking | Strategy::Synthesis | Strategy::SynthesisNativeThinking => {
            called(state, answer)
        }
    }
}

/// Codes of the LLM service that the same conversation can only meet again: nobody but an operator can mend it.
const PERMANENT: [&str; 4] = ["credentials", "invalid_backend", "invalid_request", "model_not_found"];

/// The entries for a model call without an answer. A permanent `code` ends the execution, any other is a failed
/// iteration, and the model is told; not so when there is no room for telling.
pub fn failed(strategy: Strategy, code: &str, error: &str, timeout: bool) -> Vec<Entry> {
    let next = if PERMANENT.contains(&code) {
        Some(Entry::Ended { outcome: Outcome::Failed { error: error.to_owned(), reason: StopReason::Error } })
    } else {
        (code != EXCEEDED).then(|| try_again(strategy, error))
    };
    let (error, code) = (error.to_owned(), code.to_owned());
    let failed = Entry::Failed { error, timeout, source: FailureSource::Model, code };
    std::iter::once(failed).chain(next).collect()
}

fn empty(strategy: Strategy) -> Vec<Entry> {
    failed(strategy, "empty", "the model gave an empty answer", false)
}

/// An answer whose calls are structured: without any it is the last one.
fn called(state: &State, mut answer: Answer) -> Vec<Entry> {
    if answer.text.trim().is_empty() && answer.thinking.trim().is_empty() && answer.calls.is_empty() {
        return empty(state.plan().strategy);
    }
    let calls = std::mem::take(&mut answer.calls);
    let mut seen = HashSet::new();
    answer.calls = (1..).zip(calls).map(|(n, call)| identified(state, call, n, &mut seen)).collect();
    let unknown =
        answer.calls.iter().filter(|call| spec(state, &call.tool).is_none()).map(|call| unknown_tool(state, call));
    let unknown: Vec<Entry> = unknown.collect();
    let ended = answer.calls.is_empty().then(|| completed(state, said(&answer)));
    std::iter::once(Entry::Answer(answer)).chain(unknown).chain(ended).collect()
}

/// An answer that says in its text what it is.
fn read(state: &State, mut answer: Answer) -> Vec<Entry> {
    let reply = react::read(&answer.text, Some(&state.plan().tools));
    answer.reading = Some(Box::new(Reading { kind: reply.kind, thought: reply.thought, problem: reply.problem }));
    let next = match reply.kind {
        ReplyKind::Final => Some(completed(state, &reply.final_answer.unwrap_or_default())),
        ReplyKind::Action => {
            let call = ToolCall {
                id: String::new(),
                tool: reply.action.unwrap_or_default(),
                arguments: reply.arguments_text.unwrap_or_default(),
                read_only: false,
            };
            answer.calls = vec![identified(state, call, 1, &mut HashSet::new())];
            None
        }
        ReplyKind::UnknownTool | ReplyKind::Malformed => {
            Some(Entry::Feedback { content: reply.feedback.unwrap_or_default() })
        }
    };
    std::iter::once(Entry::Answer(answer)).chain(next).collect()
}

/// The answer after which nothing comes, whatever it asks for.
fn concluded(state: &State, mut answer: Answer) -> Vec<Entry> {
    let conclusion = react::conclude(said(&answer));
    answer.reading = Some(Box::new(Reading { kind: ReplyKind::Final, thought: conclusion.thought, problem: None }));
    vec![Entry::Answer(answer), completed(state, &conclusion.analysis)]
}

/// The text, else the reasoning.
fn said(answer: &Answer) -> &str {
    if answer.text.trim().is_empty() { &answer.thinking } else { &answer.text }
}

fn completed(state: &State, analysis: &str) -> Entry {
    let reason = state.concluding().unwrap_or(StopReason::FinalAnswer);
    Entry::Ended { outcome: Outcome::Completed { analysis: analysis.to_owned(), reason } }
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
