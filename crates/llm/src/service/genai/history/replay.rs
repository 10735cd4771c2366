//! The parts of an answer as `provider_data`, and their way back to the same provider and model.
//!
//! The payload is a JSON list: the content blocks of Anthropic, the output items of OpenAI's Responses API, or the
//! reasoning of chat completions. Data of another provider, interface or model is never sent.

use ::genai::chat::{ChatMessage, ContentPart};
use serde_json::Value;

use super::items::acceptable;
use super::rebuild::rebuilt;
use crate::proto::{ConversationMessage, ProviderData};
use crate::service::genai::models::is_same;
use crate::service::genai::target::{Api, Selection};
use crate::service::provider::fields::{kind, text};
use crate::service::provider::names;

/// The field of chat completions in which reasoning goes back.
pub(in crate::service::genai) const REASONING_FIELD: &str = "reasoning_content";
/// A larger payload is not sent.
const MAX_PAYLOAD_BYTES: usize = 8 * 1024 * 1024;

/// The name of a payload's form; `None` for an interface that needs nothing back.
fn format(api: Api) -> Option<&'static str> {
    match api {
        Api::Messages => Some("anthropic.blocks.v1"),
        Api::Responses => Some("openai.items.v1"),
        Api::Chat => Some("openai.reasoning.v1"),
        Api::Ollama | Api::Converse => None,
    }
}

/// The parts for the next request; `None` without any, or when there are too many.
pub(in crate::service::genai) fn provider_data(
    selection: Selection<'_>,
    parts: &[Value],
) -> Option<ProviderData> {
    if parts.is_empty() {
        return None;
    }
    let format = format(selection.api)?;
    let payload = serde_json::to_vec(parts).ok()?;
    if payload.len() > MAX_PAYLOAD_BYTES {
        tracing::warn!(
            bytes = payload.len(),
            "provider data left out: the answer has more than 8 MiB"
        );
        return None;
    }
    Some(ProviderData {
        provider: selection.provider().to_owned(),
        model: selection.model.to_owned(),
        format: format.to_owned(),
        payload,
    })
}

/// The parts of a former answer, if this model accepts them and they fit the message.
fn own_parts(message: &ConversationMessage, selection: Selection<'_>) -> Option<Vec<Value>> {
    let data = message.provider_data.as_ref()?;
    let is_own = data.provider == selection.provider()
        && Some(data.format.as_str()) == format(selection.api)
        && is_same(selection.model, &data.model);
    if !is_own {
        return None;
    }
    let parts: Vec<Value> = serde_json::from_slice(&data.payload).ok()?;
    let are_typed = parts
        .iter()
        .all(|part| part.get("type").is_some_and(Value::is_string));
    (selection.api == Api::Chat || are_typed).then_some(parts)
}

/// The messages of a former answer, as it was; `None` if it has to be rebuilt.
pub(super) fn replayed(
    message: &ConversationMessage,
    selection: Selection<'_>,
) -> Option<Vec<ChatMessage>> {
    let mut parts = own_parts(message, selection)?;
    match selection.api {
        Api::Messages => {}
        Api::Chat => return reasoning(message, selection, parts),
        Api::Responses | Api::Ollama | Api::Converse => return None,
    }
    // Every call has to have its result, so only the calls of the message go back.
    parts.retain(|part| {
        call(part).is_none_or(|(id, _)| message.tool_calls.iter().any(|call| call.id == id))
    });
    let parts = has_calls_of(&parts, message).then(|| with_accepted_names(parts))?;
    let messages = split(parts);
    (!messages.is_empty()).then_some(messages)
}

/// The items of a former answer, as they were; `None` if they have to be rebuilt.
pub(super) fn replayed_items(
    message: &ConversationMessage,
    selection: Selection<'_>,
) -> Option<Vec<Value>> {
    let parts = own_parts(message, selection)?;
    let items = has_calls_of(&parts, message).then(|| acceptable(with_accepted_names(parts)))?;
    (!items.is_empty()).then_some(items)
}

/// Whether the parts have the calls of a message, in their order, and no other ones.
fn has_calls_of(parts: &[Value], message: &ConversationMessage) -> bool {
    let known = message
        .tool_calls
        .iter()
        .map(|call| (call.id.as_str(), call.name.clone()));
    parts
        .iter()
        .filter_map(call)
        .map(|(id, name)| (id, names::from_wire(name)))
        .eq(known)
}

/// The parts with the names that the results of their calls have. A provider refuses a name that the model made up.
fn with_accepted_names(mut parts: Vec<Value>) -> Vec<Value> {
    for part in &mut parts {
        let Some((_, name)) = call(part) else {
            continue;
        };
        let accepted = names::in_history(&names::from_wire(name));
        if let Some(field) = part.get_mut("name").filter(|field| **field != accepted) {
            *field = Value::String(accepted);
        }
    }
    parts
}

/// The id and the name of a call.
fn call(part: &Value) -> Option<(&str, &str)> {
    match kind(part) {
        "tool_use" => Some((text(part, "id"), text(part, "name"))),
        "function_call" => Some((text(part, "call_id"), text(part, "name"))),
        _ => None,
    }
}

/// The crate puts all thoughts of a message before its other parts. So a thought after another part begins a message,
/// and the order is that of the answer. Providers join messages of one role.
fn split(parts: Vec<Value>) -> Vec<ChatMessage> {
    let mut messages: Vec<Vec<ContentPart>> = Vec::new();
    let mut follows_thought = false;
    for part in parts.into_iter().filter(|part| !is_empty(part)) {
        let is_thought = matches!(kind(&part), "thinking" | "redacted_thinking");
        let part = ContentPart::from_custom(part, None);
        match messages.last_mut() {
            Some(message) if !is_thought || follows_thought => message.push(part),
            Some(_) | None => messages.push(vec![part]),
        }
        follows_thought = is_thought;
    }
    messages.into_iter().map(ChatMessage::assistant).collect()
}

/// An empty block of text, which Anthropic writes and does not accept.
fn is_empty(part: &Value) -> bool {
    kind(part) == "text" && text(part, "text").trim().is_empty()
}

/// The answer with its reasoning, for the providers that want it back.
fn reasoning(
    message: &ConversationMessage,
    selection: Selection<'_>,
    parts: Vec<Value>,
) -> Option<Vec<ChatMessage>> {
    let mut rest = rebuilt(message, &message.content, selection)?;
    let mut content = Vec::new();
    for mut part in parts {
        if selection.provider() == "openrouter"
            && let Some(Value::Array(details)) = part.get_mut("details")
        {
            let details = std::mem::take(details).into_iter();
            content.extend(details.map(|detail| ContentPart::from_custom(detail, None)));
        }
        let reasoning = text(&part, "reasoning");
        // A server that sent the field accepts it, and may want it. Others refuse or ignore it. It belongs to calls.
        let is_known = matches!(selection.provider(), "deepseek" | "mistral");
        let is_wanted = is_known || text(&part, "field") == REASONING_FIELD;
        if is_wanted && !reasoning.is_empty() && !message.tool_calls.is_empty() {
            content.push(ContentPart::ReasoningContent(reasoning.to_owned()));
        }
    }
    if content.is_empty() {
        return None;
    }
    content.extend(rest.content.into_parts());
    rest.content = content.into();
    Some(vec![rest])
}

/// A server that wants the field back refuses each call without it, also one before which the model did not think. A
/// blank is what the field may have then: some servers take an empty text for a missing one.
pub(super) fn fill_reasoning(messages: &mut [ChatMessage]) {
    if !messages
        .iter()
        .any(|message| message.content.contains_reasoning_content())
    {
        return;
    }
    for ChatMessage { content, .. } in messages {
        if content.contains_tool_call() && !content.contains_reasoning_content() {
            content.prepend(ContentPart::ReasoningContent(" ".to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::LlmConfig;

    const BLOCKS: &str = concat!(
        r#"[{"type":"thinking","thinking":"a","signature":"s1"},{"type":"text","text":" "},{"type":"tool_use","id":"1","name":"a__b","input":{}},"#,
        r#"{"type":"thinking","thinking":"b","signature":"s2"},{"type":"redacted_thinking","data":"x"},{"type":"text","text":"t"}]"#
    );

    fn message(data: (&str, &str, &str, &str), call: &str) -> ConversationMessage {
        let call = crate::proto::ToolCall {
            id: "1".into(),
            name: call.into(),
            arguments: "{}".into(),
        };
        let (provider, model, format, payload) = data;
        let data = ProviderData {
            provider: provider.into(),
            model: model.into(),
            format: format.into(),
            payload: payload.into(),
        };
        ConversationMessage {
            role: "assistant".into(),
            provider_data: Some(data),
            tool_calls: vec![call],
            ..ConversationMessage::default()
        }
    }

    fn replay(
        provider: &str,
        model: &str,
        message: &ConversationMessage,
    ) -> Option<Vec<Vec<String>>> {
        let config = LlmConfig {
            provider: provider.into(),
            model: model.into(),
            ..LlmConfig::default()
        };
        let messages = replayed(message, Selection::parse(&config).unwrap())?;
        Some(
            messages
                .iter()
                .map(|message| {
                    message
                        .content
                        .iter()
                        .map(|part| match part {
                            ContentPart::Custom(custom) => custom.data.to_string(),
                            ContentPart::ThoughtSignature(text) => format!("signature {text}"),
                            ContentPart::ReasoningContent(text) => format!("reasoning {text}"),
                            ContentPart::Text(text) => format!("text {text}"),
                            ContentPart::ToolCall(call) => format!(
                                "call {} {} {}",
                                call.call_id, call.fn_name, call.fn_arguments
                            ),
                            ContentPart::Binary(_) | ContentPart::ToolResponse(_) => {
                                panic!("{part:?}")
                            }
                        })
                        .collect()
                })
                .collect(),
        )
    }

    #[test]
    fn blocks_go_back_in_their_order_and_only_to_the_same_model() {
        let data = |provider, model, format| message((provider, model, format, BLOCKS), "a.b");
        let own = data(
            "anthropic",
            "claude-sonnet-4-5-20250929",
            "anthropic.blocks.v1",
        );
        let expected = vec![
            vec![
                r#"{"type":"thinking","thinking":"a","signature":"s1"}"#.to_owned(),
                r#"{"type":"tool_use","id":"1","name":"a__b","input":{}}"#.to_owned(),
            ],
            vec![
                r#"{"type":"thinking","thinking":"b","signature":"s2"}"#.to_owned(),
                r#"{"type":"redacted_thinking","data":"x"}"#.to_owned(),
                r#"{"type":"text","text":"t"}"#.to_owned(),
            ],
        ];
        assert_eq!(
            replay("anthropic", "claude-sonnet-4-5", &own),
            Some(expected)
        );
        for foreign in [
            data("anthropic", "claude-opus-4-5", "anthropic.blocks.v1"),
            data("google", "claude-sonnet-4-5", "anthropic.blocks.v1"),
            data("anthropic", "claude-sonnet-4-5", "gemini.contents.v1"),
            message(
                (
                    "anthropic",
                    "claude-sonnet-4-5",
                    "anthropic.blocks.v1",
                    BLOCKS,
                ),
                "a.c",
            ),
            message(
                (
                    "anthropic",
                    "claude-sonnet-4-5",
                    "anthropic.blocks.v1",
                    "no json",
                ),
                "a.b",
            ),
        ] {
            assert_eq!(replay("anthropic", "claude-sonnet-4-5", &foreign), None);
        }
    }

    #[test]
    fn a_block_goes_back_without_the_calls_that_have_no_result() {
        let blocks = BLOCKS.replace(
            r#"{"type":"thinking","thinking":"b""#,
            r#"{"type":"tool_use","id":"2","name":"c","input":{}},{"type":"thinking","thinking":"b""#,
        );
        let own = |blocks: &str| {
            message(
                (
                    "anthropic",
                    "claude-sonnet-4-5",
                    "anthropic.blocks.v1",
                    blocks,
                ),
                "a.b",
            )
        };
        let whole = replay("anthropic", "claude-sonnet-4-5", &own(BLOCKS));
        assert!(whole.is_some());
        assert_eq!(
            replay("anthropic", "claude-sonnet-4-5", &own(&blocks)),
            whole
        );
    }

    #[test]
    fn items_of_openai_go_back_as_they_were() {
        let items = concat!(
            r#"[{"type":"reasoning","id":"rs_1","encrypted_content":"e1","summary":[]},{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"t"}]},"#,
            r#"{"type":"function_call","id":"fc_1","call_id":"1","name":"a__b","arguments":"{\"z\":1,\"a\":2}"}]"#
        );
        let own = message(("openai", "gpt-5.1", "openai.items.v1", items), "a.b");
        let items_for = |provider: &str, message: &ConversationMessage| {
            let config = LlmConfig {
                provider: provider.into(),
                model: "gpt-5.1".into(),
                ..LlmConfig::default()
            };
            replayed_items(message, Selection::parse(&config).unwrap())
                .map(|items| Value::Array(items).to_string())
        };
        assert_eq!(items_for("openai", &own).as_deref(), Some(items));
        assert_eq!(items_for("azure", &own), None);
        let other = message(("openai", "gpt-5.1", "openai.items.v1", items), "a.c");
        assert_eq!(items_for("openai", &other), None);
    }

    #[test]
    fn reasoning_of_chat_completions_goes_only_where_it_is_wanted() {
        let parts = r#"[{"reasoning":"hm","details":[{"type":"reasoning.text","text":"hm","signature":"s"}]}]"#;
        let of = |provider| message((provider, "m", "openai.reasoning.v1", parts), "a.b");
        let call = "call 1 a__b {}".to_owned();
        let deepseek = vec![vec!["reasoning hm".to_owned(), call.clone()]];
        assert_eq!(replay("deepseek", "m", &of("deepseek")), Some(deepseek));
        let detail = r#"{"type":"reasoning.text","text":"hm","signature":"s"}"#.to_owned();
        assert_eq!(
            replay("openrouter", "m", &of("openrouter")),
            Some(vec![vec![detail, call]])
        );
        assert_eq!(replay("groq", "m", &of("groq")), None);
        let parts = r#"[{"reasoning":"hm","details":[],"field":"reasoning_content"}]"#;
        for provider in [
            "openai-compatible",
            "openrouter",
            "fireworks",
            "together",
            "groq",
        ] {
            let own = message((provider, "m", "openai.reasoning.v1", parts), "a.b");
            let expected = vec![vec!["reasoning hm".to_owned(), "call 1 a__b {}".to_owned()]];
            assert_eq!(replay(provider, "m", &own), Some(expected), "{provider}");
        }
    }

    #[test]
    fn a_call_without_reasoning_gets_a_blank_beside_one_with_it() {
        use ::genai::chat::ToolCall;
        let call = || {
            let arguments = Value::Null;
            let call_id = "1".to_owned();
            let fn_name = "a__b".to_owned();
            ContentPart::ToolCall(ToolCall {
                call_id,
                fn_name,
                fn_arguments: arguments,
                thought_signatures: None,
            })
        };
        let answer = |parts: Vec<ContentPart>| ChatMessage::assistant(parts);
        let reasoning = |messages: &[ChatMessage]| -> Vec<usize> {
            messages
                .iter()
                .map(|message| {
                    message
                        .content
                        .iter()
                        .filter(|part| matches!(part, ContentPart::ReasoningContent(_)))
                        .count()
                })
                .collect()
        };
        let thought = ContentPart::ReasoningContent("hm".to_owned());
        let mut messages = [
            answer(vec![thought, call()]),
            answer(vec![call()]),
            ChatMessage::assistant("text"),
        ];
        fill_reasoning(&mut messages);
        assert_eq!(reasoning(&messages), [1, 1, 0]);
        let mut plain = [answer(vec![call()])];
        fill_reasoning(&mut plain);
        assert_eq!(reasoning(&plain), [0]);
    }

    #[test]
    fn a_name_that_the_model_made_up_goes_back_in_an_accepted_form() {
        let made_up = "a.b<|channel|>";
        let accepted = names::in_history(made_up);
        let blocks = BLOCKS.replace("a__b", "a__b<|channel|>");
        let own = message(
            (
                "anthropic",
                "claude-sonnet-4-5",
                "anthropic.blocks.v1",
                &blocks,
            ),
            made_up,
        );
        let found = replay("anthropic", "claude-sonnet-4-5", &own)
            .unwrap()
            .concat()
            .concat();
        assert!(
            found.contains(&format!(r#""name":"{accepted}""#)) && !found.contains("<|"),
            "{found}"
        );
    }
}
