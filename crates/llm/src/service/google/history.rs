//! Converts the messages of a conversation into contents.
//!
//! A former answer of the same generation of models goes back as it was. Any other answer is rebuilt from its text, its
//! calls, and short notes on the searches, pages and code of its provider. In the current turn (after the last message
//! of the user) Gemini 3 refuses a call without a signature, so the first rebuilt call of each answer gets the
//! documented word that switches this check off.

use serde_json::value::{RawValue, to_raw_value};

use super::models::Model;
use super::replay::{PROVIDER, Replayed, replayed};
use super::wire::{
    CallPart, Content, FunctionCall, FunctionResponse, Json, Raw, RequestPart, ToolResult,
};
use crate::proto::{ConversationMessage, ToolCall};
use crate::service::provider::conversation::{Step, position, steps};
use crate::service::provider::retry::Signatures;
use crate::service::provider::{ProviderError, foreign, names};

/// Stands for a signature that does not exist. Source: the page on thought signatures of Google's documentation.
const SENTINEL: &str = "skip_thought_signature_validator";

/// A conversation in the words of the provider.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) system: Option<Raw>,
    pub(super) contents: Vec<Raw>,
    /// Whether it has an answer of a model that was not rebuilt because of a refusal.
    pub(super) can_rebuild: bool,
}

/// Converts the messages of a conversation for a model.
///
/// # Errors
/// `invalid_request` when there is a second system message, or an unknown role.
pub(super) fn convert(
    messages: &[ConversationMessage],
    model: Model<'_>,
    signatures: Signatures,
) -> Result<History, ProviderError> {
    let mut history = History::default();
    let mut calls: &[ToolCall] = &[];
    let mut provider_ids = Vec::new();
    for step in steps(messages)? {
        match step {
            Step::System(message) => history.system = Some(text(message)?),
            Step::User(message) => history.contents.push(text(message)?),
            Step::Answer {
                message,
                is_current,
            } => {
                let replayed = match signatures {
                    Signatures::Replayed => replayed(message, model),
                    Signatures::Rebuilt => None,
                };
                calls = &message.tool_calls;
                history.can_rebuild = signatures == Signatures::Replayed;
                if let Some(Replayed { contents, call_ids }) = replayed {
                    history.contents.extend(contents);
                    provider_ids = call_ids;
                } else {
                    // A model that refused the signatures of former turns gets the sentinel in each of them.
                    let needs_signature = model.family.needs_signatures
                        && (is_current || signatures == Signatures::Rebuilt);
                    let sentinel = needs_signature.then_some(SENTINEL);
                    history.contents.extend(rebuilt(message, sentinel)?);
                    provider_ids.clear();
                }
            }
            Step::Results(results) => {
                let parts = results
                    .into_iter()
                    .map(|message| function_response(message, calls, &provider_ids));
                history.contents.push(content("user", parts.collect())?);
            }
        }
    }
    Ok(history)
}

fn text(message: &ConversationMessage) -> Result<Raw, ProviderError> {
    content("user", vec![RequestPart::Text(&message.content)])
}

/// The result of one of these calls, with the id that the provider gave to the call and expects back.
fn function_response<'a>(
    message: &'a ConversationMessage,
    calls: &[ToolCall],
    provider_ids: &[Option<String>],
) -> RequestPart<'a> {
    let position = position(calls, &message.tool_call_id);
    let call = position.and_then(|position| calls.get(position));
    // The model finds its call by the name.
    let name = call.map_or(&message.tool_name, |call| &call.name);
    RequestPart::FunctionResponse(FunctionResponse {
        id: position.and_then(|position| provider_ids.get(position)?.clone()),
        name: names::in_history(name),
        response: result(message),
    })
}

/// An object goes to the model as it is; any other value and text below the key that the model expects.
fn result(message: &ConversationMessage) -> ToolResult<'_> {
    let text = message.content.as_str();
    let value = serde_json::from_str::<&RawValue>(text)
        .ok()
        .filter(|raw| is_in_range(raw));
    let json = value.map_or(Json::Text(text), Json::Raw);
    match value {
        _ if message.is_error => ToolResult::Error(json),
        Some(value) if value.get().starts_with('{') => ToolResult::Object(value),
        Some(_) | None => ToolResult::Output(json),
    }
}

/// An answer without its signatures, with notes on what tools of its provider did for it; `None` if it has none of
/// these, neither text nor calls.
fn rebuilt(
    message: &ConversationMessage,
    mut sentinel: Option<&'static str>,
) -> Result<Option<Raw>, ProviderError> {
    let notes = foreign::short_text(message, PROVIDER).unwrap_or_default();
    let mut parts: Vec<RequestPart<'_>> = [notes.as_str(), &message.content]
        .into_iter()
        .filter(|text| !text.is_empty())
        .map(RequestPart::Text)
        .collect();
    for call in &message.tool_calls {
        parts.push(RequestPart::Call(CallPart {
            function_call: FunctionCall {
                name: names::in_history(&call.name),
                args: Some(arguments(call)?),
                ..FunctionCall::default()
            },
            thought_signature: sentinel.take(),
        }));
    }
    if parts.is_empty() {
        Ok(None)
    } else {
        content("model", parts).map(Some)
    }
}

/// The arguments of a call, or none if they are no JSON object.
fn arguments(call: &ToolCall) -> Result<Raw, ProviderError> {
    match serde_json::from_str::<Raw>(&call.arguments) {
        Ok(raw) if raw.get().starts_with('{') && is_in_range(&raw) => Ok(raw),
        Ok(_) | Err(_) => RawValue::from_string("{}".to_owned()).map_err(unserializable),
    }
}

/// Whether a parser can read every number: `1e999` is JSON, and Gemini would refuse the request.
fn is_in_range(raw: &RawValue) -> bool {
    serde_json::from_str::<serde_json::Value>(raw.get()).is_ok()
}

fn content(role: &'static str, parts: Vec<RequestPart<'_>>) -> Result<Raw, ProviderError> {
    to_raw_value(&Content { parts, role }).map_err(unserializable)
}

fn unserializable(error: serde_json::Error) -> ProviderError {
    ProviderError::internal(format!(
        "the conversation has no form in JSON: {:?}",
        error.classify()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::ProviderData;

    fn message(role: &str, content: &str) -> ConversationMessage {
        ConversationMessage {
            role: role.into(),
            content: content.into(),
            ..ConversationMessage::default()
        }
    }

    fn answer(text: &str, calls: &[(&str, &str)]) -> ConversationMessage {
        ConversationMessage {
            tool_calls: calls
                .iter()
                .map(|(name, arguments)| ToolCall {
                    id: format!("id-{name}"),
                    name: (*name).into(),
                    arguments: (*arguments).into(),
                })
                .collect(),
            ..message("assistant", text)
        }
    }

    fn tool_result(tool: &str, content: &str) -> ConversationMessage {
        ConversationMessage {
            tool_call_id: format!("id-{tool}"),
            tool_name: tool.into(),
            ..message("tool", content)
        }
    }

    fn converted(messages: &[ConversationMessage], signatures: Signatures) -> Vec<String> {
        let history = convert(
            messages,
            Model::parse("gemini-3-flash-preview").unwrap(),
            signatures,
        )
        .unwrap();
        history
            .contents
            .iter()
            .map(|content| content.get().to_owned())
            .collect()
    }

    #[test]
    fn results_of_one_step_are_one_content_in_the_order_of_the_calls() {
        let failed = ConversationMessage {
            is_error: true,
            ..tool_result("s.d", "not found")
        };
        let messages = [
            message("system", "sys"),
            message("user", "why?"),
            answer(
                "I look",
                &[
                    ("s.a", r#"{"z": 1.0, "a":2}"#),
                    ("s.b", "{bad"),
                    ("s.c", r#"{"x":1e999}"#),
                    ("s.d", ""),
                ],
            ),
            failed,
            tool_result("s.b", "[1,2]"),
            tool_result("s.a", r#" {"phase": "Running"}"#),
            tool_result("s.c", "1e999"),
        ];
        let expected = [
            r#"{"parts":[{"text":"why?"}],"role":"user"}"#,
            concat!(
                r#"{"parts":[{"text":"I look"},"#,
                r#"{"functionCall":{"name":"s__a","args":{"z": 1.0, "a":2}},"thoughtSignature":"skip_thought_signature_validator"},"#,
                r#"{"functionCall":{"name":"s__b","args":{}}},{"functionCall":{"name":"s__c","args":{}}},"#,
                r#"{"functionCall":{"name":"s__d","args":{}}}],"role":"model"}"#
            ),
            concat!(
                r#"{"parts":[{"functionResponse":{"name":"s__a","response":{"phase": "Running"}}},"#,
                r#"{"functionResponse":{"name":"s__b","response":{"output":[1,2]}}},"#,
                r#"{"functionResponse":{"name":"s__c","response":{"output":"1e999"}}},"#,
                r#"{"functionResponse":{"name":"s__d","response":{"error":"not found"}}}],"role":"user"}"#
            ),
        ];
        assert_eq!(converted(&messages, Signatures::Replayed), expected);
    }

    #[test]
    fn an_own_answer_goes_back_byte_for_byte_with_the_ids_of_its_calls() {
        let content = r#"{"parts":[{"text":"hm","thought":true},{"functionCall":{"id":"fc-1","name":"s__a","args":{ "x":1e0}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"s__b"}}],"role":"model"}"#;
        let data = ProviderData {
            provider: "google".into(),
            model: "gemini-3-flash-preview".into(),
            format: "gemini.contents.v1".into(),
            payload: format!("[{content}]").into(),
        };
        let own = ConversationMessage {
            provider_data: Some(data),
            ..answer("", &[("s.a", "{}"), ("s.b", "{}")])
        };
        let messages = [
            message("user", "u"),
            own,
            tool_result("s.b", "null"),
            tool_result("s.a", ""),
        ];
        let replayed = converted(&messages, Signatures::Replayed);
        assert_eq!(replayed[1], content);
        let results = concat!(
            r#"{"parts":[{"functionResponse":{"id":"fc-1","name":"s__a","response":{"output":""}}},"#,
            r#"{"functionResponse":{"name":"s__b","response":{"output":null}}}],"role":"user"}"#
        );
        assert_eq!(replayed[2], results);
        let rebuilt = converted(&messages, Signatures::Rebuilt);
        assert!(
            !rebuilt.concat().contains("c2ln") && !rebuilt.concat().contains("fc-1"),
            "{rebuilt:?}"
        );
        assert_eq!(rebuilt[1].matches(SENTINEL).count(), 1, "{rebuilt:?}");
    }

    #[test]
    fn only_answers_of_the_current_turn_get_the_sentinel() {
        let step = [answer("", &[("s.a", "{}")]), tool_result("s.a", "{}")];
        let mut messages = vec![message("user", "first")];
        messages.extend(step.clone());
        messages.push(message("user", "second"));
        messages.extend(step.clone());
        messages.extend(step);
        let contents = converted(&messages, Signatures::Replayed);
        let marked: Vec<bool> = contents
            .iter()
            .map(|content| content.contains(SENTINEL))
            .collect();
        assert_eq!(
            marked,
            [false, false, false, false, true, false, true, false]
        );
        let rebuilt = converted(&messages, Signatures::Rebuilt).concat();
        assert_eq!(rebuilt.matches(SENTINEL).count(), 3);
        let old = convert(
            &messages,
            Model::parse("gemini-2.5-pro").unwrap(),
            Signatures::Replayed,
        )
        .unwrap();
        assert!(
            old.contents
                .iter()
                .all(|content| !content.get().contains(SENTINEL))
        );
    }

    #[test]
    fn a_made_up_name_is_the_same_in_a_call_and_its_result() {
        let payload =
            r#"[{"parts":[{"functionCall":{"id":"1","name":"default_api.s__a"}}],"role":"model"}]"#;
        let data = ProviderData {
            provider: "google".into(),
            model: "gemini-3-flash-preview".into(),
            format: "gemini.contents.v1".into(),
            payload: payload.into(),
        };
        let replayed = ConversationMessage {
            provider_data: Some(data),
            ..answer("", &[("default_api.s.a", "{}")])
        };
        for (name, accepted, own) in [
            ("default_api.s.a", "default_api__s__a".to_owned(), replayed),
            (
                "s.a<|x|>",
                names::in_history("s.a<|x|>"),
                answer("", &[("s.a<|x|>", "{}")]),
            ),
        ] {
            let contents = converted(
                &[message("user", "u"), own, tool_result(name, "{}")],
                Signatures::Replayed,
            );
            let field = format!(r#""name":"{accepted}""#);
            assert!(
                contents[1].contains(&field) && contents[2].contains(&field),
                "{contents:?}"
            );
        }
    }

    #[test]
    fn messages_that_have_no_form_are_refused() {
        let model = Model::parse("gemini-3-flash-preview").unwrap();
        let fault = |messages: &[ConversationMessage]| {
            convert(messages, model, Signatures::Replayed).unwrap_err()
        };
        let system = message("system", "s");
        assert_eq!(
            fault(&[system.clone(), system]).message,
            "only one system message is possible"
        );
        assert_eq!(
            fault(&[message("robot", "")]).message,
            "unknown role 'robot'"
        );
        let empty = converted(
            &[message("user", "u"), answer("", &[])],
            Signatures::Replayed,
        );
        assert_eq!(empty.len(), 1);
    }
}
