//! The routes of the pages: a handler reads what a page shows, and answers with it.

mod list;
mod session;
mod events;
mod live;
mod event;
mod calls;
mod search;
mod queue;
mod system;
mod requests;
mod submit;
mod settings;
mod approvals;
mod verdict;

use axum::Router;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use maud::Markup;
use serde::de::DeserializeOwned;

use crate::api::query;
use crate::fault::Fault;
use crate::ports::{Backend, Notice};
use crate::rights::Access;
use crate::shell::response::{error, error_title, html_response};
use crate::shell::viewer::Viewer;
use crate::shell::{self, Frame, NavEntry, Net};
use crate::state::Shared;

/// A page, or the fault of the request.
type Page = Result<Response, Fault>;

/// The routes of the pages.
pub(crate) fn routes<B: Backend>(web: &Shared<B>) -> Router<Shared<B>> {
    Router::new()
        .route("/", get(list::show::<B>))
        .route("/sessions/{part}", get(session::show::<B>))
        .route("/sessions/{part}/report.md", get(session::markdown::<B>))
        .route("/sessions/{part}/rows", get(session::rows::<B>))
        .route("/sessions/{part}/events/{number}", get(event::show::<B>))
        .route("/sessions/{part}/search", get(search::show::<B>))
        .route("/sessions/{part}/calls", get(calls::list::<B>))
        .route("/sessions/{part}/calls/{number}", get(calls::show::<B>))
        .route("/sessions/{part}/questions", post(requests::ask::<B>))
        .route(
            "/sessions/{part}/cancel",
            get(requests::confirm::<B>).post(requests::cancel::<B>),
        )
        .route(
            "/sessions/{part}/rerun",
            get(submit::confirm::<B>).post(submit::rerun::<B>),
        )
        .route("/sessions/{part}/verdict", post(verdict::judge::<B>))
        .route("/submit", get(submit::show::<B>).post(submit::send::<B>))
        .route("/approvals", get(approvals::list::<B>))
        .route("/approvals/freeze", post(approvals::change_freeze::<B>))
        .route(
            "/approvals/{part}/{number}",
            get(approvals::show::<B>).post(approvals::decide::<B>),
        )
        .route("/s/{part}", get(session::part::<B>))
        .route("/s/{part}/{number}", get(session::part_at::<B>))
        .route("/queue", get(queue::show::<B>))
        .route("/system", get(system::show::<B>))
        .route("/keys", get(settings::keys))
        .route("/keys/{state}", get(settings::switch_keys))
        .route("/theme/{name}", get(settings::theme))
        .route_layer(from_fn(show_fault))
        .route_layer(from_fn_with_state(web.clone(), with_notice::<B>))
        // The script reads its stream, so a fault of it is no page.
        .route("/sessions/{part}/live", get(live::show::<B>))
}

/// Answers a fault of a handler with a page that has the settings of its viewer.
async fn show_fault(asked: Asked, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let Some(fault) = response.extensions_mut().remove::<Fault>() else {
        return response;
    };
    let title = error_title(fault.status());
    let main = error(title, &fault.to_string());
    fault.with_page(asked.page(&Frame::plain(title, NavEntry::Elsewhere), &main))
}

/// Reads what every page shows about people.
async fn with_notice<B: Backend>(
    State(web): State<Shared<B>>,
    mut request: Request,
    next: Next,
) -> Response {
    let notice = web.backend.notice().await;
    request.extensions_mut().insert(notice);
    next.run(request).await
}

/// A request for a page: the viewer, and the address.
#[derive(Debug)]
struct Asked {
    viewer: Viewer,
    uri: Uri,
    headers: HeaderMap,
}

impl<S: Send + Sync> FromRequestParts<S> for Asked {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        let access = parts
            .extensions
            .get::<Access>()
            .cloned()
            .ok_or(StatusCode::INTERNAL_SERVER_ERROR)?;
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let notice = parts.extensions.get::<Notice>().cloned();
        Ok(Self {
            viewer: Viewer {
                notice: notice.unwrap_or_default(),
                ..Viewer::new(access, &parts.headers, path)
            },
            uri: parts.uri.clone(),
            headers: parts.headers.clone(),
        })
    }
}

/// The connection of a page that does not change by itself.
fn still<B: Backend>(web: &Shared<B>) -> Net {
    if web.backend.is_live() {
        Net::Still
    } else {
        Net::NotLive
    }
}

impl Asked {
    /// The parameters of the address.
    fn query<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        query(&self.uri)
    }

    fn page(&self, frame: &Frame<'_>, main: &Markup) -> Response {
        html_response(shell::page(frame, &self.viewer, main))
    }
}
