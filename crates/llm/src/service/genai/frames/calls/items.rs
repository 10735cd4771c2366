//! Calls as items of the Responses API: an item is announced, its arguments follow in pieces, and the finished item has
//! all of it. Some servers send only a part of these events.

use serde_json::Value;

use super::arguments::Arguments;
use super::{Called, LastCalls};
use crate::service::provider::fields::{items, kind, owned, text};

/// An item that was announced.
#[derive(Debug, Default)]
struct Open {
    /// The id of the item, or its position in the answer.
    key: String,
    call_id: String,
    name: String,
    pieces: Arguments,
    /// The arguments as the event at their end has them.
    done: Option<String>,
}

#[derive(Debug, Default)]
pub(in crate::service::genai::frames) struct Items {
    open: Vec<Open>,
    complete: Vec<Called>,
    /// Calls that were complete, with the key of their item.
    finished: Vec<(String, Called)>,
    is_malformed: bool,
}

impl Items {
    pub(super) fn add(&mut self, event: &Value) {
        let call = event
            .get("item")
            .filter(|item| kind(item) == "function_call");
        match kind(event) {
            "response.output_item.added" => {
                self.open.extend(call.map(|call| Open {
                    key: key(event, call),
                    call_id: owned(call, "call_id"),
                    name: owned(call, "name"),
                    ..Open::default()
                }));
            }
            "response.function_call_arguments.delta" => {
                let piece = text(event, "delta");
                match self.open_of(event) {
                    Some(open) => open.pieces.push(piece),
                    None => self.is_malformed |= self.finished.is_empty() && !piece.is_empty(),
                }
            }
            "response.function_call_arguments.done" => {
                let arguments = owned(event, "arguments");
                if let Some(open) = self.open_of(event) {
                    open.done = Some(arguments).filter(|arguments| !arguments.is_empty());
                }
            }
            "response.output_item.done" => {
                if let Some(call) = call {
                    self.finish(key(event, call), call);
                }
            }
            "response.completed" | "response.incomplete" => self.add_last(event),
            _ => {}
        }
    }

    /// The items of the last event, of which those count that no other event had.
    fn add_last(&mut self, event: &Value) {
        let is_first = self.finished.is_empty();
        let output = event.pointer("/response").unwrap_or(&Value::Null);
        for call in items(output, "output").filter(|item| kind(item) == "function_call") {
            let id = text(call, "call_id");
            if is_first || self.open.iter().any(|open| open.call_id == id) {
                self.finish(owned(call, "id"), call);
            }
        }
    }

    fn open_of(&mut self, event: &Value) -> Option<&mut Open> {
        let key = key(event, &Value::Null);
        let is_only = self.open.len() == 1;
        self.open
            .iter_mut()
            .find(|open| open.key == key || (is_only && key.is_empty()))
    }

    fn finish(&mut self, key: String, item: &Value) {
        let mut called = Called {
            id: owned(item, "call_id"),
            name: owned(item, "name"),
            arguments: owned(item, "arguments"),
        };
        let position = self.open.iter().position(|open| {
            (!called.id.is_empty() && open.call_id == called.id)
                || (!key.is_empty() && open.key == key)
        });
        let open = position.map(|position| self.open.remove(position));
        if let Some(open) = open
            && called.arguments.trim().is_empty()
        {
            called.arguments = open.arguments();
        }
        let is_repeated = self
            .finished
            .iter()
            .any(|(known, call)| *known == key && !key.is_empty() && *call == called);
        if is_repeated {
            return;
        }
        if called.name.is_empty() {
            self.is_malformed = true;
            return;
        }
        self.finished.push((key, called.clone()));
        self.complete.push(called);
    }

    pub(super) fn take_complete(&mut self) -> Vec<Called> {
        std::mem::take(&mut self.complete)
    }

    pub(super) fn into_last(mut self) -> LastCalls {
        for open in std::mem::take(&mut self.open) {
            let called = Called {
                id: open.call_id.clone(),
                name: open.name.clone(),
                arguments: open.arguments(),
            };
            // Without a finished item, empty arguments may be missing ones.
            self.is_malformed |= called.name.is_empty() || called.arguments.trim().is_empty();
            if !called.name.is_empty() {
                self.complete.push(called);
            }
        }
        LastCalls {
            calls: self.complete,
            is_malformed: self.is_malformed,
        }
    }
}

impl Open {
    fn arguments(self) -> String {
        self.done.unwrap_or_else(|| self.pieces.into_text())
    }
}

/// The id of the item that an event is about; its position, if the server gives no ids.
fn key(event: &Value, item: &Value) -> String {
    match (text(event, "item_id"), text(item, "id")) {
        ("", "") => {
            let position = event.get("output_index").and_then(Value::as_u64);
            position.map(|index| index.to_string()).unwrap_or_default()
        }
        ("", id) | (id, _) => id.to_owned(),
    }
}
