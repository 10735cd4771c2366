//! What an answer or a failure means: everything that the checkpoint after a model call writes.
//!
//! What was understood is stored with the answer, so a replay never parses again.

use std::collections::HashSet;

use super::cited_events;
use super::entry::{Answer, Entry, FailureSource, Outcome, ParsedReply, StopReason, ToolCall};
use super::results::{CallError, empty_answer, empty_last_answer, says_timeout, try_again};
use super::state::State;
use super::unmasked::note_masked_calls;
use super::window::EXCEEDED;
use crate::investigation::mask::MASKED;
use crate::investigation::plan::Strategy;
use crate::investigation::react::{self, Reply, ReplyKind};

/// The entries for an answer.
///
/// Calls get ids that are unique in the execution and the plan's word on what they may do. An answer that is final, or
/// the one after `concluding`, ends the execution.
pub fn absorb(state: &State, answer: Answer) -> Vec<Entry> {
    let mut entries = understood(state, answer);
    if let Some(Entry::Answer(answer)) = entries.first_mut() {
        note_masked_calls(answer);
    }
    entries
}

fn understood(state: &State, answer: Answer) -> Vec<Entry> {
    let strategy = state.plan().strategy;
    let last = state.next_is_last();
    let mut answer = answer;
    if last || !strategy.binds_tools() {
        drop_calls(&mut answer);
    }
    if state.says_nothing(&answer) {
        return empty(state, answer);
    }
    match strategy {
        Strategy::React if last => concluded(state, answer),
        Strategy::React => read(state, answer),
        Strategy::SingleCall | Strategy::NativeThinking | Strategy::Synthesis | Strategy::SynthesisNativeThinking => {
            called(state, answer)
        }
    }
}

/// Calls that get no result. The provider's own form of the answer asks for them, too, and no provider takes it back
/// without their results.
fn drop_calls(answer: &mut Answer) {
    if !answer.calls.is_empty() {
        answer.calls.clear();
        answer.provider_data = None;
        if let Some(unmasked) = &mut answer.unmasked {
            unmasked.calls.clear();
        }
    }
}

/// Codes of the LLM service that the same conversation can only meet again: nobody but an operator can mend it.
const PERMANENT: [&str; 4] = ["credentials", "invalid_backend", "invalid_request", "model_not_found"];
/// The code of an answer that says nothing.
const EMPTY: &str = "empty";

/// The entries for a model call without an answer. A permanent `code` ends the execution, any other is a failed
/// iteration, and the model is told; not so when there is no room for telling. A conversation without results cannot
/// become shorter: then a lack of room is permanent, too.
pub fn failed(state: &State, code: &str, error: CallError<'_>) -> Vec<Entry> {
    let CallError { message, timeout } = error;
    let error = CallError { message, timeout: timeout || says_timeout(message) };
    let is_permanent = PERMANENT.contains(&code) || (code == EXCEEDED && !state.plan().strategy.uses_tools());
    let next = if is_permanent {
        Some(given_up(state, message))
    } else {
        (code != EXCEEDED).then(|| try_again(state.plan().strategy, message))
    };
    std::iter::once(failure(FailureSource::Model, code, error)).chain(next).collect()
}

fn failure(source: FailureSource, code: &str, error: CallError<'_>) -> Entry {
    Entry::Failed { error: error.message.to_owned(), timeout: error.timeout, source, code: code.to_owned() }
}

/// The end of an execution whose model gives no answer. The analyses that a synthesis was to put together are better
/// than none.
pub fn given_up(state: &State, error: &str) -> Entry {
    let outcome = match (state.plan().strategy, state.context()) {
        (Strategy::Synthesis | Strategy::SynthesisNativeThinking, Some(analyses)) => {
            Outcome::Completed { analysis: analyses.to_owned(), reason: StopReason::SynthesisFailed }
        }
        (Strategy::Synthesis | Strategy::SynthesisNativeThinking, None) => {
            Outcome::Failed { error: format!("synthesis LLM call failed: {error}"), reason: StopReason::Error }
        }
        (Strategy::SingleCall | Strategy::React | Strategy::NativeThinking, _) => {
            Outcome::Failed { error: error.to_owned(), reason: StopReason::Error }
        }
    };
    Entry::Ended { outcome }
}

/// The first answer that says nothing is only asked about; another one in a row is a failed iteration.
fn empty(state: &State, answer: Answer) -> Vec<Entry> {
    let strategy = state.plan().strategy;
    if state.empty_answers() == 0 {
        let request = if state.next_is_last() { empty_last_answer(strategy) } else { empty_answer(strategy) };
        return vec![Entry::Answer(answer), request];
    }
    let error = CallError { message: "the model gave an empty answer again", timeout: false };
    let failure = failure(FailureSource::Answer, EMPTY, error);
    vec![Entry::Answer(answer), failure, try_again(strategy, error.message)]
}

/// An answer whose calls are structured: without any it is the last one.
fn called(state: &State, mut answer: Answer) -> Vec<Entry> {
    let calls = std::mem::take(&mut answer.calls);
    let mut seen = HashSet::new();
    answer.calls = (1..).zip(calls).map(|(n, call)| identified(state, call, n, &mut seen)).collect();
    let ended = answer.calls.is_empty().then(|| completed(state, said(&answer)));
    std::iter::once(Entry::Answer(answer)).chain(ended).collect()
}

/// An answer that says in its text what it is.
fn read(state: &State, mut answer: Answer) -> Vec<Entry> {
    let reply = read_beside_written(state, &mut answer);
    let (kind, quotes) = (reply.kind, reply.quotes);
    answer.reading = Some(Box::new(ParsedReply { kind, thought: reply.thought, problem: reply.problem, quotes }));
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

/// What the masked text says. Whether it is a call, and of which tool, is what the model wrote: a mask may hide the
/// arguments, and does not turn a call into something else.
fn read_beside_written(state: &State, answer: &mut Answer) -> Reply {
    let tools = state.plan().tools.as_slice();
    let reply = react::read_within(&answer.text, tools, state.quote_context());
    let Some(unmasked) = &mut answer.unmasked else { return reply };
    unmasked.calls.clear();
    let written = react::read_within(&unmasked.text, tools, state.quote_context());
    // What is only quoted in one of the two is no call.
    if written.kind != ReplyKind::Action || reply.quotes {
        return reply;
    }
    let tool = written.action.clone().unwrap_or_default();
    let arguments = written.arguments_text.clone().unwrap_or_default();
    unmasked.calls.push(ToolCall { id: String::new(), tool, arguments, read_only: false });
    if reply.kind == ReplyKind::Action && reply.action == written.action {
        return reply;
    }
    let arguments_text = Some(format!("{{\"arguments\":\"{MASKED}\"}}"));
    Reply { thought: reply.thought, problem: None, feedback: None, arguments_text, ..written }
}

/// The answer after which nothing comes, whatever it asks for.
fn concluded(state: &State, mut answer: Answer) -> Vec<Entry> {
    let conclusion = react::conclude_within(said(&answer), state.quote_context().untrusted);
    let (kind, thought) = (ReplyKind::Final, conclusion.thought);
    answer.reading = Some(Box::new(ParsedReply { kind, thought, problem: None, quotes: false }));
    vec![Entry::Answer(answer), completed(state, &conclusion.analysis)]
}

/// The text, else the reasoning.
fn said(answer: &Answer) -> &str {
    if answer.text.trim().is_empty() { &answer.thinking } else { &answer.text }
}

fn completed(state: &State, analysis: &str) -> Entry {
    let reason = state.concluding().unwrap_or(StopReason::FinalAnswer);
    let analysis = match cited_events::citable(state) {
        Some(known) => cited_events::marked(analysis, &known),
        None => analysis.to_owned(),
    };
    Entry::Ended { outcome: Outcome::Completed { analysis, reason } }
}

/// Providers repeat ids or leave them out; the journal needs them unique.
fn identified(state: &State, call: ToolCall, n: u32, seen: &mut HashSet<String>) -> ToolCall {
    let taken = call.id.is_empty() || state.knows_call(&call.id) || seen.contains(&call.id);
    let id = if taken { format!("call-{}-{n}", state.iteration() + 1) } else { call.id };
    seen.insert(id.clone());
    let read_only = state.tool(&call.tool).is_some_and(|spec| spec.read_only);
    ToolCall { id, read_only, ..call }
}
