//! Classifies the errors of Gemini: as the body of a response, and in the middle of a stream.
//!
//! The text of the provider is passed on, without the key and cut to a length. The body of another program, for example
//! the page of a proxy, is not.

use serde_json::Value;

use super::wire::{ApiError, Chunk};
use crate::service::provider::classify::{self, Verdict, Words};
use crate::service::provider::key::ApiKey;
use crate::service::provider::{ErrorCode, ProviderError};

/// The error of a response that is not 200.
pub(super) fn of_response(status: u16, body: &[u8], key: &ApiKey) -> ProviderError {
    let chunk = chunks(std::str::from_utf8(body).unwrap_or_default())
        .ok()
        .and_then(|chunks| chunks.into_iter().next());
    let error = chunk.and_then(|chunk| chunk.error).unwrap_or_default();
    of_error(
        ApiError {
            code: Some(i64::from(status)),
            ..error
        },
        key,
    )
}

/// Parses one chunk, or a list of chunks.
///
/// # Errors
/// When the text is not JSON of this kind. The message has none of its content.
pub(super) fn chunks(text: &str) -> Result<Vec<Chunk>, ProviderError> {
    let parsed = if text.trim_start().starts_with('[') {
        serde_json::from_str::<Vec<Chunk>>(text)
    } else {
        serde_json::from_str::<Chunk>(text).map(|chunk| vec![chunk])
    };
    parsed.map_err(|error| ProviderError::unreadable(&error))
}

/// The error that the API describes.
pub(super) fn of_error(error: ApiError, key: &ApiKey) -> ProviderError {
    let code = error.code.unwrap_or_default();
    let text = key.redact(error.message.as_deref().unwrap_or_default());
    let details = error.details.unwrap_or_default();
    let word = key.redact(error.status.as_deref().unwrap_or_default());
    let status = format!("{code} {word}").trim().to_owned();
    let reasons = details
        .iter()
        .filter_map(|detail| detail.get("reason")?.as_str());
    let words = Words::new([word.as_str()].into_iter().chain(reasons), &text);
    let http_status = u16::try_from(code).ok().filter(|status| *status > 0);
    let Verdict {
        code: kind,
        is_transient,
    } = classify::verdict(http_status, &words);
    let is_transient = is_transient && !is_daily_quota(&details);
    let prefix = if code >= 500 {
        "Google API server error: "
    } else {
        ""
    };
    let message = format!("{prefix}{status}. {text}").trim_end().to_owned();
    let delay = details
        .iter()
        .find_map(classify::delay_in_value)
        .or_else(|| classify::delay_in_text(&text));
    // A call over the quota of a day is not repeated here, but the client gets the delay.
    let has_delay = is_transient || kind == ErrorCode::RateLimited;
    let places = details
        .iter()
        .flat_map(classify::places_in_value)
        .map(|place| key.redact(&place));
    let full_text = format!("{text}\n{}\n", places.collect::<Vec<_>>().join("\n"));
    ProviderError {
        retryable: is_transient,
        retry_after: if has_delay { delay } else { None },
        full_text,
        ..ProviderError::new(kind, message).with_status(status)
    }
}

/// A quota of a day is not there again after a short wait.
fn is_daily_quota(details: &[Value]) -> bool {
    let violations = details
        .iter()
        .filter_map(|detail| detail.get("violations")?.as_array())
        .flatten();
    let ids = violations.filter_map(|violation| violation.get("quotaId")?.as_str());
    ids.into_iter().any(|id| id.contains("PerDay"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::service::provider::key::Environment;

    async fn key() -> ApiKey {
        ApiKey::read(&Environment::new(|_| Some("secret-key-1".into())), "K")
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn every_kind_of_error_gets_its_code_and_its_delay() {
        use ErrorCode::{
            Cancelled, ContextWindowExceeded, Credentials, InvalidRequest, ModelNotFound,
            RateLimited, ThoughtSignature, Unavailable,
        };
        let reason =
            r#"[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]"#;
        let retry =
            r#"[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2.500s"}]"#;
        let day = r#"[{"@type":"x/google.rpc.QuotaFailure","violations":[{"quotaId":"RequestsPerDayPerModel"}]}]"#;
        let seconds = |seconds| Some(Duration::from_secs_f64(seconds));
        for (status, message, details, code, retryable, delay) in [
            (400, "x", reason, Credentials, false, None),
            (400, "API key not valid.", "[]", Credentials, false, None),
            (
                400,
                "Function call is missing a thought_signature",
                "[]",
                ThoughtSignature,
                false,
                None,
            ),
            (
                400,
                "Corrupted thought signature.",
                "[]",
                ThoughtSignature,
                false,
                None,
            ),
            (
                400,
                "The input token count (9) exceeds the maximum",
                "[]",
                ContextWindowExceeded,
                false,
                None,
            ),
            (400, "bad", "null", InvalidRequest, false, None),
            (403, "no", "[]", Credentials, false, None),
            (404, "no model", "[]", ModelNotFound, false, None),
            (429, "slow", retry, RateLimited, true, seconds(2.5)),
            (
                429,
                "Please retry in 48.8s.",
                "[]",
                RateLimited,
                true,
                seconds(48.8),
            ),
            (
                429,
                "Please retry in 1h2m3.5s",
                "[]",
                RateLimited,
                true,
                seconds(3_723.5),
            ),
            (
                429,
                "Please retry in 850ms",
                "[]",
                RateLimited,
                true,
                seconds(0.85),
            ),
            (429, "day", day, RateLimited, false, None),
            (499, "x", "[]", Cancelled, false, None),
            (503, "overloaded", "[]", Unavailable, true, None),
        ] {
            let body = format!(
                r#"{{"error":{{"code":1,"message":"{message}","status":"W","details":{details}}}}}"#
            );
            for body in [body.clone(), format!("[{body}\n]")] {
                let error = of_response(status, body.as_bytes(), &key().await);
                let found = (
                    error.code,
                    error.retryable,
                    error.retry_after,
                    error.provider_status,
                );
                assert_eq!(
                    found,
                    (code, retryable, delay, format!("{status} W")),
                    "{body}"
                );
            }
        }
    }

    #[tokio::test]
    async fn a_message_has_the_words_of_the_provider_without_the_key_and_no_foreign_body() {
        let body =
            br#"{"error":{"message":"key secret-key-1 is bad","status":"BAD_secret-key-1"}}"#;
        let error = of_response(503, body, &key().await);
        assert_eq!(
            error.message,
            "Google API server error: 503 BAD_[key]. key [key] is bad"
        );
        assert_eq!(error.provider_status, "503 BAD_[key]");
        for body in [
            "<html>secret</html>",
            "",
            "{",
            r#"{"prompt":"secret"}"#,
            "[]",
        ] {
            assert_eq!(
                of_response(418, body.as_bytes(), &key().await).message,
                "418."
            );
        }
        let message = chunks(r#"{"candidates":[{"content":"secret prompt"}]}"#)
            .unwrap_err()
            .message;
        assert!(
            message.starts_with("Failed to parse response as JSON") && !message.contains("secret"),
            "{message}"
        );
    }
}
