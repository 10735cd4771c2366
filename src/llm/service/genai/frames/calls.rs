//! The calls of an answer, from the events of its stream: each one with the text of its arguments as the model wrote
//! it. The crate gives them at the end of the answer, and only after it has read and written the arguments again.

use std::collections::VecDeque;

use serde_json::Value;

use super::record::append;
use crate::llm::service::genai::target::Api;

/// A call that has arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::llm::service::genai) struct Called {
    /// Empty if the provider gave none.
    pub(in crate::llm::service::genai) id: String,
    /// In the provider's spelling.
    pub(in crate::llm::service::genai) name: String,
    pub(in crate::llm::service::genai) arguments: String,
}

/// The calls of an answer that has begun.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Calls that may go on, in the order of the answer, with the index that the provider gave to each.
    open: Vec<(Option<u64>, Called)>,
    complete: VecDeque<Called>,
    /// Whether a call was complete.
    has_any: bool,
}

impl Calls {
    pub(super) fn add(&mut self, api: Api, event: &Value) {
        match api {
            Api::Messages => self.add_block(event),
            Api::Responses => self.add_item(event),
            Api::Chat => {
                let pieces = event.pointer("/choices/0/delta/tool_calls").and_then(Value::as_array);
                for piece in pieces.into_iter().flatten() {
                    self.add_piece(piece);
                }
            }
            Api::Ollama | Api::Converse => {}
        }
    }

    /// The calls that have become complete.
    pub(super) fn take_complete(&mut self) -> Vec<Called> {
        self.complete.drain(..).collect()
    }

    /// All calls, at the end of the answer.
    pub(super) fn take_all(&mut self) -> Vec<Called> {
        let open = std::mem::take(&mut self.open).into_iter().map(|(_, call)| call);
        self.complete.drain(..).chain(open).collect()
    }

    fn finish(&mut self, call: Called) {
        self.has_any = true;
        self.complete.push_back(call);
    }

    /// A content block of Anthropic.
    fn add_block(&mut self, event: &Value) {
        let index = event.get("index").and_then(Value::as_u64);
        let position = self.open.iter().rposition(|(known, _)| *known == index);
        match event.get("type").and_then(Value::as_str) {
            Some("content_block_start") => {
                let Some(block) = event.get("content_block").filter(|block| is(block, "tool_use")) else { return };
                // Complete arguments may be here, and not in pieces.
                let input = block.get("input").filter(|input| input.as_object().is_some_and(|map| !map.is_empty()));
                let arguments = input.map(Value::to_string).unwrap_or_default();
                self.open.push((index, Called { id: text(block, "id"), name: text(block, "name"), arguments }));
            }
            Some("content_block_delta") => {
                let Some((_, call)) = position.and_then(|position| self.open.get_mut(position)) else { return };
                append(&mut call.arguments, event.pointer("/delta/partial_json"));
            }
            Some("content_block_stop") => {
                if let Some(position) = position {
                    let (_, call) = self.open.remove(position);
                    self.finish(call);
                }
            }
            Some(_) | None => {}
        }
    }

    /// A finished item of the Responses API; some servers list the items in the last event only.
    fn add_item(&mut self, event: &Value) {
        match event.get("type").and_then(Value::as_str) {
            Some("response.output_item.done") => self.extend(event.get("item")),
            Some("response.completed" | "response.incomplete") if !self.has_any => {
                self.extend(event.pointer("/response/output").and_then(Value::as_array).into_iter().flatten());
            }
            Some(_) | None => {}
        }
    }

    fn extend<'a>(&mut self, items: impl IntoIterator<Item = &'a Value>) {
        for item in items.into_iter().filter(|item| is(item, "function_call")) {
            let (id, name, arguments) = (text(item, "call_id"), text(item, "name"), text(item, "arguments"));
            self.finish(Called { id, name, arguments });
        }
    }

    /// A piece of a call in chat completions. Some servers leave out the index, or give every call the same one.
    fn add_piece(&mut self, piece: &Value) {
        let id = text(piece, "id");
        let index = piece.get("index").and_then(Value::as_u64);
        let goes_on = |call: &Called| id.is_empty() || call.id.is_empty() || call.id == id;
        let last = self.open.iter().rposition(|(known, _)| index.is_none() || *known == index);
        let last = last.filter(|last| self.open.get(*last).is_some_and(|(_, call)| goes_on(call)));
        let position = last.unwrap_or(self.open.len());
        if position == self.open.len() {
            self.open.push((index, Called::default()));
        }
        let Some((_, call)) = self.open.get_mut(position) else { return };
        if !id.is_empty() {
            call.id = id;
        }
        let Some(function) = piece.get("function") else { return };
        if call.name.is_empty() {
            call.name = text(function, "name");
        }
        match function.get("arguments") {
            Some(Value::Object(map)) => call.arguments = Value::Object(map.clone()).to_string(),
            arguments => append(&mut call.arguments, arguments),
        }
    }
}

fn is(value: &Value, kind: &str) -> bool {
    value.get("type").and_then(Value::as_str) == Some(kind)
}

fn text(value: &Value, field: &str) -> String {
    value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(calls: Vec<Called>) -> Vec<String> {
        calls.into_iter().map(|call| format!("{} {} {}", call.id, call.name, call.arguments)).collect()
    }

    #[test]
    fn a_call_of_anthropic_is_complete_at_the_end_of_its_block() {
        let mut calls = Calls::default();
        let start = |index: u64, input: Value| {
            let block = json!({"type":"tool_use","id":index.to_string(),"name":"a__b","input":input});
            json!({"type":"content_block_start","index":index,"content_block":block})
        };
        let delta = |index: u64, text: &str| {
            let delta = json!({"type":"input_json_delta","partial_json":text});
            json!({"type":"content_block_delta","index":index,"delta":delta})
        };
        let stop = |index: u64| json!({"type":"content_block_stop","index":index});
        for event in
            [start(1, json!({})), delta(1, "{\"a\": "), delta(0, "x"), start(2, json!({"b":1})), delta(1, "1.0}")]
        {
            calls.add(Api::Messages, &event);
        }
        assert_eq!(lines(calls.take_complete()), Vec::<String>::new());
        calls.add(Api::Messages, &stop(1));
        assert_eq!(lines(calls.take_complete()), ["1 a__b {\"a\": 1.0}"]);
        calls.add(Api::Messages, &stop(0));
        calls.add(Api::Messages, &stop(2));
        assert_eq!(lines(calls.take_all()), ["2 a__b {\"b\":1}"]);
    }

    #[test]
    fn items_of_the_last_event_count_only_if_no_other_event_had_them() {
        let item = |id: &str| json!({"type":"function_call","call_id":id,"name":"n","arguments":"{}"});
        let last = json!({"type":"response.completed","response":{"output":[{"type":"message"}, item("1")]}});
        let mut calls = Calls::default();
        calls.add(Api::Responses, &last);
        assert_eq!(lines(calls.take_complete()), ["1 n {}"]);
        let mut calls = Calls::default();
        calls.add(Api::Responses, &json!({"type":"response.output_item.done","item":item("2")}));
        assert_eq!(lines(calls.take_complete()), ["2 n {}"]);
        calls.add(Api::Responses, &last);
        assert_eq!(lines(calls.take_all()), Vec::<String>::new());
    }

    #[test]
    fn pieces_of_chat_completions_are_joined_in_every_numbering() {
        let piece = |index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: Value| json!({"index":index,"id":id,"function":{"name":name,"arguments":arguments}});
        let first = |index, id| piece(index, Some(id), Some(id), json!("{"));
        let more = |index, id| piece(index, id, None, json!("}"));
        for pieces in [
            // As documented.
            vec![first(Some(0), "a"), more(Some(0), None), first(Some(1), "b"), more(Some(1), None)],
            // Interleaved, with the id in each piece.
            vec![first(Some(0), "a"), first(Some(1), "b"), more(Some(0), Some("a")), more(Some(1), Some("b"))],
            // The same number for every call, and no numbers.
            vec![first(Some(0), "a"), more(Some(0), None), first(Some(0), "b"), more(Some(0), None)],
            vec![first(None, "a"), more(None, None), first(None, "b"), more(None, Some("b"))],
            vec![piece(None, Some("a"), Some("a"), json!("{}")), piece(None, Some("b"), Some("b"), json!({}))],
        ] {
            let mut calls = Calls::default();
            for piece in pieces {
                calls.add(Api::Chat, &json!({"choices":[{"delta":{"tool_calls":[piece]}}]}));
            }
            assert_eq!(lines(calls.take_complete()), Vec::<String>::new());
            assert_eq!(lines(calls.take_all()), ["a a {}", "b b {}"]);
        }
    }
}
