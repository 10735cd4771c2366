//! Interprets a provider's response to a notification: delivered, retry or give up.
//!
//! | answer | the message has arrived | next |
//! |---|---|---|
//! | 2xx | yes | – |
//! | 400, 413, 415, 422 | no | given up: the same message would be refused again |
//! | 429 | no | again, not before `Retry-After` |
//! | 3xx and every other 4xx | no | again: operators can mend an address, a token or a right |
//! | 5xx, none in time, a broken connection | perhaps | again, with the remark that it may be a repetition |

use std::time::Duration;

use reqwest::Response;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use tarsy_core::visible::visible;
use tarsy_engine::ports::{Arrival, ProviderAnswer};
use tarsy_http::outgoing;
use tarsy_mask::Mask;

/// The part of a response body that a reason quotes, in characters.
const MAX_QUOTE: usize = 200;
/// The part of a response body that is read.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// A later attempt may succeed.
pub(super) fn unavailable(reason: impl Into<String>, arrival: Arrival) -> ProviderAnswer {
    ProviderAnswer::Unavailable {
        reason: reason.into(),
        retry_after: None,
        arrival,
    }
}

/// A request without an answer.
pub(super) fn failed(error: reqwest::Error) -> ProviderAnswer {
    let arrival = if error.is_connect() || error.is_builder() {
        Arrival::Refused
    } else {
        Arrival::Unknown
    };
    unavailable(
        format!("it cannot be reached: {}", outgoing::cause(error)),
        arrival,
    )
}

/// The answer to a message whose status alone says what became of it.
pub(super) async fn of_status(response: Response) -> ProviderAnswer {
    let status = response.status();
    let retry_after = retry_after(response.headers());

    if status.is_success() {
        return ProviderAnswer::Accepted { receipt: None };
    }
    let body = body(response).await.unwrap_or_default();
    let quote = quoted(&body);
    let reason = format!("HTTP {}{quote}", status.as_u16());
    match status.as_u16() {
        400 | 413 | 415 | 422 => ProviderAnswer::Rejected { reason },
        300..500 => ProviderAnswer::Unavailable {
            reason,
            retry_after,
            arrival: Arrival::Refused,
        },
        _ => ProviderAnswer::Unavailable {
            reason,
            retry_after,
            arrival: Arrival::Unknown,
        },
    }
}

/// The first bytes of a body as text; `None` when the connection breaks.
pub(super) async fn body(mut response: Response) -> Option<String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_BODY_BYTES {
            break;
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The pause that an answer asks for, in whole seconds. A date is ignored: its clock is not ours.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds))
}

/// The reason of a refusal that stands in the body of an answer.
pub(super) fn refused(failure: &Value) -> String {
    format!("it is refused{}", quoted(&failure.to_string()))
}

/// The beginning of an answer in one line, behind a colon; empty for an empty one.
pub(super) fn quoted(body: &str) -> String {
    let line = visible(body)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let quote: String = line.chars().take(MAX_QUOTE).collect();
    if quote.is_empty() {
        quote
    } else {
        format!(": {quote}")
    }
}

/// The answer with its reason masked: a provider may repeat what was sent.
pub(super) fn masked(answer: ProviderAnswer, mask: &Mask) -> ProviderAnswer {
    let text = |reason: String| mask.apply(&reason).into_owned();
    match answer {
        ProviderAnswer::Rejected { reason } => ProviderAnswer::Rejected {
            reason: text(reason),
        },
        ProviderAnswer::NoPlace { reason } => ProviderAnswer::NoPlace {
            reason: text(reason),
        },
        ProviderAnswer::Unavailable {
            reason,
            retry_after,
            arrival,
        } => ProviderAnswer::Unavailable {
            reason: text(reason),
            retry_after,
            arrival,
        },
        answer @ (ProviderAnswer::Accepted { .. } | ProviderAnswer::Found { .. }) => answer,
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    async fn answer(status: u16, body: &'static str) -> ProviderAnswer {
        let response = hyper::http::Response::builder()
            .status(status)
            .header(RETRY_AFTER, "7")
            .body(body)
            .unwrap();
        of_status(response.into()).await
    }

    #[tokio::test]
    async fn each_status_says_whether_the_message_has_arrived_and_what_is_next() {
        let reason = |status: u16| format!("HTTP {status}: no good");
        let again = |status, arrival| ProviderAnswer::Unavailable {
            reason: reason(status),
            retry_after: Some(Duration::from_secs(7)),
            arrival,
        };
        for (status, expected) in [
            (202, ProviderAnswer::Accepted { receipt: None }),
            (302, again(302, Arrival::Refused)),
            (
                400,
                ProviderAnswer::Rejected {
                    reason: reason(400),
                },
            ),
            (401, again(401, Arrival::Refused)),
            (
                413,
                ProviderAnswer::Rejected {
                    reason: reason(413),
                },
            ),
            (429, again(429, Arrival::Refused)),
            (500, again(500, Arrival::Unknown)),
            (503, again(503, Arrival::Unknown)),
        ] {
            assert_eq!(answer(status, "no\u{1b}[31m\n good").await, expected);
        }
    }

    #[test]
    fn only_seconds_are_a_pause() {
        let pause = |text: &'static str| {
            retry_after(&HeaderMap::from_iter([(
                RETRY_AFTER,
                HeaderValue::from_static(text),
            )]))
        };
        assert_eq!(pause(" 30"), Some(Duration::from_secs(30)));
        assert_eq!(
            [
                pause("Wed, 21 Oct 2026 07:28:00 GMT"),
                pause("-1"),
                pause("")
            ],
            [None; 3]
        );
    }
}
