//! Pages as responses, and the page of an error.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _, Response};
use maud::{Markup, html};

use super::viewer::Viewer;
use super::words::brief;
use super::{Frame, NavEntry};

/// A page outside of the handlers of pages: a refusal or the login. Its reader's settings are not known.
pub(crate) fn page(title: &str, main: &Markup) -> Response {
    let frame = Frame::plain(title, NavEntry::Elsewhere);
    html_response(super::page(&frame, &Viewer::default(), main))
}

/// A page with a status and its reason.
pub(crate) fn error_page(status: StatusCode, reason: &str) -> Response {
    let title = error_title(status);
    (status, page(title, &error(title, reason))).into_response()
}

/// The title of the page of an error.
pub(crate) fn error_title(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or("Error")
}

/// The content of the page of an error.
pub(crate) fn error(title: &str, reason: &str) -> Markup {
    html! {
        div.head { h1 { (brief(title, 120)) } }
        p { (brief(reason, 600)) }
        p { a href="/" { "All sessions" } }
    }
}

/// Markup as a response.
pub(crate) fn html_response(markup: Markup) -> Response {
    Html(markup.into_string()).into_response()
}
