//! Stores the parts of an answer as `provider_data`, for the next request to the same model: above all its thought
//! signatures.
//!
//! The payload is a JSON list of contents with the raw parts. They go back to the model as they are. Only text without
//! a signature is joined with its neighbour of the same kind, so that a stream of small pieces stays small. The last
//! item may be the sources of the answer. Gemini does not get them back: they are for other providers only.

use super::models::Model;
use super::wire::{AnswerContent, Content, FunctionCall, Part, PlainText, Raw};
use crate::proto::{ConversationMessage, ProviderData};
use crate::service::provider::foreign::Sources;
use crate::service::provider::names;
use serde::Serialize;
use serde_json::value::to_raw_value;

pub(super) const PROVIDER: &str = "google";
const FORMAT: &str = "gemini.contents.v1";
/// A larger answer is not sent as provider data. Its next request is rebuilt from text and calls.
const MAX_PAYLOAD_BYTES: usize = 8 * 1024 * 1024;

/// An item of the payload.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Content(Content<Raw>),
    Sources { sources: &'a Sources },
}

/// The recorded parts of an answer that is arriving.
#[derive(Debug, Default)]
pub(super) struct PartRecorder {
    parts: Vec<Raw>,
    bytes: usize,
    /// Text that the next part may continue.
    open: Option<OpenText>,
}

/// Text without a signature, which the next part may continue.
#[derive(Debug)]
enum OpenText {
    /// One part, in its own spelling.
    One(Raw, PlainText),
    Joined(PlainText),
}

impl PartRecorder {
    pub(super) fn add(&mut self, raw: Raw) {
        if self.bytes > MAX_PAYLOAD_BYTES {
            return;
        }
        self.bytes += raw.get().len();
        let Ok(plain) = serde_json::from_str::<PlainText>(raw.get()) else {
            self.close();
            self.parts.push(raw);
            return;
        };
        self.open = match self.open.take() {
            Some(open) if open.text().is_same_kind(&plain) => Some(open.joined(&plain)),
            open => {
                self.parts.extend(open.and_then(OpenText::into_raw));
                Some(OpenText::One(raw, plain))
            }
        };
    }

    fn close(&mut self) {
        self.parts
            .extend(self.open.take().and_then(OpenText::into_raw));
    }

    /// The recorded parts for the next request; `None` without any, or when there are too many.
    pub(super) fn provider_data(
        mut self,
        model: Model<'_>,
        sources: &Sources,
    ) -> Option<ProviderData> {
        self.close();
        if self.parts.is_empty() {
            return None;
        }
        let mut items = vec![Item::Content(Content {
            parts: self.parts,
            role: "model",
        })];
        if !sources.is_empty() {
            items.push(Item::Sources { sources });
        }
        let payload = serde_json::to_vec(&items).ok()?;
        if self.bytes > MAX_PAYLOAD_BYTES || payload.len() > MAX_PAYLOAD_BYTES {
            tracing::warn!(
                bytes = self.bytes,
                "provider data left out: the answer has more than 8 MiB"
            );
            return None;
        }
        Some(ProviderData {
            provider: PROVIDER.to_owned(),
            model: model.name.to_owned(),
            format: FORMAT.to_owned(),
            payload,
        })
    }
}

impl OpenText {
    fn text(&self) -> &PlainText {
        match self {
            Self::One(_, text) | Self::Joined(text) => text,
        }
    }

    fn joined(self, next: &PlainText) -> Self {
        let (Self::One(_, mut text) | Self::Joined(mut text)) = self;
        text.text.push_str(&next.text);
        Self::Joined(text)
    }

    fn into_raw(self) -> Option<Raw> {
        match self {
            Self::One(raw, _) => Some(raw),
            Self::Joined(text) => to_raw_value(&text).ok(),
        }
    }
}

impl PlainText {
    fn is_same_kind(&self, other: &Self) -> bool {
        self.thought.unwrap_or(false) == other.thought.unwrap_or(false)
    }
}

/// A former answer of this model, as it was.
#[derive(Debug)]
pub(super) struct Replayed {
    pub(super) contents: Vec<Raw>,
    /// The ids of its calls at the provider, in order.
    pub(super) call_ids: Vec<Option<String>>,
}

/// The contents of a former answer, if this model accepts them and they fit the message.
pub(super) fn replayed(message: &ConversationMessage, model: Model<'_>) -> Option<Replayed> {
    let data = message.provider_data.as_ref()?;
    if data.provider != PROVIDER
        || data.format != FORMAT
        || !model.accepts_signatures_of(&data.model)
    {
        return None;
    }
    let items: Vec<Raw> = serde_json::from_slice(&data.payload).ok()?;
    let mut contents = Vec::with_capacity(items.len());
    let mut calls: Vec<FunctionCall> = Vec::new();
    for item in items {
        let content: AnswerContent = serde_json::from_str(item.get()).ok()?;
        let Some(parts) = content.parts else { continue };
        for part in parts {
            let part: Part = serde_json::from_str(part.get()).ok()?;
            calls.extend(part.function_call);
        }
        contents.push(item);
    }
    // Every call has to have its result, so the message must have the same calls, by the names that results have.
    let is_same = calls.len() == message.tool_calls.len()
        && calls.iter().zip(&message.tool_calls).all(|(call, known)| {
            names::from_wire(&call.name) == known.name
                && names::in_history(&known.name) == call.name
        });
    let call_ids = calls.into_iter().map(|call| call.id).collect();
    (is_same && !contents.is_empty()).then_some(Replayed { contents, call_ids })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::ToolCall;

    fn model() -> Model<'static> {
        Model::parse("gemini-3-flash-preview").unwrap()
    }

    fn recorded(parts: &[&str]) -> String {
        let mut recorder = PartRecorder::default();
        for part in parts {
            recorder.add(serde_json::from_str(part).unwrap());
        }
        recorder
            .provider_data(model(), &Sources::default())
            .map(|data| String::from_utf8(data.payload).unwrap())
            .unwrap_or_default()
    }

    #[test]
    fn signed_and_unknown_parts_are_kept_byte_for_byte_and_plain_text_is_joined() {
        let call = r#"{"functionCall":{"name":"a__b", "args":{"z":1.0,"a":12345678901234567890}},"thoughtSignature":"c2ln"}"#;
        let signed = r#"{"text":"","thoughtSignature":"x"}"#;
        let new = r#"{"text":"t","newField":{"b":1,"a":2}}"#;
        let thought = r#"{"text": "hm", "thought": true}"#;
        let parts = [
            thought,
            r#"{"text":"a"}"#,
            r#"{"thought":false,"text":"b"}"#,
            signed,
            r#"{"text":"c"}"#,
            new,
            call,
        ];
        let expected = format!(
            r#"[{{"parts":[{thought},{{"text":"ab"}},{signed},{{"text":"c"}},{new},{call}],"role":"model"}}]"#
        );
        assert_eq!(recorded(&parts), expected);
        assert_eq!(recorded(&[]), "");
    }

    #[test]
    fn a_long_stream_of_small_pieces_is_one_part_and_a_huge_answer_is_left_out() {
        let pieces = vec![r#"{"text":"x"}"#; 100_000];
        assert_eq!(
            recorded(&pieces),
            format!(
                r#"[{{"parts":[{{"text":"{}"}}],"role":"model"}}]"#,
                "x".repeat(100_000)
            )
        );
        let large = format!(
            r#"{{"inlineData":{{"data":"{}"}}}}"#,
            "x".repeat(5 * 1024 * 1024)
        );
        assert_eq!(recorded(&[&large, &large]), "");
    }

    #[test]
    fn only_fitting_data_of_the_same_generation_is_replayed() {
        let payload = r#"[{"parts":[{"functionCall":{"name":"a__b","id":"7"}}],"role":"model"}]"#;
        let data = |provider: &str, model: &str, payload: &str| ProviderData {
            provider: provider.into(),
            model: model.into(),
            format: FORMAT.into(),
            payload: payload.into(),
        };
        let replay = |data: ProviderData, tool: &str| {
            let tool_calls = vec![ToolCall {
                name: tool.into(),
                ..ToolCall::default()
            }];
            let message = ConversationMessage {
                provider_data: Some(data),
                tool_calls,
                ..Default::default()
            };
            replayed(&message, model()).map(|replayed| replayed.call_ids)
        };
        let own = || data(PROVIDER, "gemini-3.1-pro-preview", payload);
        assert_eq!(replay(own(), "a.b"), Some(vec![Some("7".to_owned())]));
        assert_eq!(replay(own(), "a.c"), None);
        assert_eq!(
            replay(data("anthropic", "gemini-3.1-pro-preview", payload), "a.b"),
            None
        );
        assert_eq!(
            replay(data(PROVIDER, "gemini-2.5-pro", payload), "a.b"),
            None
        );
        assert_eq!(
            replay(data(PROVIDER, "gemini-3.1-pro-preview", "no json"), "a.b"),
            None
        );
        assert_eq!(
            replay(
                ProviderData {
                    format: "other".into(),
                    ..own()
                },
                "a.b"
            ),
            None
        );
    }
}
