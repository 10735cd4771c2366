//! The failure of a provider, and the codes by which clients decide.
//!
//! The existing service has seven codes. A client that does not accept `codes.v2` gets one of them.

use std::time::Duration;

use crate::proto::ErrorInfo;

pub use tarsy_core::vocabulary::ErrorCode;

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
    pub full_text: String,
}

impl ProviderError {
    /// A failure that the same request would meet again.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: cut(message.into(), MAX_MESSAGE_CHARS),
            retryable: false,
            retry_after: None,
            provider_status: String::new(),
            attempts: 0,
            full_text: String::new(),
        }
    }

    /// A request that no provider can answer.
    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// A key or an account that is missing, or cannot be used.
    pub(crate) fn credentials(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Credentials, message)
    }

    /// A fault of this service.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// A stream that ended before its answer.
    pub(crate) fn unfinished() -> Self {
        let message = "the stream of the provider ended without a finish reason";
        Self::transient(ErrorCode::Unavailable, message)
    }

    /// JSON of a provider that cannot be read. The message has none of its content.
    pub(crate) fn unreadable(error: &serde_json::Error) -> Self {
        let message = format!(
            "Failed to parse response as JSON: {:?} at line {} column {}",
            error.classify(),
            error.line(),
            error.column()
        );
        Self::transient(ErrorCode::Provider, message)
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
        let code = self.code;
        self.info(code)
    }

    /// The message of the protocol with the codes of the existing service.
    pub(crate) fn into_old_info(self) -> ErrorInfo {
        let code = self.old_code();
        self.info(code)
    }

    fn info(self, code: ErrorCode) -> ErrorInfo {
        ErrorInfo {
            message: self.message,
            code: code.as_str().to_owned(),
            retryable: self.retryable,
            retry_after: self.retry_after.and_then(|time| time.try_into().ok()),
            provider_status: self.provider_status,
            attempts: self.attempts,
        }
    }

    /// The existing service has `credentials` and `invalid_request` only for faults that it finds itself, and
    /// `max_retries` where another attempt would not help now.
    fn old_code(&self) -> ErrorCode {
        let is_kept = matches!(
            self.code,
            ErrorCode::PartialStream | ErrorCode::InvalidBackend | ErrorCode::Internal
        );
        let is_own_fault = self.provider_status.is_empty()
            && matches!(
                self.code,
                ErrorCode::Credentials | ErrorCode::InvalidRequest
            );
        let may_pass = matches!(
            self.code,
            ErrorCode::EmptyResponse
                | ErrorCode::RateLimited
                | ErrorCode::Unavailable
                | ErrorCode::DeadlineExceeded
                | ErrorCode::MalformedToolCall
        );
        if is_kept || is_own_fault {
            self.code
        } else if may_pass {
            ErrorCode::MaxRetries
        } else {
            ErrorCode::Provider
        }
    }
}

/// The first characters of a text, with a mark where it was cut.
pub(super) fn cut(text: String, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
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
