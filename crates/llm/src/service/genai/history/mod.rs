//! Converts the messages of a conversation: into messages of the crate, or into items of the Responses API.
//!
//! A former answer of the same provider and model goes back as it was. Any other answer is rebuilt from its text and
//! calls, with notes on the work that another provider did for it.

mod as_text;
mod rebuild;
mod items;
mod replay;

use std::borrow::Cow;

use ::genai::chat::{CacheControl, ChatMessage, ChatRole, ContentPart};

use serde_json::Value;

use self::as_text::as_text;
use self::rebuild::{rebuilt, result};
pub(super) use self::replay::{REASONING_FIELD, provider_data};
use self::replay::{fill_reasoning, replayed, replayed_items};
use super::target::{Api, Selection};
use crate::proto::{ConversationMessage, GenerateRequest};
use crate::service::provider::conversation::{Step, steps};
use crate::service::provider::retry::Signatures;
use crate::service::provider::{ProviderError, foreign};

/// A conversation in the words of the crate.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) messages: Vec<ChatMessage>,
    /// The conversation for the Responses API, which has no messages.
    pub(super) items: Vec<Value>,
    /// Whether an answer goes back as it was.
    pub(super) is_replayed: bool,
    /// Whether an answer of the current turn has calls without the thoughts before them.
    pub(super) is_unsigned: bool,
}

/// Converts the messages of a request.
///
/// # Errors
/// `invalid_request` when there is a second system message, or an unknown role.
pub(super) fn convert_request(
    request: &GenerateRequest,
    selection: Selection<'_>,
    signatures: Signatures,
) -> Result<History, ProviderError> {
    match as_text(request, selection) {
        Some(messages) => convert(&messages, selection, signatures),
        None => convert(&request.messages, selection, signatures),
    }
}

fn convert(
    messages: &[ConversationMessage],
    selection: Selection<'_>,
    signatures: Signatures,
) -> Result<History, ProviderError> {
    let mut history = History::default();
    for step in steps(messages)? {
        match step {
            Step::System(message) => history.push_text(ChatRole::System, message, selection),
            Step::User(message) => history.push_text(ChatRole::User, message, selection),
            Step::Results(results) => history.push_results(&results, selection),
            Step::Answer {
                message,
                is_current,
            } => {
                let is_replayed =
                    signatures == Signatures::Replayed && history.replay(message, selection);
                history.is_replayed |= is_replayed;
                if !is_replayed {
                    history.is_unsigned |= is_current && !message.tool_calls.is_empty();
                    history.rebuild(message, selection);
                }
            }
        }
    }
    match selection.api {
        Api::Messages => history.mark_cache(),
        Api::Converse => history.join_roles(),
        Api::Chat if selection.provider() != "mistral" => fill_reasoning(&mut history.messages),
        Api::Responses | Api::Chat | Api::Ollama => {}
    }
    Ok(history)
}

impl History {
    fn push_text(
        &mut self,
        role: ChatRole,
        message: &ConversationMessage,
        selection: Selection<'_>,
    ) {
        if selection.api == Api::Responses {
            self.items
                .push(items::message(&message.role, &message.content));
        } else {
            self.messages
                .push(ChatMessage::new(role, message.content.as_str()));
        }
    }

    /// Adds a former answer as it was; returns whether that is possible.
    fn replay(&mut self, message: &ConversationMessage, selection: Selection<'_>) -> bool {
        if selection.api == Api::Responses {
            let items = replayed_items(message, selection);
            let is_possible = items.is_some();
            self.items.extend(items.into_iter().flatten());
            return is_possible;
        }
        let messages = replayed(message, selection);
        let is_possible = messages.is_some();
        self.messages.extend(messages.into_iter().flatten());
        is_possible
    }

    fn rebuild(&mut self, message: &ConversationMessage, selection: Selection<'_>) {
        let text = with_notes(message, selection);
        if selection.api == Api::Responses {
            self.items.extend(items::rebuilt(message, &text, selection));
        } else {
            self.messages.extend(rebuilt(message, &text, selection));
        }
    }

    /// Adds the results of one step: for Anthropic as one message, because it refuses a call whose result is not in the
    /// next message.
    fn push_results(&mut self, results: &[&ConversationMessage], selection: Selection<'_>) {
        if selection.api == Api::Responses {
            self.items.extend(
                results
                    .iter()
                    .map(|result| items::result(result, selection)),
            );
            return;
        }
        let parts = results.iter().map(|message| result(message, selection));
        if matches!(selection.api, Api::Messages | Api::Converse) {
            let parts: Vec<ContentPart> = parts.collect();
            self.messages.push(ChatMessage::tool(parts));
        } else {
            self.messages.extend(parts.map(ChatMessage::tool));
        }
    }

    /// Joins neighbours of one role: the roles of Bedrock have to alternate, and results are messages of the user.
    fn join_roles(&mut self) {
        let mut joined: Vec<ChatMessage> = Vec::with_capacity(self.messages.len());
        for mut message in std::mem::take(&mut self.messages) {
            if message.role == ChatRole::Tool {
                message.role = ChatRole::User;
            }
            match joined.last_mut() {
                Some(last) if last.role == message.role && message.role != ChatRole::System => {
                    last.content.extend(message.content);
                }
                Some(_) | None => joined.push(message),
            }
        }
        self.messages = joined;
    }

    /// Lets Anthropic cache the tools with the system message, and the conversation up to its last message. The end of
    /// the request before is marked as well: Anthropic looks for it 20 blocks back, and a step may have more.
    fn mark_cache(&mut self) {
        let mut messages = self.messages.iter_mut();
        if let Some(system) = messages.find(|message| message.role == ChatRole::System) {
            mark(system);
        }
        self.messages
            .iter_mut()
            .rev()
            .filter(|message| matches!(message.role, ChatRole::User | ChatRole::Tool))
            .take(2)
            .for_each(mark);
    }
}

/// The text of a former answer, after notes on what another provider did for it.
fn with_notes<'a>(message: &'a ConversationMessage, selection: Selection<'_>) -> Cow<'a, str> {
    match foreign::short_text(message, selection.provider()) {
        None => Cow::Borrowed(&message.content),
        Some(notes) if message.content.is_empty() => Cow::Owned(notes),
        Some(notes) => Cow::Owned(format!("{notes}\n\n{}", message.content)),
    }
}

/// Anthropic refuses a mark on an empty text.
fn mark(message: &mut ChatMessage) {
    if message.role == ChatRole::Tool || !message.content.is_text_empty() {
        message.options = Some(CacheControl::Ephemeral.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::proto::{LlmConfig, ProviderData, ToolCall};

    fn message(role: &str, content: &str) -> ConversationMessage {
        ConversationMessage {
            role: role.into(),
            content: content.into(),
            ..ConversationMessage::default()
        }
    }

    fn step(calls: &[&str], data: Option<ProviderData>) -> ConversationMessage {
        let tool_calls = calls
            .iter()
            .map(|id| ToolCall {
                id: (*id).into(),
                name: "a.b".into(),
                arguments: r#"{"x":1}"#.into(),
            })
            .collect();
        ConversationMessage {
            tool_calls,
            provider_data: data,
            ..message("assistant", "")
        }
    }

    fn answered(id: &str) -> ConversationMessage {
        ConversationMessage {
            tool_call_id: id.into(),
            tool_name: "a.b".into(),
            ..message("tool", id)
        }
    }

    fn converted(
        provider: &str,
        messages: &[ConversationMessage],
        signatures: Signatures,
    ) -> History {
        let model = "claude-sonnet-4-5".to_owned();
        let config = LlmConfig {
            provider: provider.into(),
            model,
            ..LlmConfig::default()
        };
        convert(messages, Selection::parse(&config).unwrap(), signatures).unwrap()
    }

    fn shown(history: &History) -> Vec<String> {
        history
            .messages
            .iter()
            .map(|message| {
                let mark = if message.options.is_some() { "*" } else { "" };
                let parts: Vec<String> = message
                    .content
                    .iter()
                    .map(|part| match part {
                        ContentPart::Text(text) => text.clone(),
                        ContentPart::ToolCall(call) => {
                            format!("{}{}", call.call_id, call.fn_arguments)
                        }
                        ContentPart::ToolResponse(response) => format!("={}", response.call_id),
                        ContentPart::Custom(custom) => custom.data.to_string(),
                        ContentPart::Binary(_)
                        | ContentPart::ThoughtSignature(_)
                        | ContentPart::ReasoningContent(_) => {
                            panic!("{part:?}")
                        }
                    })
                    .collect();
                format!("{}{mark} {}", message.role, parts.join(" "))
            })
            .collect()
    }

    #[test]
    fn results_of_a_step_follow_in_the_order_of_the_calls() {
        let failed = ConversationMessage {
            is_error: true,
            ..answered("2")
        };
        let messages = [
            message("system", "s"),
            message("user", "u"),
            step(&["1", "2"], None),
            failed,
            answered("1"),
        ];
        let error =
            r#"{"type":"tool_result","content":"2","tool_use_id":"2","is_error":true}"#.to_owned();
        let anthropic = converted("anthropic", &messages, Signatures::Replayed);
        assert_eq!(
            shown(&anthropic),
            [
                "System* s",
                "User* u",
                r#"Assistant 1{"x":1} 2{"x":1}"#,
                &format!("Tool* =1 {error}")
            ]
        );
        assert!(anthropic.is_unsigned && !anthropic.is_replayed);
        let openai = converted("openai", &messages, Signatures::Replayed);
        assert_eq!(
            shown(&openai),
            [
                "System s",
                "User u",
                r#"Assistant 1{"x":1} 2{"x":1}"#,
                "Tool =1",
                "Tool =2"
            ]
        );
        let config = LlmConfig {
            provider: "openai".into(),
            model: "gpt-5".into(),
            ..LlmConfig::default()
        };
        let responses = convert(
            &messages,
            Selection::parse(&config).unwrap(),
            Signatures::Replayed,
        )
        .unwrap();
        assert_eq!(responses.messages.len(), 0);
        let text = |role: &str, text: &str| json!({"type":"message","role":role,"content":text});
        let call = |id: &str| json!({"type":"function_call","call_id":id,"name":"a__b","arguments":r#"{"x":1}"#});
        let output = |id: &str| json!({"type":"function_call_output","call_id":id,"output":id});
        let expected = [
            text("system", "s"),
            text("user", "u"),
            call("1"),
            call("2"),
            output("1"),
            output("2"),
        ];
        assert_eq!(responses.items, expected);
    }

    #[test]
    fn the_roles_of_bedrock_alternate() {
        let messages = [
            message("system", "s"),
            message("user", "u"),
            message("user", "v"),
            step(&["1", "2"], None),
            answered("2"),
            answered("1"),
            message("user", "w"),
            message("assistant", "a"),
            message("assistant", "b"),
        ];
        let expected = [
            "System s",
            "User u v",
            r#"Assistant 1{"x":1} 2{"x":1}"#,
            "User =1 =2 w",
            "Assistant a b",
        ];
        assert_eq!(
            shown(&converted("bedrock", &messages, Signatures::Replayed)),
            expected
        );
    }

    #[test]
    fn only_calls_of_the_current_turn_count_as_unsigned() {
        let data = ProviderData {
            provider: "anthropic".into(),
            model: "claude-sonnet-4-5".into(),
            format: "anthropic.blocks.v1".into(),
            payload: br#"[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"2","name":"a__b","input":{}}]"#
                .to_vec(),
        };
        let old = [message("user", "u"), step(&["1"], None), answered("1")];
        let new = [
            message("user", "v"),
            step(&["2"], Some(data)),
            answered("2"),
        ];
        let messages = [old, new].concat();
        let replayed = converted("anthropic", &messages, Signatures::Replayed);
        assert!(replayed.is_replayed && !replayed.is_unsigned);
        assert!(shown(&replayed)[4].contains(r#""signature":"s""#));
        let rebuilt = converted("anthropic", &messages, Signatures::Rebuilt);
        assert!(
            !rebuilt.is_replayed
                && rebuilt.is_unsigned
                && !shown(&rebuilt).concat().contains("signature")
        );
    }

    #[test]
    fn messages_that_have_no_form_are_refused() {
        let config = LlmConfig {
            provider: "openai".into(),
            model: "gpt-5".into(),
            ..LlmConfig::default()
        };
        let fault = |messages: &[ConversationMessage]| {
            convert(
                messages,
                Selection::parse(&config).unwrap(),
                Signatures::Replayed,
            )
            .unwrap_err()
            .message
        };
        let system = message("system", "s");
        assert_eq!(
            fault(&[system.clone(), system]),
            "only one system message is possible"
        );
        assert_eq!(fault(&[message("robot", "")]), "unknown role 'robot'");
    }
}
