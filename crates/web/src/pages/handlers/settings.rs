//! Handlers of the reader's settings, stored in cookies: the theme, and keyboard shortcuts on or off.

use axum::extract::Path;
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;

use super::Asked;
use crate::access::login::own_path;
use crate::api::query;
use crate::pages::dialogs;
use crate::shell::viewer::{KEYS_COOKIE, THEME_COOKIE, Theme};
use crate::shell::{Frame, NavEntry};

/// A year.
const MAX_AGE_SECS: u32 = 31_536_000;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Back {
    back: String,
}

pub(super) async fn keys(asked: Asked) -> Response {
    let frame = Frame::plain("Keys", NavEntry::Elsewhere);
    asked.page(&frame, &dialogs::keys(&asked.viewer))
}

pub(super) async fn switch_keys(Path(state): Path<String>, uri: Uri) -> Response {
    set(KEYS_COOKIE, if state == "off" { "off" } else { "on" }, &uri)
}

pub(super) async fn theme(Path(name): Path<String>, uri: Uri) -> Response {
    set(THEME_COOKIE, Theme::parse(Some(&name)).word(), &uri)
}

/// Sets a cookie, and leads back to a page of this server.
fn set(name: &str, value: &str, uri: &Uri) -> Response {
    let Back { back } = query(uri).unwrap_or_default();
    let cookie = format!("{name}={value}; Path=/; Max-Age={MAX_AGE_SECS}; SameSite=Lax; HttpOnly");
    (
        StatusCode::SEE_OTHER,
        [(SET_COOKIE, cookie), (LOCATION, own_path(&back).to_owned())],
    )
        .into_response()
}
