//! The JSON API `/api/v1`: the same data as the pages. Fields may be added; none is removed.
//!
//! `openapi.json` describes every route, and a test compares it with real answers.

mod approvals;
mod list;
mod sessions;
mod events;
mod calls;
pub(super) mod sse;
mod queue;
mod system;
mod requests;
mod submissions;

use axum::Router;
use axum::extract::Query;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde::de::DeserializeOwned;

pub(super) use self::calls::{CallPath, call_at, calls_of};
pub(super) use self::events::{EventPath, event_at, search_text};
pub(super) use self::list::{ListQuery, Part, WAITING};
pub(super) use self::system::{KnownWorker, ReportState, System, system};

use crate::fault::Fault;
use crate::ports::Backend;
use crate::state::Shared;
use tarsy_core::ids::SessionId;
use tarsy_reports::{AlertReport, IdMatch};

/// The description of the API.
pub const OPENAPI: &str = include_str!("openapi.json");

/// An answer, or the fault of the request.
type Answer = Result<Response, Fault>;

/// The routes of the API.
pub(super) fn routes<B: Backend>() -> Router<Shared<B>> {
    Router::new()
        .route("/sessions", get(sessions::list::<B>))
        .route("/sessions/{part}", get(sessions::show::<B>))
        .route("/sessions/{part}/events", get(events::list::<B>))
        .route("/sessions/{part}/events/{number}", get(events::show::<B>))
        .route("/sessions/{part}/calls", get(calls::list::<B>))
        .route("/sessions/{part}/calls/{number}", get(calls::show::<B>))
        .route("/sessions/{part}/questions", post(requests::ask::<B>))
        .route("/sessions/{part}/cancel", post(requests::cancel::<B>))
        .route("/sessions/{part}/rerun", post(submissions::rerun::<B>))
        .route("/alerts", post(submissions::submit::<B>))
        .route("/approvals", get(approvals::list::<B>))
        .route(
            "/approvals/{part}/{number}",
            get(approvals::show::<B>).post(approvals::decide::<B>),
        )
        .route("/events", get(sse::all::<B>))
        .route("/queue", get(queue::show::<B>))
        .route("/system", get(system::show::<B>))
        .route("/dead-letters", get(queue::dead_letters::<B>))
        .route("/openapi.json", get(openapi))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
}

async fn unknown() -> Fault {
    Fault::no_such_address()
}

async fn wrong_method() -> Fault {
    Fault::Method
}

async fn openapi() -> Response {
    (
        [(CONTENT_TYPE, HeaderValue::from_static("application/json"))],
        OPENAPI,
    )
        .into_response()
}

/// The parameters in the query of an address.
pub(super) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Fault> {
    let Query(query) =
        Query::try_from_uri(uri).map_err(|rejection| Fault::Invalid(rejection.body_text()))?;
    Ok(query)
}

/// The session that a part of an id names. A whole id is not looked up: its alert may still be in the queue.
pub(super) async fn find<B: Backend>(web: &Shared<B>, part: &str) -> Result<SessionId, Fault> {
    if let Some(id) = SessionId::parse(part) {
        return Ok(id);
    }
    match web.backend.find(part).await? {
        IdMatch::One(id) => Ok(id),
        IdMatch::None => Err(Fault::NotFound(
            "no session has this at either end of its id".to_owned(),
        )),
        IdMatch::Invalid => Err(Fault::Invalid(
            "a part of an id has at least six hexadecimal digits".to_owned(),
        )),
        IdMatch::Many(ids) => {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            Err(Fault::Conflict(format!(
                "several sessions have this at one end of their ids: {}",
                ids.join(", ")
            )))
        }
    }
}

/// The report about the session that a part of an id names.
pub(super) async fn report<B: Backend>(web: &Shared<B>, part: &str) -> Result<AlertReport, Fault> {
    let id = find(web, part).await?;
    web.backend.report(id).await?.ok_or_else(|| unseen(id))
}

/// The error response for an id that the store does not know.
fn unseen(id: SessionId) -> Fault {
    Fault::NotFound(format!(
        "no worker has seen an alert or session {id}: it may be queued, or be deleted"
    ))
}

/// The status of an answer with a body.
const OK: StatusCode = StatusCode::OK;
