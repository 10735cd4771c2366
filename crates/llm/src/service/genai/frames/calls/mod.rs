//! The calls of an answer, from the events of its stream: each one with the text of its arguments as the model wrote
//! it. The crate gives them at the end of the answer, and only after it has read and written the arguments again.
//!
//! Servers number, name and cut the pieces of calls in many ways. A piece belongs to a call where that is the only
//! sensible reading. An answer with any other piece is malformed, and asked for again: a call with the name or the
//! arguments of another one must not run.

mod arguments;
mod blocks;
mod chat;
mod items;
#[cfg(test)]
mod tests;

use serde_json::Value;

use self::blocks::Blocks;
use self::chat::Pieces;
use self::items::Items;
use crate::service::genai::target::Api;
use crate::service::provider::fields::owned;

/// A call that has arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::service::genai) struct Called {
    /// Empty if the provider gave none.
    pub(in crate::service::genai) id: String,
    /// The name in the provider's spelling; not empty.
    pub(in crate::service::genai) name: String,
    pub(in crate::service::genai) arguments: String,
}

/// The last calls of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::service::genai) struct LastCalls {
    pub(in crate::service::genai) calls: Vec<Called>,
    /// Whether the answer has a piece of a call that belongs to none.
    pub(in crate::service::genai) is_malformed: bool,
}

/// The calls of an answer that is arriving, by the kind of their events.
#[derive(Debug)]
pub(super) enum Calls {
    Blocks(Blocks),
    Items(Items),
    Pieces(Pieces),
    Whole(Whole),
}

impl Calls {
    pub(super) fn new(api: Api) -> Self {
        match api {
            Api::Messages | Api::Converse => Self::Blocks(Blocks::default()),
            Api::Responses => Self::Items(Items::default()),
            Api::Chat => Self::Pieces(Pieces::default()),
            Api::Ollama => Self::Whole(Whole::default()),
        }
    }

    pub(super) fn add(&mut self, event: &Value) {
        match self {
            Self::Blocks(blocks) => blocks.add(event),
            Self::Items(items) => items.add(event),
            Self::Pieces(pieces) => pieces.add(event),
            Self::Whole(whole) => whole.add(event),
        }
    }

    /// The calls that have become complete.
    pub(super) fn take_complete(&mut self) -> Vec<Called> {
        match self {
            Self::Blocks(blocks) => blocks.take_complete(),
            Self::Items(items) => items.take_complete(),
            Self::Whole(whole) => std::mem::take(&mut whole.0.calls),
            Self::Pieces(_) => Vec::new(),
        }
    }

    /// All other calls, at the end of the answer.
    pub(super) fn take_last(&mut self) -> LastCalls {
        match self {
            Self::Blocks(blocks) => std::mem::take(blocks).into_last(),
            Self::Items(items) => std::mem::take(items).into_last(),
            Self::Pieces(pieces) => std::mem::take(pieces).into_last(),
            Self::Whole(whole) => std::mem::take(&mut whole.0),
        }
    }
}

/// The calls of Ollama's own interface, which sends each one as a whole.
#[derive(Debug, Default)]
pub(super) struct Whole(LastCalls);

impl Whole {
    fn add(&mut self, event: &Value) {
        let calls = event
            .pointer("/message/tool_calls")
            .and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            let function = call.get("function").unwrap_or(&Value::Null);
            let arguments = match function.get("arguments") {
                None | Some(Value::Null) => "{}".to_owned(),
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
            };
            let called = Called {
                id: owned(call, "id"),
                name: owned(function, "name"),
                arguments,
            };
            if called.name.is_empty() {
                self.0.is_malformed = true;
            } else {
                self.0.calls.push(called);
            }
        }
    }
}
