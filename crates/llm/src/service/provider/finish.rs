//! Finish reasons: the protocol's words for the end of an answer. Each backend maps the words of its providers to
//! them.

use super::error::{ErrorCode, ProviderError};

/// The kind of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    Stop,
    /// The model stopped for a call.
    ToolCall,
    MaxTokens,
    Safety,
    Recitation,
    MalformedToolCall,
    ContextWindow,
    Paused,
    /// The provider failed in the middle of the answer.
    Error,
    MissingSignature,
    Other,
    /// A reason that is newer than this program.
    Unknown,
}

/// The best content that an answer has, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Written {
    Nothing,
    /// Reasoning, and nothing else.
    Thoughts,
    Text,
    Calls,
}

impl Finish {
    /// The word in `finish.reason`.
    pub(crate) fn word(self, written: Written) -> &'static str {
        match self {
            Self::Stop | Self::ToolCall if written == Written::Calls => "tool_calls",
            Self::Stop => "stop",
            Self::MaxTokens => "max_tokens",
            Self::Safety => "safety",
            Self::Recitation => "recitation",
            // The server lost the call for which the model stopped: the text before it does not answer anything.
            Self::MalformedToolCall | Self::ToolCall => "malformed_tool_call",
            Self::ContextWindow => "context_window",
            Self::Paused => "paused",
            Self::Error => "error",
            Self::MissingSignature | Self::Other => "other",
            Self::Unknown => "unknown",
        }
    }

    /// The error of an answer without content; `None` for any other answer. Reasoning alone is an answer only if
    /// the model stopped by itself.
    pub(crate) fn error(self, reason: &str, written: Written) -> Option<ProviderError> {
        let is_empty =
            written == Written::Nothing || (written == Written::Thoughts && self != Self::Stop);
        if !is_empty {
            return None;
        }
        let error = match self {
            Self::Stop | Self::Paused | Self::Other | Self::Unknown => ProviderError::transient(
                ErrorCode::EmptyResponse,
                "Empty response from LLM (no content generated)",
            ),
            Self::MaxTokens => {
                let message = "The output limit was reached before the first word of the answer";
                ProviderError::new(ErrorCode::MaxTokens, message)
            }
            Self::ContextWindow => {
                let message = "The context window was full before the first word of the answer";
                ProviderError::new(ErrorCode::ContextWindowExceeded, message)
            }
            Self::Error => ProviderError::transient(
                ErrorCode::PartialStream,
                "The provider failed before the first word of the answer",
            ),
            Self::Safety | Self::Recitation => ProviderError::new(
                ErrorCode::Blocked,
                format!("The answer was blocked: {reason}"),
            ),
            Self::ToolCall => ProviderError::transient(
                ErrorCode::MalformedToolCall,
                "The model stopped for a tool call, and the answer has none",
            ),
            Self::MalformedToolCall => ProviderError::transient(
                ErrorCode::MalformedToolCall,
                format!("The model wrote a tool call that cannot be read: {reason}"),
            ),
            Self::MissingSignature => ProviderError::new(
                ErrorCode::ThoughtSignature,
                "The provider misses a thought signature",
            ),
        };
        Some(error.with_status(reason))
    }
}
