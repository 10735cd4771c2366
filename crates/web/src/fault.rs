//! Error responses: JSON for programs, a page for people.

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json as value;

use crate::json;
use crate::ports::{Refusal, Unavailable};
use crate::shell::response::error_page;

/// An error response. The texts contain no secret.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    Forbidden(&'static str),
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Conflict(String),
    #[error("{0}")]
    TooMany(String),
    #[error("this address takes another method")]
    Method,
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unknown(reason) => Self::NotFound(reason),
            Refusal::State(reason) => Self::Conflict(reason),
            Refusal::Invalid(reason) => Self::Invalid(reason),
            Refusal::Unavailable(unavailable) => Self::Unavailable(unavailable),
        }
    }
}

/// `{"error": "…"}`, as the receiver answers. The extension `Fault` lets a layer answer with a page instead.
impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let body = value!({"error": self.to_string()});
        let mut response = self.with_retry(json::response(self.status(), &body));
        response.extensions_mut().insert(self);
        response
    }
}

impl Fault {
    pub(super) fn no_such_address() -> Self {
        Self::NotFound("there is nothing at this address".to_owned())
    }

    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// A page with the reason.
    pub(super) fn page(&self) -> Response {
        self.with_retry(error_page(self.status(), &self.to_string()))
    }

    /// The page with the status of this fault.
    pub(super) fn with_page(&self, page: Response) -> Response {
        self.with_retry((self.status(), page).into_response())
    }

    fn with_retry(&self, mut response: Response) -> Response {
        if matches!(self, Self::Unavailable(_) | Self::TooMany(_)) {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from_static("3"));
        }
        response
    }
}
