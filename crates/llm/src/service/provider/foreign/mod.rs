//! The work that a provider did for an answer, as short text for a model that gets the answer without its own form.
//!
//! Searches, pages and code of one provider are not in the text of the conversation, so another provider would never
//! get them. They are read from `provider_data` (`formats.rs`) and written as notes (`notes.rs`). Of the payload only
//! named fields are read: a signature, encrypted thoughts and encrypted results stay where they are.

mod work;

mod gemini;
mod anthropic;
mod openai;
mod formats;
mod notes;
#[cfg(test)]
mod tests;

pub use self::work::{FoundPage, ReadPage, Sources};

use self::work::Parsed;
use crate::proto::{ConversationMessage, ToolCall};
use tarsy_core::tool_names::function;
use tarsy_mask::Mask;

/// The notes on a former answer, of at most 8 KiB; `None` without any work.
///
/// `asked` is the name of the provider that is asked now. It gets thoughts of another provider as text if no signature
/// is bound to them; its own thoughts are never repeated as text. Data that does not have the calls of the message is
/// ignored: it belongs to another answer. Secrets are masked, because a payload holds what the provider wrote.
pub(crate) fn short_text(message: &ConversationMessage, asked: &str) -> Option<String> {
    let data = message.provider_data.as_ref()?;
    let Parsed { mut work, calls } = formats::parse(&data.format, &data.payload)?;
    if calls.is_some_and(|calls| !are_same(&calls, &message.tool_calls)) {
        return None;
    }
    if data.provider == asked {
        work.thoughts.clear();
    }
    notes::write(&work).map(|text| Mask::default().apply(&text).into_owned())
}

/// Whether an answer has these calls, by their names at the provider.
fn are_same(names: &[String], calls: &[ToolCall]) -> bool {
    names.len() == calls.len()
        && names
            .iter()
            .zip(calls)
            .all(|(name, call)| *name == call.name || *name == function(&call.name))
}
