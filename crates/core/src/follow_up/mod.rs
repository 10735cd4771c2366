//! Follow-up questions: separate sessions about an ended investigation.
//!
//! Only the prompts differ from those of an investigation; loop, strategies and tools are the same. This module owns
//! the thread of a question, and how much of it a prompt holds.

mod bounds;
mod prompt;

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::alert::Alert;
use super::chain::RunStatus;
use super::execution::event_refs::cited;
use super::ids::SessionId;

pub use prompt::prompts;

/// Maximum size of a question, which a person types.
pub const MAX_QUESTION_BYTES: usize = 16 * 1024;
/// Maximum length of a question that is asked in a thread of a chat.
pub const MAX_CHAT_QUESTION_CHARS: usize = 2_000;
/// Number of questions about an investigation above which a thread of a chat asks no further one.
pub const MAX_CHAT_QUESTIONS: u32 = 20;

/// Name of the only stage of a question's session.
pub const STAGE: &str = "follow-up";

/// An investigation with the questions about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// The investigation; never a question itself.
    pub root: SessionId,
    pub status: RunStatus,
    /// The time when it ended.
    pub ended_at: Option<DateTime<Utc>>,
    pub chain: String,
    /// Cleaned and masked.
    pub alert: Alert,
    pub analysis: Option<String>,
    /// The reason why it has no analysis.
    pub error: Option<String>,
    /// The tool calls of the investigation, in order.
    pub calls: Vec<PastCall>,
    /// The answered questions, in the order in which they were asked.
    pub asked: Vec<Exchange>,
    /// The number of older answers that were not read from the store.
    pub older: u32,
}

impl Thread {
    /// Numbers of the events that an answer may cite: the results, and the citations of the report and earlier answers.
    pub fn citable(&self) -> Vec<u32> {
        let answers = self.asked.iter().map(|exchange| exchange.answer.as_str());
        let citations = self
            .analysis
            .as_deref()
            .into_iter()
            .chain(answers)
            .flat_map(cited);
        let all: BTreeSet<u32> = self
            .calls
            .iter()
            .map(|call| call.session_seq)
            .chain(citations)
            .collect();
        all.into_iter().collect()
    }
}

/// A tool call of the investigation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastCall {
    /// Number of the result's event.
    pub session_seq: u32,
    /// The full name, `server.tool`.
    pub tool: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
    /// Whether the tool reported a failure.
    pub is_error: bool,
}

/// A question with its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    pub question: String,
    pub answer: String,
}
