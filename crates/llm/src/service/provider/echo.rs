//! Removes the conversation from error messages: a provider may quote a value that it does not accept.
//!
//! A client repeats the words of an earlier failure to the model. They are the provider's, and no conversation: a
//! provider that fails twice in the same words is passed on twice.

use super::error::ProviderError;
use crate::proto::{ConversationMessage, GenerateRequest};

/// A message is searched in windows of this length, so it is found if it quotes twice as many characters in a row.
const WINDOW_CHARS: usize = 24;
/// The first words of a failure of this service, before those of the provider.
pub(super) const FAILED: &str = "Generation failed";
pub(super) const FAILED_LATE: &str = "Stream failed after partial output";
const FAILURES: [&str; 2] = [FAILED, FAILED_LATE];
const REPLACED: &str = "the provider's message is left out, because it repeats the conversation";

/// The failure without the provider's words if they repeat a message of the request.
pub(super) fn without_conversation(
    error: ProviderError,
    request: &GenerateRequest,
) -> ProviderError {
    let is_own = error.provider_status.is_empty();
    if is_own || !repeats(&error.message, &request.messages) {
        return error;
    }
    let message = format!("{}. {REPLACED}", error.provider_status);
    ProviderError { message, ..error }
}

fn repeats(text: &str, messages: &[ConversationMessage]) -> bool {
    let contents: Vec<String> = messages
        .iter()
        .map(|message| without_failures(&message.content))
        .collect();
    let characters: Vec<char> = text.chars().collect();
    characters.chunks_exact(WINDOW_CHARS).any(|window| {
        let window: String = window.iter().collect();
        contents.iter().any(|content| content.contains(&window))
    })
}

/// A message without the failures that this service reported: from their first words to the end of the line.
fn without_failures(content: &str) -> String {
    let kept = content.lines().map(|line| {
        let begins = FAILURES.iter().filter_map(|words| line.find(words)).min();
        begins.and_then(|begin| line.get(..begin)).unwrap_or(line)
    });
    kept.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::provider::error::ErrorCode;

    const PROMPT: &str =
        "The pod web-1 of the team payments restarts every two minutes since noon.";

    fn message(text: &str, status: &str) -> String {
        message_after(text, status, "")
    }

    fn message_after(text: &str, status: &str, more: &str) -> String {
        let content = format!("Investigate. {PROMPT} Thank you.\n{more}");
        let messages = vec![ConversationMessage {
            content,
            ..ConversationMessage::default()
        }];
        let request = GenerateRequest {
            messages,
            ..GenerateRequest::default()
        };
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
        for text in [
            "Invalid value: pod web-1",
            "The model is overloaded. Please try again later.",
        ] {
            assert_eq!(message(text, "400 X"), text);
        }
        assert_eq!(message(PROMPT, ""), PROMPT);
    }

    #[test]
    fn the_words_of_an_earlier_failure_are_no_conversation() {
        let words = "The engine reloads its weights, please try again in some minutes";
        for begin in [FAILED, FAILED_LATE] {
            let feedback = format!(
                "Error from previous attempt: {begin}: [1] 503. {words}. Please try again."
            );
            assert_eq!(message_after(words, "503 X", &feedback), words);
            let replaced = format!("503 X. {REPLACED}");
            assert_eq!(
                message_after(&format!("{words} {PROMPT}"), "503 X", &feedback),
                replaced
            );
        }
        assert_eq!(
            message_after(words, "503 X", words),
            format!("503 X. {REPLACED}")
        );
    }
}
