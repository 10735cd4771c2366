//! What the mask has taken out of an answer: kept beside it, in memory alone, until its calls are sent.
//!
//! A tool needs the arguments that the model wrote; everything else sees them masked. The journal holds the masked
//! ones, too: so a call of a worker that died before it was sent is not made by the next one, which has not got them.

use std::collections::BTreeMap;
use std::fmt;

use super::entry::{Answer, ToolCall};

/// An answer's text and calls before the mask. Never stored, never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Unmasked {
    /// The text.
    pub text: String,
    /// The calls, in the order of the answer's own.
    pub calls: Vec<ToolCall>,
}

impl fmt::Debug for Unmasked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unmasked").field("calls", &self.calls.len()).finish_non_exhaustive()
    }
}

/// The arguments of a call, for sending it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arguments<'a> {
    /// The journal has them unchanged.
    Stored,
    /// The arguments that the model wrote; the journal has them masked.
    Original(&'a str),
    /// The journal has them masked, and the worker that knew the original has stopped.
    Unknown,
}

/// The calls of the last answer whose arguments the mask has changed, by id; `None` for one whose own are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OriginalArguments(BTreeMap<String, Option<Text>>);

#[derive(Clone, PartialEq, Eq)]
struct Text(String);

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

impl OriginalArguments {
    /// Takes them out of an answer, which keeps nothing of them.
    pub(super) fn take(answer: &mut Answer) -> Self {
        let written = answer.unmasked.take().map(|unmasked| unmasked.calls).unwrap_or_default();
        let own = |id: &String| written.iter().find(|call| call.id == *id).map(|call| Text(call.arguments.clone()));
        Self(answer.masked_calls.iter().map(|id| (id.clone(), own(id))).collect())
    }

    pub(super) fn arguments(&self, call_id: &str) -> Arguments<'_> {
        match self.0.get(call_id) {
            None => Arguments::Stored,
            Some(Some(text)) => Arguments::Original(&text.0),
            Some(None) => Arguments::Unknown,
        }
    }
}

/// Notes which calls differ from what the model wrote; both lists are in the same order. Only those are kept.
pub(super) fn note_masked_calls(answer: &mut Answer) {
    let Some(unmasked) = &mut answer.unmasked else { return };
    unmasked.text.clear();
    for (written, call) in unmasked.calls.iter_mut().zip(&answer.calls) {
        written.id.clone_from(&call.id);
    }
    unmasked.calls.truncate(answer.calls.len());
    let differs = |(written, call): &(&ToolCall, &ToolCall)| written.arguments != call.arguments;
    let masked = unmasked.calls.iter().zip(&answer.calls).filter(differs);
    answer.masked_calls = masked.map(|(_, call)| call.id.clone()).collect();
    if answer.masked_calls.is_empty() {
        answer.unmasked = None;
    }
}
