//! Classifies the failures of the crate and of providers: as a response, and in the middle of a stream.
//!
//! The text of the provider is passed on, without the key and cut to a length. A body that is no error of an API, for
//! example the page of a proxy, is not; nor is a text of the crate, which may repeat the request.

use std::time::Duration;

use ::genai::{BoxError, Error};
use chrono::DateTime;
use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};
use serde_json::Value;

use crate::llm::service::provider::key::ApiKey;
use crate::llm::service::provider::{ErrorCode, ProviderError, http};

const MAX_WORD_BYTES: usize = 64;

/// An error of the crate. `failure` is what the stream said about it.
#[expect(clippy::wildcard_enum_match_arm, reason = "most variants of the crate's enum cannot occur in a stream")]
pub(super) fn of_crate(error: Error, failure: Option<&Value>, key: Option<&ApiKey>) -> ProviderError {
    match error {
        Error::WebStream { error, .. } => of_stream(error, key),
        Error::HttpError { status, body, headers, .. } => of_response(status.as_u16(), &body, &headers, key),
        Error::ChatResponse { body, .. } => of_event(&body, key),
        Error::StreamParse { serde_error, .. } => match failure {
            Some(failure) => of_event(failure, key),
            None => unreadable(&serde_error),
        },
        Error::JsonValueExt(_) | Error::SerdeJson(_) | Error::InvalidJsonResponseElement { .. } => {
            ProviderError::transient(ErrorCode::Provider, "Failed to parse response as JSON")
        }
        // Its text may have the address or the request.
        _ => ProviderError::new(ErrorCode::Internal, "the request could not be built"),
    }
}

fn of_stream(error: BoxError, key: Option<&ApiKey>) -> ProviderError {
    let error = match error.downcast::<Error>() {
        Ok(error) => return of_crate(*error, None, key),
        Err(error) => error,
    };
    match error.downcast::<reqwest::Error>() {
        Ok(error) => http::unavailable(*error),
        Err(_) => ProviderError::transient(ErrorCode::Provider, "the stream contains bytes that are not UTF-8"),
    }
}

/// The error of a response that is not 200.
pub(super) fn of_response(status: u16, body: &str, headers: &HeaderMap, key: Option<&ApiKey>) -> ProviderError {
    let body = serde_json::from_str::<Value>(body).unwrap_or_default();
    let words = Words::of(&body, key);
    let (code, is_transient) = words.classify_status(status);
    let is_transient = should_retry(headers).unwrap_or(is_transient) && is_transient;
    let text = words.text();
    // The words of the existing service.
    let message =
        if text.is_empty() { format!("Error code: {status}") } else { format!("Error code: {status} - {text}") };
    let provider_status = format!("{status} {}", words.word).trim_end().to_owned();
    let error = ProviderError { retryable: is_transient, ..ProviderError::new(code, message) };
    let retry_after = retry_after(headers).filter(|_delay| is_transient);
    ProviderError { retry_after, ..error.with_status(provider_status) }
}

/// An error in a stream that began with 200.
fn of_event(body: &Value, key: Option<&ApiKey>) -> ProviderError {
    let words = Words::of(body, key);
    let (code, is_transient) = words.classify_word();
    let error = ProviderError { retryable: is_transient, ..ProviderError::new(code, words.text()) };
    error.with_status(if words.word.is_empty() { "error" } else { &words.word })
}

fn unreadable(error: &serde_json::Error) -> ProviderError {
    let (line, column) = (error.line(), error.column());
    let message = format!("Failed to parse response as JSON: {:?} at line {line} column {column}", error.classify());
    ProviderError::transient(ErrorCode::Provider, message)
}

/// The words of a provider: `{"error": {…}}`, its content, or `{"message": …}`.
#[derive(Debug)]
struct Words {
    /// The code, or else the type.
    word: String,
    /// Both, for comparisons.
    words: Vec<String>,
    message: String,
}

impl Words {
    fn of(body: &Value, key: Option<&ApiKey>) -> Self {
        let redact = |text: &str| key.map_or_else(|| text.to_owned(), |key| key.redact(text));
        let inner = body.get("error").unwrap_or(body);
        let text = |name: &str| inner.get(name).and_then(Value::as_str).map(redact).filter(|text| !text.is_empty());
        let number = inner.get("code").and_then(Value::as_u64).map(|code| code.to_string());
        let words = [text("code").or(number), text("type"), text("status")].into_iter().flatten();
        let words: Vec<String> = words.filter(|word| is_word(word)).collect();
        let message = text("message").or_else(|| inner.as_str().map(redact)).or_else(|| text("detail"));
        let word = words.iter().find(|word| word.as_str() != "error").cloned().unwrap_or_default();
        Self { word, words, message: message.unwrap_or_default() }
    }

    /// The word and the message.
    fn text(&self) -> String {
        let parts = [self.word.as_str(), self.message.as_str()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(". ")
    }

    fn has(&self, words: &[&str]) -> bool {
        self.words.iter().any(|word| words.contains(&word.as_str()))
    }

    fn says(&self, phrases: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        phrases.iter().any(|phrase| message.contains(phrase))
    }

    fn classify_status(&self, status: u16) -> (ErrorCode, bool) {
        match status {
            401..=403 => (ErrorCode::Credentials, false),
            404 => (ErrorCode::ModelNotFound, false),
            408 | 409 | 425 => (ErrorCode::Unavailable, true),
            413 => (ErrorCode::ContextWindowExceeded, false),
            // A quota of money is not there again after a short wait.
            429 => (ErrorCode::RateLimited, !self.has(&["insufficient_quota", "billing_hard_limit_reached"])),
            500.. => (ErrorCode::Unavailable, true),
            400..=499 => (self.kind_of_request(), false),
            _ => (ErrorCode::Provider, false),
        }
    }

    fn classify_word(&self) -> (ErrorCode, bool) {
        if let Some(status) = self.words.iter().find_map(|word| word.parse().ok().filter(|status| *status >= 400)) {
            return self.classify_status(status);
        }
        // An exception of Bedrock has no word.
        let is_throttled = self.word.is_empty() && self.says(&["too many requests", "throttl"]);
        if is_throttled || self.has(&["rate_limit_error", "rate_limit_exceeded", "too_many_requests"]) {
            return (ErrorCode::RateLimited, true);
        }
        if self.has(&["authentication_error", "permission_error", "invalid_api_key", "billing_error"]) {
            return (ErrorCode::Credentials, false);
        }
        if self.has(&["not_found_error", "model_not_found"]) {
            return (ErrorCode::ModelNotFound, false);
        }
        let kind = self.kind_of_request();
        let is_request = kind != ErrorCode::InvalidRequest || self.has(&["invalid_request_error", "invalid_prompt"]);
        // Else it is `overloaded_error`, `api_error`, `server_error` or something new.
        if is_request { (kind, false) } else { (ErrorCode::Unavailable, true) }
    }

    /// What is wrong with a request.
    fn kind_of_request(&self) -> ErrorCode {
        const CONTEXT: [&str; 8] = [
            "prompt is too long",
            "maximum context length",
            "context window",
            "context length",
            "context size",
            "exceed context limit",
            "too many tokens",
            "input is too long",
        ];
        const SIGNATURE: [&str; 4] =
            ["invalid `signature`", "signature in `thinking`", "encrypted content", "expected `thinking`"];
        if self.has(&["context_length_exceeded", "request_too_large", "exceed_context_size_error"])
            || self.says(&CONTEXT)
        {
            ErrorCode::ContextWindowExceeded
        } else if self.has(&["invalid_encrypted_content"]) || self.says(&SIGNATURE) {
            ErrorCode::ThoughtSignature
        } else if self.has(&["content_filter", "content_policy_violation"]) || self.says(&["content management policy"])
        {
            ErrorCode::Blocked
        } else if self.has(&["model_not_found"]) {
            ErrorCode::ModelNotFound
        } else if self.has(&["invalid_api_key"]) || self.says(&["incorrect api key", "credit balance is too low"]) {
            ErrorCode::Credentials
        } else {
            ErrorCode::InvalidRequest
        }
    }
}

/// Anything else could be a text of the request.
fn is_word(text: &str) -> bool {
    text.len() <= MAX_WORD_BYTES && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// What OpenAI says about another attempt.
fn should_retry(headers: &HeaderMap) -> Option<bool> {
    headers.get("x-should-retry")?.to_str().ok()?.parse().ok()
}

/// The delay that the provider asks for: a number, or an instant by the clock of the provider (RFC 9110, 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.trim());
    let number = |name: &str| text(name)?.parse::<f64>().ok();
    let instant = |name: &HeaderName| DateTime::parse_from_rfc2822(text(name.as_str())?).ok();
    let seconds = number("retry-after-ms").map(|millis| millis / 1_000.0).or_else(|| number(RETRY_AFTER.as_str()));
    match seconds {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => (instant(&RETRY_AFTER)? - instant(&DATE)?).to_std().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::service::provider::key::Environment;

    async fn key() -> ApiKey {
        ApiKey::read(&Environment::new(|_| Some("secret-key-1".into())), "K").await.unwrap()
    }

    #[test]
    fn every_kind_of_error_gets_its_code() {
        use ErrorCode::{
            Blocked, ContextWindowExceeded, Credentials, InvalidRequest, ModelNotFound, Provider, RateLimited,
            ThoughtSignature, Unavailable,
        };
        for (status, body, code, retryable) in [
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 9","code":"context_length_exceeded"}}"#,
                ContextWindowExceeded,
                false,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}"#,
                ContextWindowExceeded,
                false,
            ),
            (
                400,
                r#"{"error":{"message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}"#,
                ThoughtSignature,
                false,
            ),
            (400, r#"{"error":{"code":"invalid_encrypted_content","message":"x"}}"#, ThoughtSignature, false),
            (400, r#"{"error":{"code":"content_filter","message":"x"}}"#, Blocked, false),
            (400, r#"{"error":{"message":"bad"}}"#, InvalidRequest, false),
            (400, r#"{"error":{"message":"Your credit balance is too low"}}"#, Credentials, false),
            (401, "{}", Credentials, false),
            (404, r#"{"error":"model 'x' not found"}"#, ModelNotFound, false),
            (413, "", ContextWindowExceeded, false),
            (422, r#"{"detail":"x"}"#, InvalidRequest, false),
            (429, r#"{"error":{"code":"rate_limit_exceeded"}}"#, RateLimited, true),
            (429, r#"{"error":{"code":"insufficient_quota"}}"#, RateLimited, false),
            (529, r#"{"error":{"type":"overloaded_error"}}"#, Unavailable, true),
            (302, "", Provider, false),
        ] {
            let error = of_response(status, body, &HeaderMap::new(), None);
            assert_eq!((error.code, error.retryable), (code, retryable), "{body}");
        }
        for (body, code, retryable) in [
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, Unavailable, true),
            (r#"{"type":"error","error":{"type":"rate_limit_error","message":"x"}}"#, RateLimited, true),
            (r#"{"type":"error","code":"server_error","message":"x"}"#, Unavailable, true),
            (r#"{"code":429,"message":"x"}"#, RateLimited, true),
            (r#"{"message":"Too many requests, please wait."}"#, RateLimited, true),
            (r#"{"type":"invalid_request_error","message":"x"}"#, InvalidRequest, false),
            (r#""word""#, Unavailable, true),
        ] {
            let error = of_event(&serde_json::from_str(body).unwrap(), None);
            assert_eq!((error.code, error.retryable), (code, retryable), "{body}");
        }
    }

    #[test]
    fn the_delay_and_the_wish_of_the_provider_count() {
        let with = |name: &'static str, value: &'static str| {
            let headers =
                [(name, value)].into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            let error = of_response(429, "", &headers.collect(), None);
            (error.retryable, error.retry_after.map(|delay| delay.as_millis()))
        };
        assert_eq!(with("retry-after", "2"), (true, Some(2_000)));
        assert_eq!(with("retry-after-ms", "350"), (true, Some(350)));
        assert_eq!(with("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"), (true, None));
        let instants = [(RETRY_AFTER, "Wed, 21 Oct 2026 07:28:05 GMT"), (DATE, "Wed, 21 Oct 2026 07:28:00 GMT")];
        let headers = instants.map(|(name, text)| (name, text.parse().unwrap())).into_iter().collect();
        assert_eq!(of_response(429, "", &headers, None).retry_after, Some(Duration::from_secs(5)));
        assert_eq!(with("x-should-retry", "false"), (false, None));
    }

    #[tokio::test]
    async fn a_message_has_the_words_of_the_provider_without_the_key_and_no_foreign_body() {
        let key = key().await;
        let body = r#"{"error":{"message":"key secret-key-1 is bad","type":"server_error"}}"#;
        let error = of_response(503, body, &HeaderMap::new(), Some(&key));
        assert_eq!(
            (error.message.as_str(), error.provider_status.as_str()),
            ("Error code: 503 - server_error. key [key] is bad", "503 server_error")
        );
        for body in ["<html>secret</html>", "", "{", r#"{"prompt":"secret"}"#, "[]"] {
            assert_eq!(of_response(418, body, &HeaderMap::new(), None).message, "Error code: 418");
        }
    }
}
