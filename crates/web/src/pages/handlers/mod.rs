//! The routes of the pages: a handler reads what a page shows, and answers with it.

mod list;
mod session;
mod events;
mod live;
mod event;
mod calls;
mod queue;
mod requests;
mod submit;
mod settings;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use maud::Markup;
use serde::de::DeserializeOwned;

use crate::api::query;
use crate::fault::Fault;
use crate::ports::Backend;
use crate::rights::Access;
use crate::shell::response::{error, error_title, html_response};
use crate::shell::viewer::Viewer;
use crate::shell::{self, Frame, Place};
use crate::state::Shared;

/// A page, or the fault of the request.
type Page = Result<Response, Fault>;

/// The routes of the pages.
pub(crate) fn routes<B: Backend>() -> Router<Shared<B>> {
    Router::new()
        .route("/", get(list::show::<B>))
        .route("/sessions/{part}", get(session::show::<B>))
        .route("/sessions/{part}/report.md", get(session::markdown::<B>))
        .route("/sessions/{part}/rows", get(session::rows::<B>))
        .route("/sessions/{part}/live", get(live::show::<B>))
        .route("/sessions/{part}/events/{number}", get(event::show::<B>))
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
        .route("/submit", get(submit::show::<B>).post(submit::send::<B>))
        .route("/s/{part}", get(session::part::<B>))
        .route("/s/{part}/{number}", get(session::part_at::<B>))
        .route("/queue", get(queue::show::<B>))
        .route("/keys", get(settings::keys))
        .route("/keys/{state}", get(settings::switch_keys))
        .route("/theme/{name}", get(settings::theme))
}

/// A request for a page: who asks for which address.
#[derive(Debug)]
struct Asked {
    access: Access,
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
        let viewer = Viewer::new(&access, &parts.headers, path);
        Ok(Self {
            access,
            viewer,
            uri: parts.uri.clone(),
            headers: parts.headers.clone(),
        })
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

    /// The page, or one that shows the fault.
    fn answer(&self, page: Page) -> Response {
        page.unwrap_or_else(|fault| {
            let title = error_title(fault.status());
            let main = error(title, &fault.to_string());
            fault.with_page(self.page(&Frame::plain(title, Place::Elsewhere), &main))
        })
    }
}
