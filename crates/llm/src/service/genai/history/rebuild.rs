//! Rebuilds messages from text and calls, without data that belongs to one provider.

use ::genai::chat::{ChatMessage, ContentPart, MessageContent, ToolCall, ToolResponse};
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
        let arguments = serde_json::from_str::<Value>(&call.arguments)
            .ok()
            .filter(Value::is_object);
        parts.push(ContentPart::ToolCall(ToolCall {
            call_id: call_id(&call.id, selection),
            fn_name: names::in_history(&call.name),
            fn_arguments: arguments.unwrap_or_else(|| Value::Object(Map::new())),
            thought_signatures: None,
        }));
    }
    (!parts.is_empty()).then(|| ChatMessage::assistant(MessageContent::from_parts(parts)))
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
    let is_mistral = selection.provider() == "mistral";
    // Other servers have ids such as `functions.get:0`.
    let is_strict = matches!(
        selection.provider(),
        "openai" | "azure" | "anthropic" | "bedrock"
    );
    let is_plain = |byte: u8| match byte {
        b'-' | b'_' => !is_mistral,
        byte => {
            byte.is_ascii_alphanumeric() || (!is_mistral && !is_strict && byte.is_ascii_graphic())
        }
    };
    let fits = if is_mistral {
        id.len() == MISTRAL_ID_CHARS
    } else {
        (1..=MAX_ID_CHARS).contains(&id.len())
    };
    if fits && id.bytes().all(is_plain) {
        return id.to_owned();
    }
    let hash: String = Sha256::digest(id)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let length = if is_mistral {
        MISTRAL_ID_CHARS
    } else {
        MAX_ID_CHARS / 2
    };
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
        let id = |provider: &str, id: &str| call_id(id, Selection::of(&config(provider)).unwrap());
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
