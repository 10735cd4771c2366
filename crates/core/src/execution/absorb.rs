//! Turns a model's answer, or the failure of a model call, into the entries of the next checkpoint.
//!
//! The parsed form is stored with the answer, so a replay never parses a text again.

use std::collections::HashSet;

use super::answers::verdict::Verdict;
use super::answers::{check, cut, proof};
use super::cited_events;
use super::entry::{
    Answer, Entry, FailureSource, Mark, Outcome, ParsedReply, StopReason, ToolCall,
};
use super::results::{CallError, is_timeout, try_again};
use super::state::{AnswerSoFar, State};
use super::unmasked::note_masked_calls;
use crate::plan::ToolSpec;
use crate::react::{self, EarlierCall, Reply, ReplyKind};
use crate::review::{self, Review, Verdict as ReviewVerdict};
use crate::tool_names;
use crate::visible::is_blank;
use crate::vocabulary::ErrorCode;
use tarsy_mask::MASKED;

/// The entries for an answer.
///
/// Each call gets an id that is unique within the execution, and `read_only` from the plan. A final answer, or the
/// answer after `concluding`, ends the execution.
pub fn absorb(state: &State, answer: Answer) -> Vec<Entry> {
    let mut entries = entries_of(state, answer);
    if let Some(Entry::Answer(answer)) = entries.first_mut() {
        note_masked_calls(answer);
    }
    entries
}

fn entries_of(state: &State, mut answer: Answer) -> Vec<Entry> {
    let strategy = state.plan().strategy;
    let last = state.next_is_last();
    if last || !strategy.binds_tools() {
        drop_calls(&mut answer);
    }
    match state.verdict(&answer) {
        Verdict::Take => taken(state, answer),
        Verdict::Keep => kept(state, answer),
        Verdict::AskAgain => cut::asked_again(state, answer),
        Verdict::Switch(code) => cut::switched(state, answer, code),
        Verdict::Fail(code) => cut::failed(state, answer, code),
    }
}

/// An answer that the model has ended.
fn taken(state: &State, answer: Answer) -> Vec<Entry> {
    let strategy = state.plan().strategy;
    let last = state.next_is_last();

    if state.is_empty_answer(&answer) {
        return empty(state, answer);
    }
    match (strategy.writes_calls(), last) {
        (_, true) => concluded(state, answer),
        (true, false) => read(state, answer),
        (false, false) => called(state, answer),
    }
}

/// The last answer, cut off for the second time. Without a text, the first one stands.
fn kept(state: &State, mut answer: Answer) -> Vec<Entry> {
    let analysis = cut::analysis_of(state, &mut answer);
    let analysis = state.without_call(&analysis);
    let analysis = if is_blank(analysis) {
        state.so_far.as_ref().map(|so_far| &*so_far.analysis)
    } else {
        Some(analysis)
    };
    match analysis {
        Some(analysis) => {
            let end = completed(state, analysis, Some(Mark::Incomplete), Some(&answer));
            vec![Entry::Answer(answer), end]
        }
        None => {
            let code = state.end_of(&answer).code();
            cut::failed(state, answer, code)
        }
    }
}

/// Drops calls that will have no result, together with the provider's own form of the answer: it contains the calls,
/// and no provider accepts it without their results.
pub(super) fn drop_calls(answer: &mut Answer) {
    if !answer.calls.is_empty() {
        answer.calls.clear();
        answer.provider_data = None;
        if let Some(unmasked) = &mut answer.unmasked {
            unmasked.calls.clear();
        }
    }
}

/// The entries for a model call without an answer. A permanent `code` ends the execution. Any other is a failed
/// iteration whose error is added to the conversation, if it fits in the context window. A strategy without tools has
/// no results to blank: for it an exceeded window is permanent, too.
pub fn failed(state: &State, code: &str, error: CallError<'_>) -> Vec<Entry> {
    let CallError { message, timeout } = error;
    // A stream that stalls after its first piece broke like any other: its words do not make it a time-out.
    let kind = ErrorCode::parse(code);
    let is_late = kind != ErrorCode::PartialStream && is_timeout(message);
    let failure = Entry::Failed {
        error: message.to_owned(),
        timeout: timeout || is_late,
        source: FailureSource::Model,
        code: code.to_owned(),
    };
    let is_too_long = kind == ErrorCode::ContextWindowExceeded;
    let is_permanent = kind.is_permanent() || (is_too_long && !state.plan().strategy.uses_tools());
    let next = if is_permanent {
        Some(given_up(state, message))
    } else {
        (!is_too_long).then(|| try_again(state.plan().strategy, message))
    };
    std::iter::once(failure).chain(next).collect()
}

/// The fact that an answer cannot be used.
pub(super) fn unusable(code: ErrorCode, error: &str) -> Entry {
    Entry::Failed {
        error: error.to_owned(),
        timeout: false,
        source: FailureSource::Answer,
        code: code.as_str().to_owned(),
    }
}

/// The end of an execution whose model calls failed. A failed synthesis ends with the analyses that it should have
/// combined.
pub fn given_up(state: &State, error: &str) -> Entry {
    let synthesises = state.plan().strategy.synthesises();
    if synthesises && let Some(analyses) = state.context() {
        // Analyses that cite nothing prove nothing, combined or not.
        let mark = Some(Mark::NotCombined).max(proof::mark(state, analyses, None));
        return Entry::Ended {
            outcome: Outcome::Completed {
                analysis: analyses.to_owned(),
                reason: StopReason::SynthesisFailed,
                mark,
                review: None,
            },
        };
    }
    let step = if synthesises {
        "synthesis LLM call failed: "
    } else {
        ""
    };
    let error = format!("{step}{error}");
    let reason = StopReason::Error;
    without_answer(state, Outcome::Failed { error, reason })
}

/// The end of an execution that gets no further answer. An earlier one that was whole, or the last one that was cut
/// off, takes its place.
pub fn without_answer(state: &State, outcome: Outcome) -> Entry {
    match &state.so_far {
        Some(AnswerSoFar { analysis, mark }) => completed(state, analysis, *mark, None),
        None => Entry::Ended { outcome },
    }
}

/// The first empty answer gets feedback; a second consecutive one is a failed iteration.
pub(super) fn empty(state: &State, answer: Answer) -> Vec<Entry> {
    if state.empty_answers() == 0 {
        return vec![Entry::Answer(answer), after_empty(state)];
    }
    let error = "the model gave an empty answer again";
    vec![
        Entry::Answer(answer),
        unusable(ErrorCode::Empty, error),
        try_again(state.plan().strategy, error),
    ]
}

/// The feedback on an empty answer.
fn after_empty(state: &State) -> Entry {
    let request = match (state.plan().strategy.writes_calls(), state.next_is_last()) {
        (true, false) => {
            "Go on with a \"Thought:\" and then an \"Action:\" with its \"Action Input:\", or your \"Final Answer:\"."
        }
        (true, true) => "Write your \"Final Answer:\" now.",
        (false, false) => "Call a tool, or give your final answer as text.",
        (false, true) => "Give your answer now, as text. No tool can be called.",
    };
    Entry::feedback(format!("Your previous response was empty. {request}"))
}

/// An answer with structured calls. Without a call it is the final answer.
fn called(state: &State, mut answer: Answer) -> Vec<Entry> {
    let calls = std::mem::take(&mut answer.calls);
    let mut seen = HashSet::new();
    answer.calls = (1..)
        .zip(calls)
        .map(|(n, call)| identified(state, call, n, &mut seen))
        .collect();
    let ended = answer
        .calls
        .is_empty()
        .then(|| ended_with(state, &answer.text, &answer));
    std::iter::once(Entry::Answer(answer))
        .chain(ended)
        .collect()
}

/// The entry after a final answer: its end, or the request for another one if it has faults.
fn ended_with(state: &State, analysis: &str, answer: &Answer) -> Entry {
    check::ask_again(state, analysis, answer)
        .unwrap_or_else(|| completed(state, analysis, None, Some(answer)))
}

/// An answer in the `ReAct` format, whose text has to be parsed.
fn read(state: &State, mut answer: Answer) -> Vec<Entry> {
    let mut reply = parse_masked_and_original(state, &mut answer);
    reply = if state.plan().several_actions {
        react::all_or_none(reply, &state.plan().tools)
    } else {
        react::last_only(reply)
    };
    if reply
        .final_answer
        .as_deref()
        .is_some_and(|text| state.text_call(text).is_some())
    {
        reply = react::call_in_answer(reply);
    }
    let calls = calls_of(&reply);
    answer.reading = Some(Box::new(ParsedReply {
        kind: reply.kind,
        thought: reply.thought,
        problem: reply.problem,
        quotes: reply.quotes,
    }));
    let next = match reply.kind {
        ReplyKind::Final => vec![ended_with(
            state,
            &reply.final_answer.unwrap_or_default(),
            &answer,
        )],
        ReplyKind::Action => {
            let mut seen = HashSet::new();
            answer.calls = (1..)
                .zip(calls)
                .map(|(n, call)| identified(state, call, n, &mut seen))
                .collect();
            Vec::new()
        }
        ReplyKind::UnknownTool | ReplyKind::Malformed => {
            vec![Entry::feedback(reply.feedback.unwrap_or_default())]
        }
    };
    std::iter::once(Entry::Answer(answer)).chain(next).collect()
}

/// The calls of an answer in their order.
fn calls_of(reply: &Reply) -> Vec<ToolCall> {
    let last = EarlierCall {
        action: reply.action.clone().unwrap_or_default(),
        arguments: reply.arguments_text.clone().unwrap_or_default(),
    };
    let written = reply.earlier.iter().cloned().chain([last]);
    written
        .map(|call| ToolCall {
            id: String::new(),
            tool: call.action,
            arguments: call.arguments,
            read_only: false,
        })
        .collect()
}

/// Whether two readings of an answer have the same actions, whatever their arguments are.
fn same_actions(one: &Reply, other: &Reply) -> bool {
    one.has_incomplete == other.has_incomplete
        && one.earlier.len() == other.earlier.len()
        && one
            .earlier
            .iter()
            .zip(&other.earlier)
            .all(|(one, other)| one.action == other.action)
}

/// Parses the masked text. The original text decides whether it is a call, and of which tool: the mask may hide the
/// arguments, but it does not turn a call into something else.
fn parse_masked_and_original(state: &State, answer: &mut Answer) -> Reply {
    let tools = state.plan().tools.as_slice();
    let has_several = state.plan().several_actions;
    let reply = react::read_within(&answer.text, tools, state.quote_context());
    let Some(unmasked) = &mut answer.unmasked else {
        return reply;
    };
    unmasked.calls.clear();
    let mut written = react::read_within(&unmasked.text, tools, state.quote_context());
    if !has_several {
        written = react::last_only(written);
    }
    // A call that is a quotation in one of the two texts is no call.
    if written.kind != ReplyKind::Action || reply.quotes {
        return reply;
    }
    if has_several && !same_actions(&reply, &written) {
        return react::masked(reply);
    }
    unmasked.calls = calls_of(&written);
    if reply.kind == ReplyKind::Action && reply.action == written.action {
        return reply;
    }
    let arguments_text = Some(format!("{{\"arguments\":\"{MASKED}\"}}"));
    // The arguments of earlier calls stay masked.
    Reply {
        thought: reply.thought,
        problem: None,
        feedback: None,
        arguments_text,
        earlier: reply.earlier,
        ..written
    }
}

/// The last answer, whatever it requests.
fn concluded(state: &State, mut answer: Answer) -> Vec<Entry> {
    let analysis = cut::analysis_of(state, &mut answer);
    let end = completed(state, &analysis, None, Some(&answer));
    vec![Entry::Answer(answer), end]
}

/// The end with an analysis. `mark` is that of its end; `answer` has it, unless it is an entry already.
fn completed(state: &State, analysis: &str, mark: Option<Mark>, answer: Option<&Answer>) -> Entry {
    let review = state.plan().reviews.then(|| judged(state, analysis));
    let mark = mark.max(match &review {
        None => proof::mark(state, analysis, answer),
        // The verdict is no analysis; only one that follows it has to be proven.
        Some(_) => review::read(analysis)
            .analysis
            .and_then(|own| proof::mark(state, own, answer)),
    });
    let reason = state.concluding().unwrap_or(StopReason::FinalAnswer);
    let analysis = match state.citable() {
        Some(known) => cited_events::marked(analysis, &known),
        None => analysis.to_owned(),
    };
    Entry::Ended {
        outcome: Outcome::Completed {
            analysis,
            reason,
            mark,
            review,
        },
    }
}

/// The outcome of a review that has given this answer.
fn judged(state: &State, answer: &str) -> Review {
    let provider = state.plan().providers.get(state.provider());
    Review {
        verdict: review::read(answer)
            .verdict
            .unwrap_or(ReviewVerdict::Missing),
        model: provider
            .map(|provider| provider.model.clone())
            .unwrap_or_default(),
    }
}

/// Gives a call a unique id, because providers repeat ids or omit them, and the full name of the tool that it means.
fn identified(state: &State, call: ToolCall, n: u32, seen: &mut HashSet<String>) -> ToolCall {
    let taken = call.id.is_empty() || state.knows_call(&call.id) || seen.contains(&call.id);
    let mut id = call.id;
    if taken {
        id = format!("call-{}-{n}", state.iteration() + 1);
        // A provider may have made up this very id.
        while state.knows_call(&id) || seen.contains(&id) {
            id.push('x');
        }
    }
    seen.insert(id.clone());
    let meant = tool_names::only(&call.tool, &state.plan().tools);
    let read_only = meant.is_some_and(ToolSpec::only_reads);
    let tool = meant.map_or(call.tool, |spec| spec.name.clone());
    ToolCall {
        id,
        read_only,
        tool,
        arguments: call.arguments,
    }
}
