//! The finish reason of an answer.

use serde::{Deserialize, Deserializer, Serialize};
use strum::{IntoStaticStr, VariantArray, VariantNames};

/// The reason for the end of an answer, whatever word its provider has for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Finish {
    /// The model has ended its answer.
    #[default]
    Stop,
    /// The model waits for the results of its calls.
    ToolCalls,
    /// The limit of output tokens.
    MaxTokens,
    /// A content filter, or the model's refusal.
    Safety,
    /// The answer repeats a protected text.
    Recitation,
    /// The model wrote a call that its provider cannot read.
    MalformedToolCall,
    /// The conversation and the answer together fill the context window.
    ContextWindow,
    /// The provider has paused the answer.
    Paused,
    /// The provider has failed in the middle of the answer.
    Error,
    /// Any other reason, or one that this program does not know.
    Other,
}

crate::words!(pub Finish, pub ALL);

impl Finish {
    /// The reason of a word of the protocol, or of the usual words of providers for it; an LLM service that others
    /// wrote may pass these on. An empty word is a reason that was not sent: the answer ended by itself.
    pub fn parse(word: &str) -> Self {
        let word = word.to_ascii_lowercase();
        match word.as_str() {
            "" | "stop" | "end_turn" | "stop_sequence" | "eos" | "completed" | "complete" => {
                Self::Stop
            }
            "tool_calls" | "tool_use" | "function_call" => Self::ToolCalls,
            "max_tokens" | "length" | "max_output_tokens" | "model_length" | "incomplete" => {
                Self::MaxTokens
            }
            "safety" | "content_filter" | "content_filtered" | "refusal" | "blocked" => {
                Self::Safety
            }
            "recitation" => Self::Recitation,
            "malformed_tool_call" | "malformed_function_call" | "malformed_tool_use" => {
                Self::MalformedToolCall
            }
            "context_window" | "context_window_exceeded" | "model_context_window_exceeded" => {
                Self::ContextWindow
            }
            "paused" | "pause_turn" => Self::Paused,
            "error" => Self::Error,
            _ => Self::Other,
        }
    }

    /// Describes the finish reason for people and for the model; "it" in the text is the answer.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Stop | Self::ToolCalls => "it ended by itself",
            Self::MaxTokens => "it was cut off at the output limit (max_tokens)",
            Self::Safety => "it was stopped by a content filter (safety)",
            Self::Recitation => "it was stopped because it repeats a protected text (recitation)",
            Self::MalformedToolCall => {
                "it ended in a call that cannot be read (malformed_tool_call)"
            }
            Self::ContextWindow => {
                "it was cut off because the context window is full (context_window)"
            }
            Self::Paused => "its provider has paused it (paused)",
            Self::Error => "its provider failed before it was complete (error)",
            Self::Other => "it ended for a reason that is not known (other)",
        }
    }
}

/// A word that this version does not know is [`Finish::Other`]: a journal of a later version stays readable.
impl<'de> Deserialize<'de> for Finish {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|word| Self::parse(&word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_read_from_its_own_word() {
        for finish in Finish::ALL {
            assert_eq!(Finish::parse(finish.as_str()), finish);
            let json = serde_json::to_string(&finish).unwrap();
            assert_eq!(serde_json::from_str::<Finish>(&json).unwrap(), finish);
        }
    }

    #[test]
    fn a_word_of_a_provider_is_read_and_an_unknown_one_is_other() {
        for (word, finish) in [
            ("", Finish::Stop),
            ("END_TURN", Finish::Stop),
            ("MAX_TOKENS", Finish::MaxTokens),
            ("length", Finish::MaxTokens),
            ("model_context_window_exceeded", Finish::ContextWindow),
            ("pause_turn", Finish::Paused),
            ("unknown", Finish::Other),
            ("invented_tomorrow", Finish::Other),
        ] {
            assert_eq!(Finish::parse(word), finish, "{word}");
        }
    }
}
