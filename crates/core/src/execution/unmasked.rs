//! An answer before the mask: kept in memory only, until its calls are sent.
//!
//! A tool needs the arguments that the model wrote; everything else gets them masked, the journal included. If a worker
//! crashes before it has sent such a call, the next worker does not know the original arguments and cannot send it.

use std::collections::BTreeMap;
use std::fmt;

use super::entry::{Answer, ToolCall};

/// The arguments to send for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arguments<'a> {
    /// The journal has them unchanged.
    Stored,
    /// The arguments that the model wrote; the journal has them masked.
    Original(&'a str),
    /// The journal has them masked, and the worker that knew the original has stopped.
    Unknown,
}

/// The original arguments of the calls that the mask has changed, by call id; `None` if they are not known.
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
    /// Moves the original arguments out of an answer.
    pub(super) fn take(answer: &mut Answer) -> Self {
        let written = answer.unmasked.take().unwrap_or_default().calls;
        let arguments = answer.masked_calls.iter().map(|id| {
            let own = written.iter().find(|call| call.id == *id);
            (id.clone(), own.map(|call| Text(call.arguments.clone())))
        });
        Self(arguments.collect())
    }

    pub(super) fn arguments(&self, call_id: &str) -> Arguments<'_> {
        match self.0.get(call_id) {
            None => Arguments::Stored,
            Some(Some(text)) => Arguments::Original(&text.0),
            Some(None) => Arguments::Unknown,
        }
    }
}

/// Records the calls whose arguments the mask has changed, and keeps the original arguments of those only. Both lists
/// are in the same order.
pub(super) fn note_masked_calls(answer: &mut Answer) {
    let Some(unmasked) = &mut answer.unmasked else {
        return;
    };
    unmasked.text.clear();
    for (written, call) in unmasked.calls.iter_mut().zip(&answer.calls) {
        written.id.clone_from(&call.id);
    }
    unmasked.calls.truncate(answer.calls.len());
    let masked = unmasked
        .calls
        .iter()
        .zip(&answer.calls)
        .filter(|(written, call): &(&ToolCall, &ToolCall)| written.arguments != call.arguments);
    answer.masked_calls = masked.map(|(_, call)| call.id.clone()).collect();
    if answer.masked_calls.is_empty() {
        answer.unmasked = None;
    }
}
