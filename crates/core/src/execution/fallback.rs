//! Decides when the next provider of the plan takes over, and appends the switch to the entries of the failed call.
//!
//! Failure and switch are written by one checkpoint, so no crash separates them. The next provider continues the same
//! conversation, which does not mention the failure.

use super::answers::verdict::CALL_IN_TEXT;
use super::decide::{Decision, decide};
use super::entry::{Entry, Outcome, StopReason};
use super::state::State;
use super::window::EXCEEDED;

/// The number of failures in a row after which the next provider takes over, by the error code of the last failure.
///
/// The existing client switches at once after `max_retries` and `credentials`, and after two failures of any other
/// kind. Here every failure that the LLM service has retried, or that a repetition cannot remove, switches at once. A
/// failure that would end the execution switches in any case.
const THRESHOLDS: [(&str, u32); 21] = [
    // The LLM service has retried these.
    ("max_retries", 1),
    ("unavailable", 1),
    ("rate_limited", 1),
    ("empty_response", 1),
    ("malformed_tool_call", 1),
    // The same request would fail again.
    ("credentials", 1),
    ("invalid_backend", 1),
    ("invalid_request", 1),
    ("model_not_found", 1),
    ("blocked", 1),
    ("thought_signature", 1),
    // The second empty answer in a row.
    ("empty", 1),
    // The second answer in a row with a call in its text.
    (CALL_IN_TEXT, 1),
    // These may pass.
    ("provider_error", 2),
    ("internal", 2),
    ("partial_stream_error", 2),
    ("deadline_exceeded", 2),
    ("timeout", 2),
    ("max_tokens", 2),
    ("answer_too_large", 2),
    // The conversation is shortened first.
    (EXCEEDED, u32::MAX),
];
/// The threshold for a code that is not in the table.
const OTHER_THRESHOLD: u32 = 2;
/// The word for a code that is not in the table.
pub const OTHER: &str = "other";

/// The error codes of the table.
pub fn codes() -> impl Iterator<Item = &'static str> {
    THRESHOLDS.iter().map(|(code, _)| *code)
}

/// A code of the table, or [`OTHER`]: a service chooses its codes freely, and labels of metrics are a closed set.
pub fn known(code: &str) -> &'static str {
    codes().find(|known| *known == code).unwrap_or(OTHER)
}

fn threshold(code: &str) -> u32 {
    THRESHOLDS
        .iter()
        .find(|(known, _)| *known == code)
        .map_or(OTHER_THRESHOLD, |(_, count)| *count)
}

/// The entries of a model call. If the call failed and the next provider takes over now, they end with the switch.
pub fn or_switched(state: &State, entries: Vec<Entry>) -> Vec<Entry> {
    if entries.iter().any(|entry| entry.switched_to().is_some()) {
        return entries;
    }
    let failure = entries.iter().find_map(Entry::model_failure);
    let (Some((code, _)), Some(provider)) = (failure, state.next_provider()) else {
        return entries;
    };
    let threshold = threshold(code);
    if state.model_failures() + 1 < threshold && !gives_up(state, &entries) {
        return entries;
    }
    // Feedback is for the model that failed. Only an answer, an empty one, needs a message after it.
    let answered = entries.iter().any(|entry| entry.answer().is_some());
    entries
        .into_iter()
        .filter(|entry: &Entry| {
            !matches!(entry, Entry::Ended { .. })
                && (answered || !matches!(entry, Entry::Feedback { .. }))
        })
        .chain([Entry::Switched { provider }])
        .collect()
}

/// Whether the execution would end without an answer of a model after these entries.
fn gives_up(state: &State, entries: &[Entry]) -> bool {
    let is_given_up = |entry: &Entry| {
        let Entry::Ended { outcome } = entry else {
            return false;
        };
        match outcome {
            Outcome::Failed { .. } => true,
            Outcome::Completed { reason, .. } => *reason == StopReason::SynthesisFailed,
            Outcome::Cancelled | Outcome::TimedOut => false,
        }
    };
    let mut next = state.clone();
    entries.iter().cloned().for_each(|entry| next.apply(entry));
    next.entries().last().is_some_and(is_given_up)
        || matches!(decide(&next), Decision::Append(entries) if entries.iter().any(is_given_up))
}
