//! The answers of the API: JSON on one line that ends with a line break, as the commands print them.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

/// The beginning of the paths of the API.
pub(super) const API: &str = "/api/v1";

/// A value as a response.
pub(super) fn response(status: StatusCode, value: &impl Serialize) -> Response {
    let Ok(line) = tarsy_reports::json::line(value) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let mut response = (status, line + "\n").into_response();
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
