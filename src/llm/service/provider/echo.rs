//! Keeps the conversation out of messages: a provider may quote the value that it does not accept.

use super::error::ProviderError;
use crate::llm::proto::{ConversationMessage, GenerateRequest};

/// A message is searched in windows of this length, so it is found if it quotes twice as many characters in a row.
const WINDOW_CHARS: usize = 24;
const REPLACED: &str = "the provider's message is left out, because it repeats the conversation";

/// The failure without the provider's words if they repeat a message of the request.
pub(super) fn without_conversation(error: ProviderError, request: &GenerateRequest) -> ProviderError {
    let is_own = error.provider_status.is_empty();
    if is_own || !repeats(&error.message, &request.messages) {
        return error;
    }
    let message = format!("{}. {REPLACED}", error.provider_status);
    ProviderError { message, ..error }
}

fn repeats(text: &str, messages: &[ConversationMessage]) -> bool {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks_exact(WINDOW_CHARS).any(|window| {
        let window: String = window.iter().collect();
        messages.iter().any(|message| message.content.contains(&window))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::service::provider::error::ErrorCode;

    const PROMPT: &str = "The pod web-1 of the team payments restarts every two minutes since noon.";

    fn message(text: &str, status: &str) -> String {
        let content = format!("Investigate. {PROMPT} Thank you.");
        let messages = vec![ConversationMessage { content, ..ConversationMessage::default() }];
        let request = GenerateRequest { messages, ..GenerateRequest::default() };
        let error = ProviderError::new(ErrorCode::InvalidRequest, text).with_status(status);
        without_conversation(error, &request).message
    }

    #[test]
    fn a_quoted_conversation_is_left_out_and_every_other_message_is_kept() {
        let replaced = format!("400 X. {REPLACED}");
        for text in [
            format!("Invalid value at 'contents', \"{PROMPT}\""),
            format!("Invalid value, {}…", PROMPT.get(..50).unwrap()),
        ] {
            assert_eq!(message(&text, "400 X"), replaced);
        }
        for text in ["Invalid value: pod web-1", "The model is overloaded. Please try again later."] {
            assert_eq!(message(text, "400 X"), text);
        }
        assert_eq!(message(PROMPT, ""), PROMPT);
    }
}
