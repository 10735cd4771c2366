//! Decides when the next provider of the plan takes over, and appends the switch to the entries of the failed call.
//!
//! Failure and switch are written by one checkpoint, so no crash separates them. The next provider continues the same
//! conversation, which does not mention the failure.

use super::decide::{Decision, decide};
use super::entry::{Entry, Outcome, StopReason};
use super::state::State;
use crate::vocabulary::ErrorCode;

/// The number of failures in a row after which the next provider takes over, by the error code of the last failure.
///
/// The existing client switches at once after `max_retries` and `credentials`, and after two failures of any other
/// kind. Here every failure that the LLM service has retried, or that a repetition cannot remove, switches at once. A
/// failure that would end the execution switches in any case.
fn threshold(code: ErrorCode) -> u32 {
    match code {
        // The LLM service has retried these.
        ErrorCode::MaxRetries
        | ErrorCode::Unavailable
        | ErrorCode::RateLimited
        | ErrorCode::EmptyResponse
        | ErrorCode::MalformedToolCall => 1,
        // The same request would fail again.
        ErrorCode::Credentials
        | ErrorCode::InvalidBackend
        | ErrorCode::InvalidRequest
        | ErrorCode::ModelNotFound
        | ErrorCode::Blocked
        | ErrorCode::ThoughtSignature => 1,
        // The second answer in a row that is empty, or has a call in its text.
        ErrorCode::Empty | ErrorCode::CallInText => 1,
        // These may pass.
        ErrorCode::Provider
        | ErrorCode::Internal
        | ErrorCode::PartialStream
        | ErrorCode::DeadlineExceeded
        | ErrorCode::Timeout
        | ErrorCode::MaxTokens
        | ErrorCode::AnswerTooLarge
        | ErrorCode::Cancelled
        | ErrorCode::StreamBroken
        | ErrorCode::ShuttingDown
        | ErrorCode::Abandoned
        | ErrorCode::Other => 2,
        // The conversation is shortened first.
        ErrorCode::ContextWindowExceeded => u32::MAX,
    }
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
    let threshold = threshold(ErrorCode::parse(code));
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
