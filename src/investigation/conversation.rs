//! The conversation: what the model is shown of a journal.

use super::entry::{Entry, ProviderData, Role, ToolCall};
use super::results::removed;

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text.
    pub content: String,
    /// Of an assistant: the calls it asked for.
    pub tool_calls: Vec<ToolCall>,
    /// Of a tool: the call that is answered.
    pub tool_call_id: Option<String>,
    /// Of a tool: its name.
    pub tool_name: Option<String>,
    /// Of a tool: it reports a failure.
    pub is_error: bool,
    /// Of an assistant: what the provider wants back.
    pub provider_data: Option<ProviderData>,
}

/// What stands in the place of an elided result.
const ELIDED: &str = "[this result was removed to save space; call the tool again if you need it]";

/// What stands in the place of an answer without text and calls: no provider takes an empty message.
const NOTHING: &str = "(no answer)";

impl Message {
    fn text(role: Role, content: &str) -> Self {
        Self {
            role,
            content: content.to_owned(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_name: None,
            is_error: false,
            provider_data: None,
        }
    }
}

/// The messages of `entries`, in order. Facts are left out; tool results up to entry number `elided` are blanked, so
/// that every call keeps its result.
pub fn messages(entries: &[Entry], elided: u32) -> Vec<Message> {
    let numbered = (1_u32..).zip(entries);
    numbered.filter_map(|(number, entry)| message(entry, number <= elided)).collect()
}

fn message(entry: &Entry, blanked: bool) -> Option<Message> {
    match entry {
        Entry::Prompt { role, content } => Some(Message::text(*role, content)),
        Entry::Feedback { content } => Some(Message::text(Role::User, content)),
        Entry::Answer(answer) => {
            // A call that stands in the text is no structured one.
            let tool_calls = if answer.reading.is_some() { Vec::new() } else { answer.calls.clone() };
            let empty = tool_calls.is_empty() && answer.text.trim().is_empty();
            let message = Message::text(Role::Assistant, if empty { NOTHING } else { &answer.text });
            Some(Message { tool_calls, provider_data: answer.provider_data.clone(), ..message })
        }
        Entry::ToolResult { call_id, tool, content, is_error } => Some(Message {
            tool_call_id: Some(call_id.clone()),
            tool_name: Some(tool.clone()),
            is_error: *is_error,
            ..Message::text(Role::Tool, if blanked { ELIDED } else { content })
        }),
        Entry::Observation { content, .. } => {
            Some(if blanked { Message::text(Role::User, &removed(ELIDED)) } else { Message::text(Role::User, content) })
        }
        Entry::Failed { .. }
        | Entry::Started { .. }
        | Entry::Lost { .. }
        | Entry::Switched { .. }
        | Entry::Concluding { .. }
        | Entry::Elided { .. }
        | Entry::Stopped { .. }
        | Entry::Ended { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::investigation::entry::{Answer, StopReason};

    #[test]
    fn facts_are_not_shown_and_elided_results_keep_their_place() {
        let result = |id: &str| Entry::ToolResult {
            call_id: id.to_owned(),
            tool: "k8s.get".to_owned(),
            content: "long".to_owned(),
            is_error: false,
        };
        let observation = |id: &str| Entry::Observation {
            call_id: id.to_owned(),
            tool: "k8s.get".to_owned(),
            content: "Observation: long".to_owned(),
            is_error: false,
        };
        let entries = [
            Entry::Prompt { role: Role::System, content: "be brief".to_owned() },
            Entry::Answer(Answer { text: "looking".to_owned(), ..Answer::default() }),
            result("a"),
            observation("c"),
            Entry::Concluding { reason: StopReason::Budget },
            result("b"),
            observation("d"),
        ];
        let shown: Vec<_> = messages(&entries, 4).into_iter().map(|m| (m.role, m.content)).collect();
        assert_eq!(
            shown,
            [
                (Role::System, "be brief".to_owned()),
                (Role::Assistant, "looking".to_owned()),
                (Role::Tool, ELIDED.to_owned()),
                (Role::User, format!("Observation: {ELIDED}")),
                (Role::Tool, "long".to_owned()),
                (Role::User, "Observation: long".to_owned()),
            ]
        );
    }
}
