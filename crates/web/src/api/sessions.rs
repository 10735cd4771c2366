//! Lists of sessions, and one whole session.

use axum::extract::{Path, State};
use axum::http::Uri;
use serde::Serialize;

use super::{Answer, ListQuery, OK, report};
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
    /// The numbers of sessions of every status, with the same search and time.
    counts: StatusCounts,
}

pub(super) async fn list<B: Backend>(State(web): State<Shared<B>>, uri: Uri) -> Answer {
    let page = ListQuery::parse(uri.query()).page(chrono::Utc::now())?;
    let limit = usize::try_from(page.filter.limit).unwrap_or(usize::MAX);
    let (sessions, counts) =
        tokio::join!(web.backend.sessions(page.clone()), web.backend.counts(page));
    let sessions = sessions?;
    // A page that is not full is the last one.
    let next = match sessions.last() {
        Some(last) if sessions.len() >= limit => Some(last.line.session_id),
        Some(_) | None => None,
    };
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
) -> Answer {
    Ok(json::response(OK, &report(&web, &part).await?))
}
