//! Lists of sessions, and one whole session.

use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use serde::Serialize;

use super::{Answer, ListQuery, OK, answered, find, unseen};
use crate::json;
use crate::ports::Backend;
use crate::state::Shared;
use tarsy_core::ids::SessionId;
use tarsy_reports::{SessionEntry, StatusCounts};

#[derive(Serialize)]
struct Page {
    sessions: Vec<SessionEntry>,
    /// `before` of the next page; null on the last one.
    next: Option<SessionId>,
    /// With the same search and time, of every status.
    counts: StatusCounts,
}

pub(super) async fn list<B: Backend>(State(web): State<Shared<B>>, uri: Uri) -> Response {
    answered(listed(&web, &uri).await)
}

async fn listed<B: Backend>(web: &Shared<B>, uri: &Uri) -> Answer {
    let page = ListQuery::of(uri.query()).page(chrono::Utc::now())?;
    let limit = usize::try_from(page.filter.limit).unwrap_or(usize::MAX);
    let (sessions, counts) =
        tokio::join!(web.backend.sessions(page.clone()), web.backend.counts(page));
    let sessions = sessions?;
    let next = sessions
        .last()
        .filter(|_| sessions.len() >= limit)
        .map(|last| last.line.session_id);
    Ok(json::response(
        OK,
        &Page {
            sessions,
            next,
            counts: counts?,
        },
    ))
}

pub(super) async fn show<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
) -> Response {
    answered(shown(&web, &part).await)
}

async fn shown<B: Backend>(web: &Shared<B>, part: &str) -> Answer {
    let id = find(web, part).await?;
    let report = web.backend.report(id).await?.ok_or_else(|| unseen(id))?;
    Ok(json::response(OK, &report))
}
