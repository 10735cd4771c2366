//! Records the data that the provider needs back in the next request, from the events of its stream: the crate keeps
//! less of it.
//!
//! The parts stay in the order of the answer. Thoughts keep their signatures, and encrypted thoughts stay as they are.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::service::genai::history::REASONING_FIELD;
use crate::service::genai::target::Api;
use crate::service::provider::fields::{kind, text};

/// A larger answer is not sent as provider data. Its next request is rebuilt from text and calls.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The recorded parts of an answer that is arriving.
#[derive(Debug)]
pub(super) struct FrameRecorder {
    api: Api,
    /// The recorded parts by their index in the answer.
    parts: BTreeMap<u64, Value>,
    /// The arguments of calls, as far as they have arrived.
    arguments: BTreeMap<u64, String>,
    bytes: usize,
    /// Whether the reasoning came in the field in which it goes back.
    has_field: bool,
}

impl FrameRecorder {
    pub(super) fn new(api: Api) -> Self {
        Self {
            api,
            parts: BTreeMap::new(),
            arguments: BTreeMap::new(),
            bytes: 0,
            has_field: false,
        }
    }

    /// Adds an event of `length` bytes.
    pub(super) fn add(&mut self, event: &mut Value, length: usize) {
        if self.bytes > MAX_BYTES {
            return;
        }
        match self.api {
            Api::Messages => self.add_block(event, length),
            Api::Responses => self.add_item(event, length),
            Api::Chat => self.add_reasoning(event, length),
            Api::Ollama | Api::Converse => {}
        }
        if self.bytes > MAX_BYTES {
            self.parts.clear();
            self.arguments.clear();
        }
    }

    /// The content blocks of Anthropic.
    fn add_block(&mut self, event: &mut Value, length: usize) {
        let index = event
            .get("index")
            .and_then(Value::as_u64)
            .unwrap_or_default();
        match kind(event) {
            "content_block_start" => {
                if let Some(block) = event.get_mut("content_block") {
                    self.bytes += length;
                    self.parts.insert(index, block.take());
                }
            }
            "content_block_delta" => {
                let delta = event.get("delta").unwrap_or(&Value::Null);
                match kind(delta) {
                    "input_json_delta" => self.extend_text(index, delta.get("partial_json")),
                    "text_delta" => self.extend(index, "text", delta.get("text")),
                    "thinking_delta" => self.extend(index, "thinking", delta.get("thinking")),
                    "signature_delta" => self.extend(index, "signature", delta.get("signature")),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn extend(&mut self, index: u64, field: &str, addition: Option<&Value>) {
        let (Some(Value::Object(part)), Some(Value::String(addition))) =
            (self.parts.get_mut(&index), addition)
        else {
            return;
        };
        if let Value::String(text) = part.entry(field).or_insert_with(|| json!("")) {
            text.push_str(addition);
            self.bytes += addition.len();
        }
    }

    fn extend_text(&mut self, index: u64, addition: Option<&Value>) {
        let text = self.arguments.entry(index).or_default();
        let before = text.len();
        append(text, addition);
        self.bytes += text.len() - before;
    }

    /// The finished items of the Responses API; some servers list them in the last event only.
    fn add_item(&mut self, event: &mut Value, length: usize) {
        match kind(event) {
            "response.output_item.done" => {
                let index = event.get("output_index").and_then(Value::as_u64);
                let index = index.unwrap_or(self.parts.len() as u64);
                if let Some(item) = event.get_mut("item") {
                    self.bytes += length;
                    self.parts.insert(index, item.take());
                }
            }
            "response.completed" | "response.incomplete" if self.parts.is_empty() => {
                let output = event
                    .pointer_mut("/response/output")
                    .and_then(Value::as_array_mut);
                let items = output.map(std::mem::take).unwrap_or_default();
                self.parts = (0..).zip(items).collect();
                self.bytes += length;
            }
            _ => {}
        }
    }

    /// The thoughts in chat completions: as text, or as the list that `openrouter` wants back.
    fn add_reasoning(&mut self, event: &mut Value, length: usize) {
        let Some(delta) = event.pointer_mut("/choices/0/delta") else {
            return;
        };
        if let Some(Value::Array(details)) = delta.get_mut("reasoning_details") {
            self.bytes += length;
            for detail in details {
                self.add_detail(detail.take());
            }
        }
        let reasoning = delta
            .get(REASONING_FIELD)
            .or_else(|| delta.get("reasoning"));
        self.has_field |= !text(delta, REASONING_FIELD).is_empty();
        self.extend_text(0, reasoning);
    }

    /// Pieces of one detail have the same index and type. Encrypted details come whole.
    fn add_detail(&mut self, mut detail: Value) {
        let last = self.parts.last_entry().map(|entry| *entry.key());
        let continues = last
            .and_then(|last| self.parts.get(&last))
            .is_some_and(|part| {
                part.get("index") == detail.get("index")
                    && part.get("type") == detail.get("type")
                    && kind(&detail) != "reasoning.encrypted"
            });
        let open = if continues { last } else { None };
        let (Some(index), Value::Object(fields)) = (open, &mut detail) else {
            self.parts.insert(last.map_or(0, |last| last + 1), detail);
            return;
        };
        for name in ["text", "summary"] {
            self.extend(index, name, fields.get(name));
        }
        if let (Some(Value::Object(part)), Some(signature)) =
            (self.parts.get_mut(&index), fields.remove("signature"))
        {
            part.insert("signature".to_owned(), signature);
        }
    }

    /// The recorded parts, in order. Calls have their arguments.
    pub(super) fn into_parts(mut self) -> Vec<Value> {
        match self.api {
            Api::Messages => {
                for (index, arguments) in std::mem::take(&mut self.arguments) {
                    if let Some(Value::Object(block)) = self.parts.get_mut(&index)
                        && let Ok(input) = serde_json::from_str::<Map<String, Value>>(&arguments)
                    {
                        block.insert("input".to_owned(), Value::Object(input));
                    }
                }
                self.parts.into_values().collect()
            }
            Api::Chat => {
                let details: Vec<Value> = self.parts.into_values().collect();
                let text = self.arguments.remove(&0).unwrap_or_default();
                if text.is_empty() && details.is_empty() {
                    return Vec::new();
                }
                vec![if self.has_field {
                    json!({ "reasoning": text, "details": details, "field": REASONING_FIELD })
                } else {
                    json!({ "reasoning": text, "details": details })
                }]
            }
            Api::Responses | Api::Ollama | Api::Converse => self.parts.into_values().collect(),
        }
    }
}

/// Adds a piece of a text.
pub(super) fn append(text: &mut String, addition: Option<&Value>) {
    if let Some(Value::String(addition)) = addition {
        text.push_str(addition);
    }
}

/// Whether recorded parts have a signature of the thoughts: a field of a block, or of a detail.
pub(in crate::service::genai) fn is_signed(parts: &[Value]) -> bool {
    let details = parts
        .iter()
        .filter_map(|part| part.get("details")?.as_array())
        .flatten();
    parts
        .iter()
        .chain(details)
        .any(|part| !text(part, "signature").is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(api: Api, events: &[Value]) -> String {
        let mut recorder = FrameRecorder::new(api);
        for event in events {
            recorder.add(&mut event.clone(), 1);
        }
        Value::Array(recorder.into_parts()).to_string()
    }

    #[test]
    fn a_signature_of_thoughts_is_seen_wherever_it_is_recorded() {
        for (parts, expected) in [
            (
                json!([{"type":"thinking","thinking":"a","signature":"c2ln"}]),
                true,
            ),
            (
                json!([{"type":"thinking","thinking":"a","signature":""},{"type":"text","text":"signature"}]),
                false,
            ),
            (
                json!([{"reasoning":"","details":[{"type":"reasoning.text","text":"a","signature":"s"}]}]),
                true,
            ),
            (
                json!([{"reasoning":"a","details":[{"type":"reasoning.text","text":"a"}]}, 7]),
                false,
            ),
            (json!([]), false),
        ] {
            assert_eq!(is_signed(parts.as_array().unwrap()), expected, "{parts}");
        }
    }

    #[test]
    fn blocks_keep_their_order_their_signatures_and_unknown_fields() {
        let start = |index: u64, block: Value| json!({"type":"content_block_start","index":index,"content_block":block});
        let delta = |index: u64, delta: Value| json!({"type":"content_block_delta","index":index,"delta":delta});
        let events = [
            json!({"type":"message_start","message":{"id":"m"}}),
            start(0, json!({"type":"thinking","thinking":"","signature":""})),
            delta(0, json!({"type":"thinking_delta","thinking":"a"})),
            delta(0, json!({"type":"thinking_delta","thinking":"b"})),
            delta(0, json!({"type":"signature_delta","signature":"c2ln"})),
            start(1, json!({"type":"redacted_thinking","data":"xx"})),
            start(2, json!({"type":"text","text":""})),
            delta(2, json!({"type":"text_delta","text":"t"})),
            start(
                3,
                json!({"type":"tool_use","id":"1","name":"a__b","input":{},"caller":{"type":"direct"}}),
            ),
            delta(
                3,
                json!({"type":"input_json_delta","partial_json":"{\"z\": 1.0,"}),
            ),
            delta(
                3,
                json!({"type":"input_json_delta","partial_json":"\"a\":2}"}),
            ),
            start(4, json!({"type":"tool_use","id":"2","name":"c","input":{}})),
        ];
        let expected = concat!(
            r#"[{"type":"thinking","thinking":"ab","signature":"c2ln"},{"type":"redacted_thinking","data":"xx"},"#,
            r#"{"type":"text","text":"t"},"#,
            r#"{"type":"tool_use","id":"1","name":"a__b","input":{"z":1.0,"a":2},"caller":{"type":"direct"}},"#,
            r#"{"type":"tool_use","id":"2","name":"c","input":{}}]"#
        );
        assert_eq!(recorded(Api::Messages, &events), expected);
    }

    #[test]
    fn finished_items_are_kept_and_reasoning_of_chat_completions_is_joined() {
        let done = |index: u64, item: Value| json!({"type":"response.output_item.done","output_index":index,"item":item});
        let items = [
            done(1, json!({"type":"message"})),
            done(0, json!({"type":"reasoning"})),
            json!({"type":"x"}),
        ];
        assert_eq!(
            recorded(Api::Responses, &items),
            r#"[{"type":"reasoning"},{"type":"message"}]"#
        );
        let chat = |delta: Value| json!({"choices":[{"delta":delta}]});
        let plain = [
            chat(json!({"reasoning_content":"a"})),
            chat(json!({"reasoning":"b"})),
            chat(json!({"content":"t"})),
        ];
        assert_eq!(
            recorded(Api::Chat, &plain),
            r#"[{"reasoning":"ab","details":[],"field":"reasoning_content"}]"#
        );
        assert_eq!(
            recorded(Api::Chat, &plain[1..]),
            r#"[{"reasoning":"b","details":[]}]"#
        );
        let detail = |detail: Value| chat(json!({"reasoning_details":[detail]}));
        let details = [
            detail(json!({"type":"reasoning.text","index":0,"text":"a"})),
            detail(json!({"type":"reasoning.text","index":0,"text":"b","signature":"s"})),
            detail(json!({"type":"reasoning.encrypted","index":1,"data":"x"})),
        ];
        let expected = concat!(
            r#"[{"reasoning":"","details":[{"type":"reasoning.text","index":0,"text":"ab","signature":"s"},"#,
            r#"{"type":"reasoning.encrypted","index":1,"data":"x"}]}]"#
        );
        assert_eq!(recorded(Api::Chat, &details), expected);
        assert_eq!(recorded(Api::Chat, &[chat(json!({"content":"t"}))]), "[]");
    }

    #[test]
    fn only_what_is_kept_counts_against_the_limit() {
        let delta = json!({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ab"}});
        let start = json!({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}});
        let mut recorder = FrameRecorder::new(Api::Messages);
        for event in std::iter::once(start).chain(std::iter::repeat_n(delta, 100_000)) {
            recorder.add(&mut event.clone(), 120);
        }
        let text = recorder
            .into_parts()
            .remove(0)
            .get("text")
            .and_then(Value::as_str)
            .map(str::len);
        assert_eq!(text, Some(200_000));
    }

    #[test]
    fn a_huge_answer_is_not_recorded() {
        let mut recorder = FrameRecorder::new(Api::Responses);
        let mut event =
            json!({"type":"response.output_item.done","output_index":0,"item":{"type":"message"}});
        recorder.add(&mut event.clone(), 1);
        recorder.add(&mut event, MAX_BYTES);
        assert_eq!(recorder.into_parts(), Vec::<Value>::new());
    }
}
