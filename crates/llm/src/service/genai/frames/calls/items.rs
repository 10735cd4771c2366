//! Calls as items of the Responses API: an item is announced, its arguments follow in pieces, and the finished item has
//! all of it. Some servers send only a part of these events.

use serde_json::Value;

use super::arguments::Arguments;
use super::{Called, LastCalls, is, text};

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
        match event.get("type").and_then(Value::as_str) {
            Some("response.output_item.added") => {
                let Some(item) = event.get("item").filter(|item| is(item, "function_call")) else {
                    return;
                };
                let (call_id, name) = (text(item, "call_id"), text(item, "name"));
                self.open.push(Open {
                    key: key(event, item),
                    call_id,
                    name,
                    ..Open::default()
                });
            }
            Some("response.function_call_arguments.delta") => {
                let piece = text(event, "delta");
                match self.open_of(event) {
                    Some(open) => open.pieces.push(&piece),
                    None => self.is_malformed |= self.finished.is_empty() && !piece.is_empty(),
                }
            }
            Some("response.function_call_arguments.done") => {
                let arguments = text(event, "arguments");
                if let Some(open) = self.open_of(event) {
                    open.done = Some(arguments).filter(|arguments| !arguments.is_empty());
                }
            }
            Some("response.output_item.done") => {
                if let Some(item) = event.get("item").filter(|item| is(item, "function_call")) {
                    self.finish(key(event, item), item);
                }
            }
            Some("response.completed" | "response.incomplete") => self.add_last(event),
            Some(_) | None => {}
        }
    }

    /// The items of the last event, of which those count that no other event had.
    fn add_last(&mut self, event: &Value) {
        let items = event
            .pointer("/response/output")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let calls: Vec<&Value> = items.filter(|item| is(item, "function_call")).collect();
        if self.finished.is_empty() {
            for item in calls {
                self.finish(text(item, "id"), item);
            }
            return;
        }
        for item in calls {
            let id = text(item, "call_id");
            if self.open.iter().any(|open| open.call_id == id) {
                self.finish(text(item, "id"), item);
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
        let (id, name, arguments) = (
            text(item, "call_id"),
            text(item, "name"),
            text(item, "arguments"),
        );
        let is_open = |open: &Open| {
            (!id.is_empty() && open.call_id == id) || (!key.is_empty() && open.key == key)
        };
        let open = self
            .open
            .iter()
            .position(is_open)
            .map(|position| self.open.remove(position));
        let mut called = Called {
            id,
            name,
            arguments,
        };
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
            let (id, name) = (open.call_id.clone(), open.name.clone());
            let arguments = open.arguments();
            // Without a finished item, empty arguments may be missing ones.
            self.is_malformed |= name.is_empty() || arguments.trim().is_empty();
            self.complete.extend((!name.is_empty()).then_some(Called {
                id,
                name,
                arguments,
            }));
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
    let ids = [text(event, "item_id"), text(item, "id")];
    let position = || {
        event
            .get("output_index")
            .and_then(Value::as_u64)
            .map(|index| index.to_string())
    };
    ids.into_iter()
        .find(|id| !id.is_empty())
        .or_else(position)
        .unwrap_or_default()
}
