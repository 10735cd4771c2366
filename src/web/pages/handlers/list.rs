//! `/`

use axum::extract::State;
use axum::response::{IntoResponse as _, Redirect, Response};
use chrono::{DateTime, Utc};

use super::{Asked, Page};
use crate::engine::ports::RunStatus;
use crate::reports::{IdMatch, StatusCounts};
use crate::web::Shared;
use crate::web::pages::list::{Hidden, List, MAX_DEAD_LETTERS, PERIOD, Query, System, list};
use crate::web::pages::shell::{Frame, Net, Place};
use crate::web::ports::Backend;

/// Values of the filter of an empty list whose sessions are counted.
const MAX_HIDDEN: usize = 8;

pub(super) async fn show<B: Backend>(State(web): State<Shared<B>>, asked: Asked) -> Response {
    asked.answer(render(&web, &asked).await)
}

async fn render<B: Backend>(web: &Shared<B>, asked: &Asked) -> Page {
    let now = Utc::now();
    let mut shown = Query::of(asked.uri.query());
    shown.filter.since = Some(shown.since().to_owned());
    if let Some(id) = id(web, &shown.filter.q).await {
        return Ok(Redirect::to(&format!("/sessions/{id}")).into_response());
    }
    let mut selection = shown.filter.selection(now);
    if selection.query.since.is_none() {
        // The period was no moment: that of the list is not all times.
        selection.query.since = Some(PERIOD.to_owned());
        selection.page = selection.query.selection(now).page;
    }
    shown.filter = selection.query;
    let page = selection.page;
    let limit = usize::try_from(page.filter.limit).unwrap_or(usize::MAX);
    let (entries, counts, facets, system) = tokio::join!(
        web.backend.sessions(page.clone()),
        web.backend.counts(page.clone()),
        web.backend.facets(),
        system(web)
    );
    let entries = entries?;
    let is_empty = entries.is_empty() && page.before.is_none();
    let hidden = if is_empty { hidden(web, &shown, now).await } else { Vec::new() };
    let next = entries.last().filter(|_| entries.len() >= limit).map(|last| last.line.session_id.to_string());
    let main = list(&List {
        entries: &entries,
        counts: counts.ok(),
        query: &shown,
        system: &system,
        facets: &facets.unwrap_or_default(),
        faults: &selection.faults,
        hidden: &hidden,
        next,
        now,
    });
    let net = if web.backend.is_live() { Net::Still } else { Net::NotLive };
    let since = Some(shown.since()).filter(|since| *since != PERIOD);
    let frame = Frame { net, search: &shown.filter.q, since, ..Frame::plain("Sessions", Place::Sessions) };
    Ok(asked.page(&frame, &main))
}

/// How many sessions an empty list has without each value of its filter.
async fn hidden<B: Backend>(web: &Shared<B>, shown: &Query, now: DateTime<Utc>) -> Vec<Hidden> {
    let counted = shown.filter.parts().into_iter().take(MAX_HIDDEN).map(async |part| {
        let page = part.without.selection(now).page;
        let statuses = page.filter.statuses.clone();
        let counts = web.backend.counts(page).await.ok()?;
        Some(Hidden { part, count: sum(&counts, &statuses) })
    });
    futures_util::future::join_all(counted).await.into_iter().flatten().collect()
}

/// How many sessions have one of these states, or any.
fn sum(counts: &StatusCounts, statuses: &[RunStatus]) -> i64 {
    let each = [
        (RunStatus::Running, counts.running),
        (RunStatus::Completed, counts.completed),
        (RunStatus::Failed, counts.failed),
        (RunStatus::Cancelled, counts.cancelled),
        (RunStatus::TimedOut, counts.timed_out),
    ];
    let is_counted = |status: &RunStatus| statuses.is_empty() || statuses.contains(status);
    each.into_iter().filter(|(status, _)| is_counted(status)).map(|(_, count)| count).sum()
}

/// The session, if a search is the id of one.
async fn id<B: Backend>(web: &Shared<B>, q: &str) -> Option<crate::investigation::ids::SessionId> {
    let part = q.trim();
    let is_id = part.len() >= 6 && part.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if !is_id {
        return None;
    }
    match web.backend.find(part).await {
        Ok(IdMatch::One(id)) => Some(id),
        Ok(_) | Err(_) => None,
    }
}

async fn system<B: Backend>(web: &Shared<B>) -> System {
    let (lanes, dead) = tokio::join!(web.backend.lanes(), web.backend.dead_letters(MAX_DEAD_LETTERS));
    let workers = web.backend.workers();
    System {
        waiting: lanes.ok().map(|lanes| lanes.iter().map(|lane| lane.waiting).sum()),
        workers: workers.len(),
        slots: workers.iter().map(|worker| worker.slots).sum(),
        busy: workers.iter().map(|worker| worker.busy).sum(),
        dead_letters: dead.ok().map(|dead| dead.len()),
    }
}
