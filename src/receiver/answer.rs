//! What is answered: a status, a JSON object, and the headers that go with them.

use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde_json::json;

use super::{Refused, Stored};

/// A client that was too slow may be faster at once.
const SLOW_RETRY: Duration = Duration::from_secs(1);

/// Why nothing was kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    NoSuchPath,
    OnlyPost,
    Unauthorized,
    /// A web page asks, and nothing else tells it from a program of this machine.
    Browser,
    TooLarge(String),
    /// The body took longer than this. Slow today is not slow for ever, so this is no 4xx.
    Slow(Duration),
    Never(String),
    Later {
        why: String,
        retry_after: Duration,
    },
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Later { why, retry_after } => Self::Later { why, retry_after },
            Refused::TooLarge(why) => Self::TooLarge(why),
            Refused::Never(why) => Self::Never(why),
        }
    }
}

/// `left_out`: the headers that were sent in vain.
pub(super) fn answer(outcome: Result<Stored, Fault>, left_out: &[&str]) -> Response<Full<Bytes>> {
    match outcome {
        Ok(Stored { session_id, subject, stream_sequence }) => {
            let mut stored = json!({"session_id": session_id, "subject": subject, "stream_sequence": stream_sequence});
            if let (Some(stored), false) = (stored.as_object_mut(), left_out.is_empty()) {
                stored.insert("ignored_headers".to_owned(), json!(left_out));
            }
            respond(StatusCode::ACCEPTED, &stored, None)
        }
        Err(fault) => fault.response(),
    }
}

impl Fault {
    fn response(self) -> Response<Full<Bytes>> {
        let (status, why, header) = match self {
            Self::NoSuchPath => (StatusCode::NOT_FOUND, "here are /alertmanager, /grafana and /alert".to_owned(), None),
            Self::OnlyPost => {
                let why = "alerts are sent with POST".to_owned();
                (StatusCode::METHOD_NOT_ALLOWED, why, Some((ALLOW, HeaderValue::from_static("POST"))))
            }
            Self::Unauthorized => {
                let scheme = HeaderValue::from_static("Bearer realm=\"tarsy\"");
                (StatusCode::UNAUTHORIZED, "a bearer token is needed".to_owned(), Some((WWW_AUTHENTICATE, scheme)))
            }
            Self::Browser => {
                let why =
                    "without a token no request of a web page is taken: it has the header Origin or Sec-Fetch-Site";
                (StatusCode::FORBIDDEN, why.to_owned(), None)
            }
            // What was not read of the body is not read any more.
            Self::TooLarge(why) => {
                (StatusCode::PAYLOAD_TOO_LARGE, why, Some((CONNECTION, HeaderValue::from_static("close"))))
            }
            Self::Slow(after) => {
                let why = format!("body did not arrive within {} s", after.as_secs_f64());
                return Self::Later { why, retry_after: SLOW_RETRY }.response();
            }
            Self::Never(why) => (StatusCode::BAD_REQUEST, why, None),
            Self::Later { why, retry_after } => {
                let seconds = HeaderValue::from(retry_after.as_secs().max(1));
                (StatusCode::SERVICE_UNAVAILABLE, why, Some((RETRY_AFTER, seconds)))
            }
        };
        respond(status, &json!({"error": why}), header)
    }
}

fn respond(
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
