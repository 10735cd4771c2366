//! The handler of `/`, the list of sessions.

use axum::extract::State;
use axum::response::{IntoResponse as _, Redirect};
use chrono::{DateTime, Utc};

use super::{Asked, Page, still};
use crate::pages::list::{Hidden, List, MAX_DEAD_LETTERS, PERIOD, Query, System, list};
use crate::ports::Backend;
use crate::shell::{Frame, NavEntry};
use crate::state::Shared;
use tarsy_core::ids::SessionId;
use tarsy_engine::ports::RunStatus;
use tarsy_reports::{IdMatch, Questions, SessionEntry, SessionFilter, SessionPage, StatusCounts};

/// Questions below the investigations of a page.
const MAX_ASKED: u32 = 200;
/// Values of the filter of an empty list whose sessions are counted.
const MAX_HIDDEN: usize = 8;

pub(super) async fn show<B: Backend>(State(web): State<Shared<B>>, asked: Asked) -> Page {
    let now = Utc::now();
    let mut shown = Query::parse(asked.uri.query());
    shown.filter.since = Some(shown.since().to_owned());
    if let Some(id) = session_with_id(&web, &shown.filter.q).await {
        return Ok(Redirect::to(&format!("/sessions/{id}")).into_response());
    }
    let mut selection = shown.filter.selection(now);
    if selection.query.since.is_none() {
        // Without this, an invalid period would select all times.
        selection.query.since = Some(PERIOD.to_owned());
        selection.page = selection.query.selection(now).page;
    }
    shown.filter = selection.query;
    let page = with_questions(&shown, selection.page);
    let limit = usize::try_from(page.filter.limit).unwrap_or(usize::MAX);
    let (entries, counts, facets, system) = tokio::join!(
        web.backend.sessions(page.clone()),
        web.backend.counts(page.clone()),
        web.backend.facets(),
        system(&web)
    );
    let entries = entries?;
    let is_empty = entries.is_empty() && page.before.is_none();
    let below = if page.filter.questions == Questions::Hidden {
        below(&web, &entries).await
    } else {
        Vec::new()
    };
    let hidden = if is_empty {
        hidden(&web, &shown, now).await
    } else {
        Vec::new()
    };
    // A page that is not full is the last one.
    let next = match entries.last() {
        Some(last) if entries.len() >= limit => Some(last.line.session_id.to_string()),
        Some(_) | None => None,
    };
    let query = shown.clone();
    let main = web.renderer.render(move || {
        list(&List {
            entries: &entries,
            asked: &below,
            counts: counts.ok(),
            query: &query,
            system: &system,
            facets: &facets.unwrap_or_default(),
            faults: &selection.faults,
            hidden: &hidden,
            next,
            now,
        })
    });
    let main = main.await?;
    let frame = Frame {
        net: still(&web),
        search: &shown.filter.q,
        since: Some(shown.since()).filter(|since| *since != PERIOD),
        ..Frame::plain("Sessions", NavEntry::Sessions)
    };
    Ok(asked.page(&frame, &main))
}

/// Hides questions in a list without a search: they are shown below their investigations.
fn with_questions(shown: &Query, mut page: SessionPage) -> SessionPage {
    if shown.filter.questions.is_empty() && shown.filter.q.is_empty() {
        page.filter.questions = Questions::Hidden;
    }
    page
}

/// The questions about these investigations, the newest first.
async fn below<B: Backend>(web: &Shared<B>, entries: &[SessionEntry]) -> Vec<SessionEntry> {
    let about: Vec<_> = entries
        .iter()
        .filter(|entry| entry.questions > 0)
        .map(|entry| entry.line.session_id)
        .collect();
    if about.is_empty() {
        return Vec::new();
    }
    let filter = SessionFilter {
        limit: MAX_ASKED,
        about,
        ..SessionFilter::default()
    };
    let page = SessionPage {
        filter,
        before: None,
    };
    // When they cannot be read, the row of an investigation has their number alone.
    web.backend.sessions(page).await.unwrap_or_default()
}

/// Counts for an empty list the sessions that each value of its filter hides.
async fn hidden<B: Backend>(web: &Shared<B>, shown: &Query, now: DateTime<Utc>) -> Vec<Hidden> {
    let counted = shown
        .filter
        .parts()
        .into_iter()
        .take(MAX_HIDDEN)
        .map(async |part| {
            let without = Query {
                filter: part.without.clone(),
                ..Query::default()
            };
            let page = with_questions(&without, part.without.selection(now).page);
            let filter = page.filter.clone();
            let counts = web.backend.counts(page).await.ok()?;
            Some(Hidden {
                part,
                count: sum(&counts, &filter),
            })
        });
    futures_util::future::join_all(counted)
        .await
        .into_iter()
        .flatten()
        .collect()
}

/// The number of sessions that have one of the states of a filter, or any.
fn sum(counts: &StatusCounts, filter: &SessionFilter) -> i64 {
    let statuses = &filter.statuses;
    if filter.waits_for_approval && !statuses.contains(&RunStatus::Running) {
        let rest = SessionFilter {
            waits_for_approval: false,
            ..filter.clone()
        };
        let rest = if statuses.is_empty() {
            0
        } else {
            sum(counts, &rest)
        };
        return counts.waiting_for_approval + rest;
    }
    let each = [
        (RunStatus::Running, counts.running),
        (RunStatus::Completed, counts.completed),
        (RunStatus::Failed, counts.failed),
        (RunStatus::Cancelled, counts.cancelled),
        (RunStatus::TimedOut, counts.timed_out),
        (RunStatus::Limited, counts.limited),
    ];
    each.into_iter()
        .filter(|(status, _)| statuses.is_empty() || statuses.contains(status))
        .map(|(_, count)| count)
        .sum()
}

/// The session, if a search is the id of one.
async fn session_with_id<B: Backend>(web: &Shared<B>, q: &str) -> Option<SessionId> {
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
    let (lanes, dead) = tokio::join!(
        web.backend.lanes(),
        web.backend.dead_letters(MAX_DEAD_LETTERS)
    );
    let workers = web.backend.workers();
    System {
        waiting: lanes
            .ok()
            .map(|lanes| lanes.iter().map(|lane| lane.waiting).sum()),
        workers: workers.len(),
        slots: workers.iter().map(|worker| worker.slots).sum(),
        busy: workers.iter().map(|worker| worker.busy).sum(),
        dead_letters: dead.ok().map(|dead| dead.len()),
    }
}
