//! The login by token: a form, and the cookie that it sets.

use std::sync::Arc;
use std::time::Duration;

use axum::Form;
use axum::Router;
use axum::extract::rejection::FormRejection;
use axum::extract::{Query, Request, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use maud::{DOCTYPE, html};
use serde::Deserialize;

use super::{Gate, Mode, cookie};
use crate::fault::Fault;
use crate::shell::response::{html_response, page};

/// The delay before the answer to a wrong token, which makes guessing slow.
pub(super) const WRONG_TOKEN_DELAY: Duration = Duration::from_millis(500);

/// The routes of the login.
pub(crate) fn routes<S>(gate: Arc<Gate>) -> Router<S> {
    Router::new()
        .route("/login", get(show).post(log_in))
        .route("/logout", post(log_out))
        .with_state(gate)
}

#[derive(Debug, Default, Deserialize)]
struct After {
    /// The path to show after the login.
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
struct LogIn {
    token: String,
    #[serde(default)]
    next: String,
}

async fn show(State(gate): State<Arc<Gate>>, uri: Uri) -> Response {
    let Mode::Token(_) = gate.mode else {
        return no_login();
    };
    let after = Query::<After>::try_from_uri(&uri)
        .map(|Query(after)| after)
        .unwrap_or_default();
    form(&after.next, None)
}

async fn log_in(
    State(gate): State<Arc<Gate>>,
    sent: Result<Form<LogIn>, FormRejection>,
) -> Response {
    let Mode::Token(token) = &gate.mode else {
        return no_login();
    };
    let Ok(Form(sent)) = sent else {
        return form("", Some("The form was not complete."));
    };
    if !token.is(sent.token.trim()) {
        tokio::time::sleep(WRONG_TOKEN_DELAY).await;
        return form(&sent.next, Some("This is not the token."));
    }
    let cookie = cookie::issue(token, &gate.hosts);
    with_cookie(redirect_to(own_path(&sent.next)), &cookie)
}

async fn log_out(State(gate): State<Arc<Gate>>) -> Response {
    let Mode::Token(_) = gate.mode else {
        return no_login();
    };
    with_cookie(redirect_to("/login"), &cookie::end(&gate.hosts))
}

/// Leads to the form. A link on another site comes without the cookie, which is for requests of this site only: the
/// page that answers it asks for the same address again, as this site.
pub(super) fn redirect(request: &Request) -> Response {
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    let is_from_elsewhere = header(request.headers(), "sec-fetch-site") == Some("cross-site");
    if is_from_elsewhere && header(request.headers(), "sec-fetch-mode") == Some("navigate") {
        let again = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="refresh" content={ "0;url=" (own_path(path)) };
                    title { "tarsy" }
                }
                body { p { a href=(own_path(path)) { "Go on" } } }
            }
        };
        return (StatusCode::UNAUTHORIZED, html_response(again)).into_response();
    }
    let next = url::form_urlencoded::byte_serialize(path.as_bytes()).collect::<String>();
    redirect_to(&format!("/login?next={next}"))
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The path if it leads to this server, else the first page. Browsers remove tabs and line breaks from an address, so
/// that the slashes on both sides of one would begin the name of another server.
pub(crate) fn own_path(path: &str) -> &str {
    let is_own = path.starts_with('/')
        && !path.starts_with("//")
        && !path.contains(|c: char| c == '\\' || c.is_control());
    if is_own { path } else { "/" }
}

fn redirect_to(path: &str) -> Response {
    let location = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
    response
}

fn no_login() -> Response {
    Fault::no_such_address().page()
}

fn form(next: &str, problem: Option<&str>) -> Response {
    let body = html! {
        div.head { h1 { "tarsy" } }
        div {
            @if let Some(problem) = problem {
                p role="alert" { (problem) }
            }
            p { "The token that the operator of this server has set in " code { "TARSY_WEB_TOKEN" } "." }
            form.ask-form method="post" action="/login" {
                input type="hidden" name="next" value=(own_path(next));
                // A name by which the browser keeps the token.
                input type="text" name="username" value="tarsy" autocomplete="username" hidden;
                label { "Token " input type="password" name="token" autocomplete="current-password" required; }
                " "
                button { "Log in" }
            }
        }
    };
    let status = if problem.is_some() {
        StatusCode::FORBIDDEN
    } else {
        StatusCode::OK
    };
    (status, page("Log in", &body)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_to_paths_of_this_server_only() {
        for path in ["/", "/sessions/1?view=all", "/s/abc"] {
            assert_eq!(own_path(path), path);
        }
        for other in [
            "",
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "/a\r\nb: c",
            "/\t/evil.example",
            "javascript:1",
        ] {
            assert_eq!(own_path(other), "/", "{other}");
        }
    }
}
