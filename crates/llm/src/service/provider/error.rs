//! The failure of a provider, and the codes by which clients decide.
//!
//! The existing service has seven codes. A client that does not accept `codes.v2` gets one of them.

use std::time::Duration;

use crate::proto::ErrorInfo;

/// A longer message of a provider is cut.
const MAX_MESSAGE_CHARS: usize = 1_000;

/// The reason why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    pub code: ErrorCode,
    /// Text for people. Contains no key, no header and no URL.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// The time that the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// The provider's own words, for example `429 RESOURCE_EXHAUSTED`; empty if it has not answered.
    pub provider_status: String,
    /// The requests that were sent.
    pub attempts: u32,
    /// The whole text of the provider, and the places in the request that it names. This is only read, never sent.
    pub said: String,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The key is missing, not permitted or rejected.
    Credentials,
    InvalidRequest,
    /// The provider failed in a way that has no code of its own.
    Provider,
    /// Every attempt gave an answer without content.
    EmptyResponse,
    /// The stream broke after the first part of the answer.
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
    /// The output limit was reached before the first word of the answer.
    MaxTokens,
    /// The model wrote a tool call that cannot be read.
    MalformedToolCall,
}

impl ErrorCode {
    /// The code for a client that accepts `codes.v2`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::InvalidRequest => "invalid_request",
            Self::Provider => "provider_error",
            Self::EmptyResponse => "empty_response",
            Self::PartialStream => "partial_stream_error",
            Self::InvalidBackend => "invalid_backend",
            Self::Internal => "internal",
            Self::RateLimited => "rate_limited",
            Self::Unavailable => "unavailable",
            Self::ContextWindowExceeded => "context_window_exceeded",
            Self::Blocked => "blocked",
            Self::ThoughtSignature => "thought_signature",
            Self::ModelNotFound => "model_not_found",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::Cancelled => "cancelled",
            Self::MaxTokens => "max_tokens",
            Self::MalformedToolCall => "malformed_tool_call",
        }
    }
}

impl ProviderError {
    /// A failure that the same request would meet again.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let message = cut(message.into());
        Self {
            code,
            message,
            retryable: false,
            retry_after: None,
            provider_status: String::new(),
            attempts: 0,
            said: String::new(),
        }
    }

    /// A failure that may pass.
    pub(crate) fn transient(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            retryable: true,
            ..Self::new(code, message)
        }
    }

    /// The same failure with the provider's own words.
    pub fn with_status(mut self, status: impl Into<String>) -> Self {
        self.provider_status = status.into();
        self
    }

    /// The message of the protocol with every code.
    pub(crate) fn into_info(self) -> ErrorInfo {
        let code = self.code.as_str();
        self.info(code)
    }

    /// The message of the protocol with the codes of the existing service.
    pub(crate) fn into_old_info(self) -> ErrorInfo {
        let code = self.old_code();
        self.info(code)
    }

    fn info(self, code: &str) -> ErrorInfo {
        ErrorInfo {
            message: self.message,
            code: code.to_owned(),
            retryable: self.retryable,
            retry_after: self.retry_after.and_then(|time| time.try_into().ok()),
            provider_status: self.provider_status,
            attempts: self.attempts,
        }
    }

    /// The existing service has `credentials` and `invalid_request` only for faults that it finds itself, and
    /// `max_retries` where another attempt would not help now.
    fn old_code(&self) -> &'static str {
        let is_own = self.provider_status.is_empty();
        match self.code {
            ErrorCode::Credentials if is_own => "credentials",
            ErrorCode::InvalidRequest if is_own => "invalid_request",
            ErrorCode::PartialStream => "partial_stream_error",
            ErrorCode::InvalidBackend => "invalid_backend",
            ErrorCode::Internal => "internal",
            ErrorCode::EmptyResponse
            | ErrorCode::RateLimited
            | ErrorCode::Unavailable
            | ErrorCode::DeadlineExceeded
            | ErrorCode::MalformedToolCall => "max_retries",
            ErrorCode::Credentials
            | ErrorCode::InvalidRequest
            | ErrorCode::Provider
            | ErrorCode::ContextWindowExceeded
            | ErrorCode::Blocked
            | ErrorCode::ThoughtSignature
            | ErrorCode::ModelNotFound
            | ErrorCode::Cancelled
            | ErrorCode::MaxTokens => "provider_error",
        }
    }
}

fn cut(message: String) -> String {
    match message.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => message
            .get(..end)
            .map(|start| format!("{start}…"))
            .unwrap_or_default(),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_client_gets_one_of_seven_codes() {
        use ErrorCode::{
            Blocked, Credentials, InvalidRequest, PartialStream, RateLimited, Unavailable,
        };
        for (code, status, old) in [
            (Credentials, "", "credentials"),
            (Credentials, "400 INVALID_ARGUMENT", "provider_error"),
            (InvalidRequest, "", "invalid_request"),
            (InvalidRequest, "400 INVALID_ARGUMENT", "provider_error"),
            (RateLimited, "429 RESOURCE_EXHAUSTED", "max_retries"),
            (Unavailable, "", "max_retries"),
            (PartialStream, "503 UNAVAILABLE", "partial_stream_error"),
            (Blocked, "PROHIBITED_CONTENT", "provider_error"),
        ] {
            let error = ProviderError::new(code, "m").with_status(status);
            assert_eq!(error.clone().into_old_info().code, old, "{code:?} {status}");
            assert_eq!(error.into_info().code, code.as_str());
        }
    }

    #[test]
    fn the_message_of_the_protocol_has_every_field() {
        let mut error =
            ProviderError::transient(ErrorCode::RateLimited, "slow down").with_status("429");
        error.retry_after = Some(Duration::from_millis(2_500));
        error.attempts = 3;
        let expected = ErrorInfo {
            message: "slow down".into(),
            code: "rate_limited".into(),
            retryable: true,
            retry_after: Some(prost_types::Duration {
                seconds: 2,
                nanos: 500_000_000,
            }),
            provider_status: "429".into(),
            attempts: 3,
        };
        assert_eq!(error.into_info(), expected);
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let message = ProviderError::new(ErrorCode::Provider, "é".repeat(1_200)).message;
        assert_eq!(message, format!("{}…", "é".repeat(1_000)));
    }
}
