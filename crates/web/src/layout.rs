//! Builds HTML responses, and pages that need no handler.

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use maud::Markup;

use super::pages::shell::{self, Frame, Place};
use super::pages::viewer::Viewer;

/// A page outside of the handlers of pages: a refusal or the login. Its reader's settings are not known.
pub(super) fn page(title: &str, main: &Markup) -> Response {
    html_response(shell::page(
        &Frame::plain(title, Place::Elsewhere),
        &Viewer::default(),
        main,
    ))
}

/// Markup as a response.
pub(super) fn html_response(markup: Markup) -> Response {
    let mut response = markup.into_string().into_response();
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    response
}
