//! Rebuilds messages from text and calls, without data that belongs to one provider.

use ::genai::chat::{ChatMessage, ContentPart, ToolCall, ToolResponse};
use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::proto::ConversationMessage;
use crate::service::genai::target::{Api, Selection};
use crate::service::provider::names;

/// The characters of a call's id that every provider accepts, except for Mistral.
const MAX_ID_CHARS: usize = 64;
/// Mistral accepts only ids of this length.
const MISTRAL_ID_CHARS: usize = 9;

/// A former answer from a text and its calls; `None` if it has neither.
pub(super) fn rebuilt(
    message: &ConversationMessage,
    text: &str,
    selection: Selection<'_>,
) -> Option<ChatMessage> {
    let mut parts = Vec::new();
    // Anthropic refuses a text of blanks.
    if !text.trim().is_empty() {
        parts.push(ContentPart::from_text(text));
    }
    for call in &message.tool_calls {
        // A provider refuses arguments other than an object, and a model may have written such arguments.
        let arguments: Map<String, Value> =
            serde_json::from_str(&call.arguments).unwrap_or_default();
        parts.push(ContentPart::ToolCall(ToolCall {
            call_id: call_id(&call.id, selection),
            fn_name: names::in_history(&call.name),
            fn_arguments: Value::Object(arguments),
            thought_signatures: None,
        }));
    }
    (!parts.is_empty()).then(|| ChatMessage::assistant(parts))
}

/// The result of a call. Only Anthropic has a field for failures.
pub(super) fn result(message: &ConversationMessage, selection: Selection<'_>) -> ContentPart {
    let id = call_id(&message.tool_call_id, selection);
    if message.is_error && selection.api == Api::Messages {
        let result = json!({ "type": "tool_result", "content": message.content, "tool_use_id": id, "is_error": true });
        return ContentPart::from_custom(result, None);
    }
    let response = ToolResponse::new(id, &message.content);
    ContentPart::ToolResponse(response.with_fn_name(names::in_history(&message.tool_name)))
}

/// The id of a call as the provider accepts it; another provider may have made it.
pub(super) fn call_id(id: &str, selection: Selection<'_>) -> String {
    let (lengths, is_plain): (_, fn(u8) -> bool) = match selection.provider() {
        "mistral" => (MISTRAL_ID_CHARS..=MISTRAL_ID_CHARS, |byte| {
            byte.is_ascii_alphanumeric()
        }),
        "openai" | "azure" | "anthropic" | "bedrock" => (1..=MAX_ID_CHARS, |byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
        }),
        // Other servers have ids such as `functions.get:0`.
        _ => (1..=MAX_ID_CHARS, |byte| byte.is_ascii_graphic()),
    };
    if lengths.contains(&id.len()) && id.bytes().all(is_plain) {
        return id.to_owned();
    }
    let length = (*lengths.end()).min(MAX_ID_CHARS / 2);
    let hash = HEXLOWER.encode(&Sha256::digest(id));
    hash.chars().take(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::LlmConfig;

    fn config(provider: &str) -> LlmConfig {
        LlmConfig {
            provider: provider.into(),
            model: "m".into(),
            ..LlmConfig::default()
        }
    }

    #[test]
    fn an_id_of_another_provider_is_replaced_where_it_is_not_accepted() {
        let id =
            |provider: &str, id: &str| call_id(id, Selection::parse(&config(provider)).unwrap());
        for (provider, given) in [
            ("anthropic", "toolu_01-a"),
            ("openai", "call_1"),
            ("mistral", "abcDEF123"),
            ("vllm", "functions.get:0"),
        ] {
            assert_eq!(id(provider, given), given);
        }
        for (provider, given, length) in [
            ("openai", "fc.1", 32),
            ("anthropic", "", 32),
            ("mistral", "call_1", 9),
        ] {
            let found = id(provider, given);
            assert!(
                found.len() == length && found.bytes().all(|byte| byte.is_ascii_alphanumeric()),
                "{found}"
            );
            assert_eq!(found, id(provider, given));
        }
    }
}
