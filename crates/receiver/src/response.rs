//! The responses of the receiver: a status, a JSON object, and the headers that belong to the status.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;
use hyper::header::{
    ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use serde_json::{Value, json};

use super::{PublishError, Published};

/// A client whose request could not be checked may try again soon.
const UNAVAILABLE_RETRY_DELAY: Duration = Duration::from_secs(5);
/// The answer to a handshake of CloudEvents: this origin may send.
const ALLOWED_ORIGIN: HeaderName = HeaderName::from_static("webhook-allowed-origin");
const ALLOWED_RATE: HeaderName = HeaderName::from_static("webhook-allowed-rate");

type Headers = Vec<(HeaderName, HeaderValue)>;

/// The outcome of a request that was not rejected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Accepted {
    Published(Report),
    /// Nothing was published, for this reason.
    Ignored(String),
    /// The origin of a handshake.
    Handshake(HeaderValue),
    /// The answer to the validation of a subscription, which the sender reads.
    Validation(Value),
}

/// The report about the published alerts of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// The place of each alert of the body.
    pub(super) published: Vec<Published>,
    /// Named in the response.
    pub(super) ignored_headers: Vec<&'static str>,
}

/// The reason why a request is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    UnknownPath,
    MethodNotAllowed,
    Unauthorized,
    /// The proof of its source is missing or wrong; a bearer token would not help.
    Unproven(String),
    /// A web page sent the request, and the receiver has no token that would distinguish the page from a local program.
    FromWebPage,
    TooLarge(String),
    Invalid(String),
    Unavailable {
        reason: String,
        retry_after: Duration,
    },
}

impl From<PublishError> for Rejection {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Unavailable {
                reason,
                retry_after,
            } => Self::Unavailable {
                reason,
                retry_after,
            },
            PublishError::TooLarge(reason) => Self::TooLarge(reason),
            PublishError::Invalid(reason) => Self::Invalid(reason),
        }
    }
}

/// The response to a request.
pub(super) fn response(outcome: Result<Accepted, Rejection>) -> Response {
    match outcome {
        Ok(Accepted::Published(report)) => {
            json_response(StatusCode::ACCEPTED, &report.json(), Vec::new())
        }
        Ok(Accepted::Ignored(reason)) => json_response(
            StatusCode::ACCEPTED,
            &json!({"ignored": reason}),
            Vec::new(),
        ),
        Ok(Accepted::Handshake(origin)) => {
            let headers = vec![
                (ALLOWED_ORIGIN, origin),
                (ALLOWED_RATE, HeaderValue::from_static("*")),
                (ALLOW, HeaderValue::from_static("POST")),
            ];
            json_response(StatusCode::OK, &json!({}), headers)
        }
        Ok(Accepted::Validation(answer)) => json_response(StatusCode::OK, &answer, Vec::new()),
        Err(rejection) => rejection.response(),
    }
}

impl Report {
    /// The first alert, and all of them if there are several.
    fn json(&self) -> Value {
        let Self {
            published,
            ignored_headers,
        } = self;
        let mut body = published.first().map(Published::json).unwrap_or_default();
        if let Some(body) = body.as_object_mut() {
            if published.len() > 1 {
                body.insert(
                    "alerts".to_owned(),
                    published.iter().map(Published::json).collect(),
                );
            }
            if !ignored_headers.is_empty() {
                body.insert("ignored_headers".to_owned(), json!(ignored_headers));
            }
        }
        body
    }
}

impl Published {
    fn json(&self) -> Value {
        let Self {
            session_id,
            subject,
            stream_sequence,
        } = self;
        json!({"session_id": session_id, "subject": subject, "stream_sequence": stream_sequence})
    }
}

impl Rejection {
    pub(super) fn unavailable(reason: &str) -> Self {
        Self::Unavailable {
            reason: reason.to_owned(),
            retry_after: UNAVAILABLE_RETRY_DELAY,
        }
    }

    fn response(self) -> Response {
        let (status, reason, headers): (_, Cow<'static, str>, Headers) = match self {
            Self::UnknownPath => {
                let reason = "not found; use POST /alertmanager, /grafana, /alert or /hooks/<source> (`tarsy sources \
                              list` shows the sources)";
                (StatusCode::NOT_FOUND, reason.into(), Vec::new())
            }
            Self::MethodNotAllowed => {
                let allow = vec![(ALLOW, HeaderValue::from_static("POST"))];
                (
                    StatusCode::METHOD_NOT_ALLOWED,
                    "alerts are sent with POST".into(),
                    allow,
                )
            }
            Self::Unauthorized => {
                // SNS sends the password of its URL only when the scheme Basic is offered.
                let schemes = [
                    "Basic realm=\"tarsy\", charset=\"UTF-8\"",
                    "Bearer realm=\"tarsy\"",
                ];
                let offered =
                    schemes.map(|scheme| (WWW_AUTHENTICATE, HeaderValue::from_static(scheme)));
                let reason = "a bearer token is required, or the token as the password of Basic";
                (StatusCode::UNAUTHORIZED, reason.into(), offered.into())
            }
            Self::Unproven(reason) => {
                let scheme = HeaderValue::from_static("Signature realm=\"tarsy\"");
                (
                    StatusCode::UNAUTHORIZED,
                    reason.into(),
                    vec![(WWW_AUTHENTICATE, scheme)],
                )
            }
            Self::FromWebPage => {
                let reason = "rejected: a web page sent this request (it has the header Origin or Sec-Fetch-Site), and the \
                              receiver has no token";
                (StatusCode::FORBIDDEN, reason.into(), Vec::new())
            }
            // The rest of the body is not read, so the connection cannot be used again.
            Self::TooLarge(reason) => {
                let close = vec![(CONNECTION, HeaderValue::from_static("close"))];
                (StatusCode::PAYLOAD_TOO_LARGE, reason.into(), close)
            }
            Self::Invalid(reason) => (StatusCode::BAD_REQUEST, reason.into(), Vec::new()),
            Self::Unavailable {
                reason,
                retry_after,
            } => {
                let seconds = HeaderValue::from(retry_after.as_secs().max(1));
                (
                    StatusCode::SERVICE_UNAVAILABLE,
                    reason.into(),
                    vec![(RETRY_AFTER, seconds)],
                )
            }
        };
        json_response(status, &json!({"error": reason}), headers)
    }
}

fn json_response(status: StatusCode, body: &Value, headers: Headers) -> Response {
    let mut response = Response::new(Body::from(format!("{body}\n")));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in headers {
        response.headers_mut().append(name, value);
    }
    response
}
