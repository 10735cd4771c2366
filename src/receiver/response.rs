//! The responses of the receiver: a status, a JSON object, and the headers that belong to the status.

use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde_json::json;

use super::{PublishError, Published};

/// A client whose body was too slow may try again soon.
const SLOW_BODY_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Why a request is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    UnknownPath,
    MethodNotAllowed,
    Unauthorized,
    /// A web page sent the request, and the receiver has no token that would distinguish the page from a local program.
    FromWebPage,
    TooLarge(String),
    /// The body took longer than this. A later try may be faster, so the status is no 4xx.
    SlowBody(Duration),
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
        let (status, reason, header) = match self {
            Self::UnknownPath => {
                let reason = "not found; available: /alertmanager, /grafana, /alert";
                (StatusCode::NOT_FOUND, reason.to_owned(), None)
            }
            Self::MethodNotAllowed => {
                let reason = "alerts are sent with POST".to_owned();
                (StatusCode::METHOD_NOT_ALLOWED, reason, Some((ALLOW, HeaderValue::from_static("POST"))))
            }
            Self::Unauthorized => {
                let scheme = HeaderValue::from_static("Bearer realm=\"tarsy\"");
                (StatusCode::UNAUTHORIZED, "a bearer token is required".to_owned(), Some((WWW_AUTHENTICATE, scheme)))
            }
            Self::FromWebPage => {
                let reason = "rejected: a web page sent this request (it has the header Origin or Sec-Fetch-Site), and the \
                              receiver has no token";
                (StatusCode::FORBIDDEN, reason.to_owned(), None)
            }
            // The rest of the body is not read, so the connection cannot be used again.
            Self::TooLarge(reason) => {
                (StatusCode::PAYLOAD_TOO_LARGE, reason, Some((CONNECTION, HeaderValue::from_static("close"))))
            }
            Self::SlowBody(timeout) => {
                let reason = format!("body did not arrive within {} s", timeout.as_secs_f64());
                return Self::Unavailable { reason, retry_after: SLOW_BODY_RETRY_DELAY }.response();
            }
            Self::Invalid(reason) => (StatusCode::BAD_REQUEST, reason, None),
            Self::Unavailable { reason, retry_after } => {
                let seconds = HeaderValue::from(retry_after.as_secs().max(1));
                (StatusCode::SERVICE_UNAVAILABLE, reason, Some((RETRY_AFTER, seconds)))
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
