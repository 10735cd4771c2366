//! `/`

use axum::extract::State;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

use super::{Asked, Page};
use crate::reports::IdMatch;
use crate::web::Shared;
use crate::web::api::ListQuery;
use crate::web::pages::list::{Alike, List, MAX_DEAD_LETTERS, Query, System, list};
use crate::web::pages::shell::{Frame, Net, Place};
use crate::web::ports::Backend;

/// The period that is shown unless the address has another one.
const PERIOD: &str = "24h";

/// The parameters of the list. `since` without a value is all times; without the parameter it is [`PERIOD`].
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parameters {
    status: String,
    since: Option<String>,
    q: String,
    before: String,
    limit: String,
    alike: String,
}

pub(super) async fn show<B: Backend>(State(web): State<Shared<B>>, asked: Asked) -> Response {
    asked.answer(render(&web, &asked).await)
}

async fn render<B: Backend>(web: &Shared<B>, asked: &Asked) -> Page {
    let Parameters { status, since, q, before, limit, alike } = asked.query()?;
    let since = since.unwrap_or_else(|| PERIOD.to_owned());
    if let Some(id) = id(web, &q).await {
        return Ok(Redirect::to(&format!("/sessions/{id}")).into_response());
    }
    let shown = Query {
        status: status.clone(),
        since: since.clone(),
        q: q.clone(),
        before: before.clone(),
        limit: limit.clone(),
        alike: Alike::of(&alike),
    };
    let page = ListQuery { status, since, q, before, limit }.page()?;
    let limit = usize::try_from(page.filter.limit).unwrap_or(usize::MAX);
    let (entries, counts, system) =
        tokio::join!(web.backend.sessions(page.clone()), web.backend.counts(page), system(web));
    let entries = entries?;
    let next = entries.last().filter(|_| entries.len() >= limit).map(|last| last.line.session_id.to_string());
    let main = list(&List {
        entries: &entries,
        counts: counts.ok(),
        query: &shown,
        system: &system,
        next,
        now: chrono::Utc::now(),
    });
    let net = if web.backend.is_live() { Net::Still } else { Net::NotLive };
    let since = Some(shown.since.as_str()).filter(|since| *since != PERIOD);
    let frame = Frame { net, search: &shown.q, since, ..Frame::plain("Sessions", Place::Sessions) };
    Ok(asked.page(&frame, &main))
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
