//! The codes of failed model calls: those of the LLM service, and those that a worker adds.

use strum::{EnumString, IntoStaticStr, VariantNames};

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum ErrorCode {
    /// The key is missing, not permitted or rejected.
    Credentials,
    InvalidRequest,
    /// The provider failed in a way that has no code of its own.
    #[strum(serialize = "provider_error")]
    Provider,
    /// Every attempt gave an answer without content.
    EmptyResponse,
    /// The stream broke after the first part of the answer.
    #[strum(serialize = "partial_stream_error")]
    PartialStream,
    InvalidBackend,
    Internal,
    RateLimited,
    /// The provider is overloaded or cannot be reached.
    Unavailable,
    ContextWindowExceeded,
    /// The provider refused the prompt or the answer by its rules of safety.
    Blocked,
    /// The provider does not accept the thought signatures of the history.
    ThoughtSignature,
    ModelNotFound,
    DeadlineExceeded,
    Cancelled,
    /// The output limit was reached before the first word of the answer, or within it.
    MaxTokens,
    /// The model wrote a tool call that cannot be read.
    MalformedToolCall,
    /// The existing service has retried in vain; the reason is not known.
    MaxRetries,
    /// The service ended the stream of an answer without a code.
    StreamBroken,
    /// The service stopped before the end of the answer.
    ShuttingDown,
    /// The client disconnected before the end of the answer.
    Abandoned,
    /// A worker got the second empty answer in a row.
    Empty,
    /// A worker got an answer with a tool call in its text.
    CallInText,
    /// A worker got no answer within the time of the iteration.
    Timeout,
    /// A worker got more than an answer may have.
    AnswerTooLarge,
    /// A code that this version does not know. The word itself stays in the journal and in events.
    Other,
}

crate::words!(pub ErrorCode);

impl ErrorCode {
    /// The values of the label `error_type`, few because each of them has a histogram: no error, the errors of a
    /// provider that are worth a curve, and the word of OpenTelemetry's conventions for the rest.
    pub const CLASSES: [&str; 7] = [
        "",
        "credentials",
        "deadline_exceeded",
        "invalid_request",
        "rate_limited",
        "unavailable",
        "_OTHER",
    ];

    /// The code of a word, which a newer service may have chosen.
    pub fn parse(word: &str) -> Self {
        word.parse().unwrap_or(Self::Other)
    }

    /// Whether the same request fails again until an operator has changed the configuration.
    pub fn is_permanent(self) -> bool {
        matches!(
            self,
            Self::Credentials | Self::InvalidBackend | Self::InvalidRequest | Self::ModelNotFound
        )
    }
}
