//! Why the model stopped: the provider's open set of reasons in the words of the protocol.

use crate::llm::service::provider::{ErrorCode, ProviderError};

/// The reason of an answer that goes on in another response.
pub(super) const CONTINUATION: &str = "CONTINUATION";

/// The kind of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    Stop,
    MaxTokens,
    Safety,
    Recitation,
    MalformedToolCall,
    MissingSignature,
    Other,
    /// A reason that is newer than this program.
    Unknown,
}

/// The best content that an answer has, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Written {
    Nothing,
    /// Only reasoning.
    Thoughts,
    Text,
    Calls,
}

impl Finish {
    pub(super) fn of(reason: &str) -> Self {
        match reason {
            "STOP" => Self::Stop,
            "MAX_TOKENS" => Self::MaxTokens,
            "SAFETY"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "MODEL_ARMOR"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT" => Self::Safety,
            "RECITATION" | "IMAGE_RECITATION" => Self::Recitation,
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" | "MALFORMED_RESPONSE" => {
                Self::MalformedToolCall
            }
            "MISSING_THOUGHT_SIGNATURE" => Self::MissingSignature,
            "LANGUAGE" | "OTHER" | "NO_IMAGE" | "IMAGE_OTHER" | "ESCALATION" | "PUP_LIMITED_DISABLED" => Self::Other,
            _ => Self::Unknown,
        }
    }

    /// The word in `finish.reason`.
    pub(super) fn word(self, written: Written) -> &'static str {
        match self {
            Self::Stop if written == Written::Calls => "tool_calls",
            Self::Stop => "stop",
            Self::MaxTokens => "max_tokens",
            Self::Safety => "safety",
            Self::Recitation => "recitation",
            Self::MalformedToolCall => "malformed_tool_call",
            Self::MissingSignature | Self::Other => "other",
            Self::Unknown => "unknown",
        }
    }

    /// The error of an answer without content; `None` for any other answer. Reasoning alone is an answer only if
    /// the model stopped by itself.
    pub(super) fn error(self, reason: &str, written: Written) -> Option<ProviderError> {
        let is_empty = written == Written::Nothing || (written == Written::Thoughts && self != Self::Stop);
        if !is_empty {
            return None;
        }
        let error = match self {
            Self::Stop | Self::Other | Self::Unknown => {
                ProviderError::transient(ErrorCode::EmptyResponse, "Empty response from LLM (no content generated)")
            }
            Self::MaxTokens => {
                let message = "The output limit was reached before the first word of the answer";
                ProviderError::new(ErrorCode::MaxTokens, message)
            }
            Self::Safety | Self::Recitation => {
                ProviderError::new(ErrorCode::Blocked, format!("The answer was blocked: {reason}"))
            }
            Self::MalformedToolCall => ProviderError::transient(
                ErrorCode::MalformedToolCall,
                format!("The model wrote a tool call that cannot be read: {reason}"),
            ),
            Self::MissingSignature => {
                ProviderError::new(ErrorCode::ThoughtSignature, "The provider misses a thought signature")
            }
        };
        Some(error.with_status(reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_word() {
        for (reason, written, word) in [
            ("STOP", Written::Text, "stop"),
            ("STOP", Written::Calls, "tool_calls"),
            ("MAX_TOKENS", Written::Calls, "max_tokens"),
            ("SPII", Written::Text, "safety"),
            ("MALFORMED_FUNCTION_CALL", Written::Text, "malformed_tool_call"),
            ("LANGUAGE", Written::Text, "other"),
            ("INVENTED_TOMORROW", Written::Text, "unknown"),
        ] {
            assert_eq!(Finish::of(reason).word(written), word, "{reason}");
        }
    }

    #[test]
    fn an_answer_without_content_is_an_error_that_says_why() {
        for (reason, written, code) in [
            ("STOP", Written::Nothing, Some((ErrorCode::EmptyResponse, true))),
            ("INVENTED_TOMORROW", Written::Nothing, Some((ErrorCode::EmptyResponse, true))),
            ("SAFETY", Written::Thoughts, Some((ErrorCode::Blocked, false))),
            ("MAX_TOKENS", Written::Nothing, Some((ErrorCode::MaxTokens, false))),
            ("MALFORMED_FUNCTION_CALL", Written::Thoughts, Some((ErrorCode::MalformedToolCall, true))),
            ("MISSING_THOUGHT_SIGNATURE", Written::Nothing, Some((ErrorCode::ThoughtSignature, false))),
            ("STOP", Written::Thoughts, None),
            ("SAFETY", Written::Text, None),
        ] {
            let error = Finish::of(reason).error(reason, written);
            assert_eq!(error.map(|error| (error.code, error.retryable)), code, "{reason} {written:?}");
        }
    }
}
