//! A follow-up question: a session of its own about an investigation that is over.
//!
//! Only its prompts differ from those of an investigation; the loop, the strategies and the tools are the same and know
//! nothing of it. This module owns what a question may know of its thread, and how much of that a prompt holds.

mod bounds;
mod prompt;

use std::collections::BTreeSet;

use super::alert::Alert;
use super::execution::event_refs::cited;
use super::ids::SessionId;

pub use prompt::prompts;
#[cfg(test)]
pub(super) use prompt::tests as testing;

/// The most bytes of a question: a person types it.
pub const MAX_QUESTION_BYTES: usize = 16 * 1024;

/// Name of the one stage of a question's session.
pub const STAGE: &str = "follow-up";

/// An investigation, and what was asked about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// The investigation; never a question itself.
    pub root: SessionId,
    /// It has ended.
    pub over: bool,
    /// The chain that ran.
    pub chain: String,
    /// What was investigated, cleaned and masked.
    pub alert: Alert,
    /// The word for how it ended: `completed`, `failed`, `cancelled` or `timed_out`.
    pub outcome: String,
    /// What it found.
    pub analysis: Option<String>,
    /// Why it found nothing.
    pub error: Option<String>,
    /// What it looked at, in order.
    pub calls: Vec<PastCall>,
    /// What was answered before, in the order in which it was asked.
    pub asked: Vec<Exchange>,
    /// How many older answers there are that were not even read.
    pub older: u32,
}

impl Thread {
    /// Numbers of the events that an answer may cite: those of the results, and what the report and earlier answers
    /// cite.
    pub fn citable(&self) -> Vec<u32> {
        let answers = self.asked.iter().map(|exchange| exchange.answer.as_str());
        let told = self.analysis.as_deref().into_iter().chain(answers).flat_map(cited);
        let all: BTreeSet<u32> = self.calls.iter().map(|call| call.session_seq).chain(told).collect();
        all.into_iter().collect()
    }
}

/// A tool call of the investigation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastCall {
    /// Number of the result's event.
    pub session_seq: u32,
    /// `server.tool`.
    pub tool: String,
    /// As the model wrote them.
    pub arguments: String,
    /// It reported a failure.
    pub is_error: bool,
}

/// A question with its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// As it was asked, masked.
    pub question: String,
    /// As it was answered.
    pub answer: String,
}
