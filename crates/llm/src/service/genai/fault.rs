//! Classifies the failures of the crate and of providers: as a response, and in the middle of a stream.
//!
//! The text of the provider is passed on, without the key and cut to a length. The body of another program, for example
//! the page of a proxy, is not; nor is a text of the crate, which may repeat the request.

use std::time::Duration;

use ::genai::{BoxError, Error};
use chrono::DateTime;
use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};
use serde_json::Value;

use crate::service::provider::classify::{self, Verdict, Words};
use crate::service::provider::key::ApiKey;
use crate::service::provider::{ErrorCode, ProviderError, http};

/// An error of the crate.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "most variants of the crate's enum cannot occur in a stream"
)]
pub(super) fn of_crate(error: Error, key: Option<&ApiKey>) -> ProviderError {
    match error {
        Error::WebStream { error, .. } => of_stream(error, key),
        Error::HttpError {
            status,
            body,
            headers,
            ..
        } => of_response(status.as_u16(), &body, &headers, key),
        Error::ChatResponse { body, .. } => of_event(&body, key),
        Error::StreamParse { serde_error, .. } => ProviderError::unreadable(&serde_error),
        Error::JsonValueExt(_) | Error::SerdeJson(_) | Error::InvalidJsonResponseElement { .. } => {
            ProviderError::transient(ErrorCode::Provider, "Failed to parse response as JSON")
        }
        // Its text may have the address or the request.
        _ => ProviderError::internal("the request could not be built"),
    }
}

fn of_stream(error: BoxError, key: Option<&ApiKey>) -> ProviderError {
    let error = match error.downcast::<Error>() {
        Ok(error) => return of_crate(*error, key),
        Err(error) => error,
    };
    match error.downcast::<reqwest::Error>() {
        Ok(error) => http::unavailable(*error),
        Err(_) => ProviderError::transient(
            ErrorCode::Provider,
            "the stream contains bytes that are not UTF-8",
        ),
    }
}

/// The error of a response that is not 200.
pub(super) fn of_response(
    status: u16,
    body: &str,
    headers: &HeaderMap,
    key: Option<&ApiKey>,
) -> ProviderError {
    let words = Words::of_body(body, key);
    let Verdict { code, is_transient } = classify::verdict(Some(status), &words);
    let is_transient = is_transient && should_retry(headers).unwrap_or(true);
    let text = words.text();
    // The words of the existing service.
    let message = if text.is_empty() {
        format!("Error code: {status}")
    } else {
        format!("Error code: {status} - {text}")
    };
    let delay = retry_after(headers).or_else(|| words.delay());
    let provider_status = format!("{status} {}", words.word);
    ProviderError {
        retryable: is_transient,
        retry_after: if is_transient { delay } else { None },
        full_text: words.full_text(),
        ..ProviderError::new(code, message).with_status(provider_status.trim_end())
    }
}

/// An error in a stream that began with 200.
pub(super) fn of_event(body: &Value, key: Option<&ApiKey>) -> ProviderError {
    let words = Words::from_body(body, key);
    let Verdict { code, is_transient } = classify::verdict(None, &words);
    let provider_status = match words.word.as_str() {
        "" => "error",
        word => word,
    };
    ProviderError {
        retryable: is_transient,
        retry_after: if is_transient { words.delay() } else { None },
        full_text: words.full_text(),
        ..ProviderError::new(code, words.text()).with_status(provider_status)
    }
}

/// Reads OpenAI's header about another attempt.
fn should_retry(headers: &HeaderMap) -> Option<bool> {
    headers.get("x-should-retry")?.to_str().ok()?.parse().ok()
}

/// The delay that the provider asks for: a number, or an instant by the clock of the provider (RFC 9110, 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.trim());
    let number = |name: &str| text(name)?.parse::<f64>().ok();
    let instant = |name: &HeaderName| DateTime::parse_from_rfc2822(text(name.as_str())?).ok();
    let seconds = number("retry-after-ms")
        .map(|millis| millis / 1_000.0)
        .or_else(|| number(RETRY_AFTER.as_str()));
    match seconds {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => (instant(&RETRY_AFTER)? - instant(&DATE)?).to_std().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::provider::key::Environment;

    async fn key() -> ApiKey {
        ApiKey::read(&Environment::new(|_| Some("secret-key-1".into())), "K")
            .await
            .unwrap()
    }

    #[test]
    fn every_kind_of_error_gets_its_code() {
        use ErrorCode::{
            Blocked, ContextWindowExceeded, Credentials, InvalidRequest, ModelNotFound, Provider,
            RateLimited, ThoughtSignature, Unavailable,
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
            (
                400,
                r#"{"error":{"code":"invalid_encrypted_content","message":"x"}}"#,
                ThoughtSignature,
                false,
            ),
            (
                400,
                r#"{"error":{"code":"content_filter","message":"x"}}"#,
                Blocked,
                false,
            ),
            (400, r#"{"error":{"message":"bad"}}"#, InvalidRequest, false),
            (
                400,
                r#"{"error":{"message":"Your credit balance is too low"}}"#,
                Credentials,
                false,
            ),
            (401, "{}", Credentials, false),
            (
                404,
                r#"{"error":"model 'x' not found"}"#,
                ModelNotFound,
                false,
            ),
            (413, "", ContextWindowExceeded, false),
            (422, r#"{"detail":"x"}"#, InvalidRequest, false),
            (
                429,
                r#"{"error":{"code":"rate_limit_exceeded"}}"#,
                RateLimited,
                true,
            ),
            (
                429,
                r#"{"error":{"code":"insufficient_quota"}}"#,
                RateLimited,
                false,
            ),
            (
                529,
                r#"{"error":{"type":"overloaded_error"}}"#,
                Unavailable,
                true,
            ),
            (302, "", Provider, false),
        ] {
            let error = of_response(status, body, &HeaderMap::new(), None);
            assert_eq!((error.code, error.retryable), (code, retryable), "{body}");
        }
        for (body, code, retryable) in [
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                Unavailable,
                true,
            ),
            (
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"x"}}"#,
                RateLimited,
                true,
            ),
            (
                r#"{"type":"error","code":"server_error","message":"x"}"#,
                Unavailable,
                true,
            ),
            (r#"{"code":429,"message":"x"}"#, RateLimited, true),
            (
                r#"{"message":"Too many requests, please wait."}"#,
                RateLimited,
                true,
            ),
            (
                r#"{"type":"invalid_request_error","message":"x"}"#,
                InvalidRequest,
                false,
            ),
            (r#""word""#, Unavailable, true),
        ] {
            let error = of_event(&serde_json::from_str(body).unwrap(), None);
            assert_eq!((error.code, error.retryable), (code, retryable), "{body}");
        }
    }

    #[test]
    fn the_delay_and_the_wish_of_the_provider_count() {
        let with = |name: &'static str, value: &'static str| {
            let headers = [(name, value)]
                .into_iter()
                .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            let error = of_response(429, "", &headers.collect(), None);
            (
                error.retryable,
                error.retry_after.map(|delay| delay.as_millis()),
            )
        };
        assert_eq!(with("retry-after", "2"), (true, Some(2_000)));
        assert_eq!(with("retry-after-ms", "350"), (true, Some(350)));
        assert_eq!(
            with("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"),
            (true, None)
        );
        let instants = [
            (RETRY_AFTER, "Wed, 21 Oct 2026 07:28:05 GMT"),
            (DATE, "Wed, 21 Oct 2026 07:28:00 GMT"),
        ];
        let headers = instants
            .map(|(name, text)| (name, text.parse().unwrap()))
            .into_iter()
            .collect();
        assert_eq!(
            of_response(429, "", &headers, None).retry_after,
            Some(Duration::from_secs(5))
        );
        assert_eq!(with("x-should-retry", "false"), (false, None));
    }

    #[tokio::test]
    async fn a_message_has_the_words_of_the_provider_without_the_key_and_no_foreign_body() {
        let key = key().await;
        let body = r#"{"error":{"message":"key secret-key-1 is bad","type":"server_error"}}"#;
        let error = of_response(503, body, &HeaderMap::new(), Some(&key));
        assert_eq!(
            (error.message.as_str(), error.provider_status.as_str()),
            (
                "Error code: 503 - server_error. key [key] is bad",
                "503 server_error"
            )
        );
        for body in [
            "<html>secret</html>",
            "",
            "{",
            r#"{"prompt":"secret"}"#,
            "[]",
        ] {
            assert_eq!(
                of_response(418, body, &HeaderMap::new(), None).message,
                "Error code: 418"
            );
        }
    }
}
