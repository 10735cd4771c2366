//! The limits of requests. Those of an answer are decided from the journal; those of a session and of all sessions are
//! known to the engine.

use std::time::Duration;

use crate::execution::entry::{AskFault, ToolCall};
use crate::execution::state::State;
use crate::readable::format;

/// Calls of one answer that people are asked about.
pub const MAX_OF_ANSWER: usize = 8;
/// Requests of one session.
pub const MAX_OF_SESSION: u32 = 20;
/// The age of a session after which it asks no more.
pub const MAX_AGE: Duration = Duration::from_hours(7 * 24);

/// Whether so many calls of the answer before this one need a person that it is not asked about.
pub(super) fn is_beyond_answer(state: &State, call: &ToolCall) -> bool {
    let calls = state.last_answer().map(|answer| answer.calls.as_slice());
    let before = calls
        .unwrap_or_default()
        .iter()
        .take_while(|other| other.id != call.id)
        .filter(|other| state.needs_person(&other.tool));
    before.count() >= MAX_OF_ANSWER
}

pub(super) fn beyond_answer() -> AskFault {
    AskFault::TooMany(format!("at most {MAX_OF_ANSWER} of one answer"))
}

/// The numbers that limit the requests of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// All requests of the session so far.
    pub of_session: u32,
    /// The age of the session.
    pub age: Duration,
    /// The open requests of all sessions.
    pub open: u32,
    /// Their limit (`approvals.max_open`).
    pub max_open: u32,
}

impl RequestLimits {
    /// Counts one request more. The fault, if it is one too many; it is not counted then.
    pub fn add(&mut self) -> Option<AskFault> {
        let limit = if self.age > MAX_AGE {
            format!(
                "none of an investigation older than {}",
                format::count(MAX_AGE.as_secs() / 86_400, "day")
            )
        } else if self.of_session >= MAX_OF_SESSION {
            format!("at most {MAX_OF_SESSION} of one investigation")
        } else if self.open >= self.max_open {
            format!("at most {} at the same time", self.max_open)
        } else {
            self.of_session += 1;
            self.open += 1;
            return None;
        };
        Some(AskFault::TooMany(limit))
    }
}
