//! The responses of the receiver: a status, a JSON object, and the headers that belong to the status.

use std::borrow::Cow;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde_json::json;

use super::{PublishError, Published};

/// Why a request is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    UnknownPath,
    MethodNotAllowed,
    Unauthorized,
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
            PublishError::Unavailable { reason, retry_after } => Self::Unavailable { reason, retry_after },
            PublishError::TooLarge(reason) => Self::TooLarge(reason),
            PublishError::Invalid(reason) => Self::Invalid(reason),
        }
    }
}

/// The response to a request. `ignored_headers` are named in the response to an alert that was published.
pub(super) fn response(outcome: Result<Published, Rejection>, ignored_headers: &[&str]) -> Response<Full<Bytes>> {
    match outcome {
        Ok(Published { session_id, subject, stream_sequence }) => {
            let mut body = json!({"session_id": session_id, "subject": subject, "stream_sequence": stream_sequence});
            if let (Some(body), false) = (body.as_object_mut(), ignored_headers.is_empty()) {
                body.insert("ignored_headers".to_owned(), json!(ignored_headers));
            }
            json_response(StatusCode::ACCEPTED, &body, None)
        }
        Err(rejection) => rejection.response(),
    }
}

impl Rejection {
    fn response(self) -> Response<Full<Bytes>> {
        let (status, reason, header): (_, Cow<'static, str>, _) = match self {
            Self::UnknownPath => {
                (StatusCode::NOT_FOUND, "not found; use POST /alertmanager, /grafana or /alert".into(), None)
            }
            Self::MethodNotAllowed => {
                let allow = Some((ALLOW, HeaderValue::from_static("POST")));
                (StatusCode::METHOD_NOT_ALLOWED, "alerts are sent with POST".into(), allow)
            }
            Self::Unauthorized => {
                let scheme = HeaderValue::from_static("Bearer realm=\"tarsy\"");
                (StatusCode::UNAUTHORIZED, "a bearer token is required".into(), Some((WWW_AUTHENTICATE, scheme)))
            }
            Self::FromWebPage => {
                let reason = "rejected: a web page sent this request (it has the header Origin or Sec-Fetch-Site), and the \
                              receiver has no token";
                (StatusCode::FORBIDDEN, reason.into(), None)
            }
            // The rest of the body is not read, so the connection cannot be used again.
            Self::TooLarge(reason) => {
                (StatusCode::PAYLOAD_TOO_LARGE, reason.into(), Some((CONNECTION, HeaderValue::from_static("close"))))
            }
            Self::Invalid(reason) => (StatusCode::BAD_REQUEST, reason.into(), None),
            Self::Unavailable { reason, retry_after } => {
                let seconds = HeaderValue::from(retry_after.as_secs().max(1));
                (StatusCode::SERVICE_UNAVAILABLE, reason.into(), Some((RETRY_AFTER, seconds)))
            }
        };
        json_response(status, &json!({"error": reason}), header)
    }
}

fn json_response(
    status: StatusCode,
    body: &serde_json::Value,
    header: Option<(HeaderName, HeaderValue)>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(format!("{body}\n"))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().extend(header);
    response
}
