//! The entries for an answer that does not count because of its finish reason: cut off, filtered, paused.
//!
//! The answer stays in the conversation as text; its calls and the provider's own form, which contains them, do not.

use crate::execution::absorb::{drop_calls, unusable};
use crate::execution::entry::{Answer, Entry, Finish, ParsedReply};
use crate::execution::state::State;
use crate::react::{self, ReplyKind};
use crate::vocabulary::ErrorCode;

/// The model is asked for the answer again.
pub(in crate::execution) fn asked_again(state: &State, answer: Answer) -> Vec<Entry> {
    let request = request(state, answer.finish);
    vec![Entry::Answer(without_calls(answer)), request]
}

/// The next provider takes over; without one, the model is asked again.
pub(in crate::execution) fn switched(state: &State, answer: Answer, code: ErrorCode) -> Vec<Entry> {
    let Some(provider) = state.next_provider() else {
        return asked_again(state, answer);
    };
    let mut entries = failed(state, answer, code);
    entries.push(Entry::Switched { provider });
    entries
}

/// A failed iteration.
pub(in crate::execution) fn failed(state: &State, answer: Answer, code: ErrorCode) -> Vec<Entry> {
    let message = format!("the answer does not count: {}", how(answer.finish));
    let request = request(state, answer.finish);
    vec![
        Entry::Answer(without_calls(answer)),
        unusable(code, &message),
        request,
    ]
}

/// The reason why an answer does not count. One that ended by itself has a call in its text.
fn how(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::ToolCalls => "it has a tool call in its text",
        Finish::MaxTokens
        | Finish::Safety
        | Finish::Recitation
        | Finish::MalformedToolCall
        | Finish::ContextWindow
        | Finish::Paused
        | Finish::Error
        | Finish::Other => finish.in_words(),
    }
}

fn without_calls(mut answer: Answer) -> Answer {
    drop_calls(&mut answer);
    answer.unmasked = None;
    answer
}

/// The message to the model.
fn request(state: &State, finish: Finish) -> Entry {
    let request = match finish {
        Finish::MaxTokens | Finish::ContextWindow if state.next_is_last() => {
            "Give the whole answer again, much shorter: the cause, the evidence and the next step in at most 150 words."
        }
        Finish::MaxTokens | Finish::ContextWindow => {
            "Do the same again, shorter: think briefly, write no long text before a call, and at most 250 words in an \
             answer."
        }
        Finish::MalformedToolCall => {
            "If you still need the call, make it again with arguments that are one JSON object."
        }
        Finish::Safety | Finish::Recitation => {
            "Give it again in words of your own, without long quotations."
        }
        Finish::Stop | Finish::ToolCalls if state.next_is_last() => {
            "Give your answer as text: no tool can be called."
        }
        Finish::Stop | Finish::ToolCalls => {
            "A call that stands in the text is not made: call the tool itself, or give your final answer without a call \
             in it."
        }
        Finish::Paused | Finish::Error | Finish::Other => "Give it again, whole.",
    };
    Entry::feedback(format!(
        "Your previous answer does not count: {}. No call in it was made. {request}",
        how(finish)
    ))
}

/// The analysis of a last answer, whatever it requests; the parsed text is stored with the answer.
pub(in crate::execution) fn analysis_of(state: &State, answer: &mut Answer) -> String {
    if !state.plan().strategy.writes_calls() {
        return answer.text.clone();
    }
    let conclusion = react::conclude(&answer.text, state.quote_context().untrusted);
    answer.reading = Some(Box::new(ParsedReply {
        kind: ReplyKind::Final,
        thought: conclusion.thought,
        problem: None,
        quotes: false,
    }));
    conclusion.analysis
}
