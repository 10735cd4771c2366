//! The handler of `/sessions/{id}/search`.

use axum::extract::{Path, State};
use serde::Deserialize;

use super::{Asked, Page};
use crate::api::{report, search_text};
use crate::fault::Fault;
use crate::pages::search::{Search, search};
use crate::ports::Backend;
use crate::shell::{Frame, NavEntry};
use crate::state::Shared;
use tarsy_reports::EventSearch;

/// Events of one page.
const LIMIT: u32 = 50;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parameters {
    q: String,
    after: u32,
}

pub(super) async fn show<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
    asked: Asked,
) -> Page {
    let Parameters { q, after } = asked.query()?;
    let report = report(&web, &part).await?;
    let id = report.alert_id;
    let text = search_text(&q);
    let problem = text.as_ref().err().map(Fault::to_string);
    let found = match text.ok().flatten() {
        Some(text) => {
            let search = EventSearch {
                session: id,
                after,
                limit: LIMIT,
                text,
            };
            Some(web.backend.search_events(search).await?)
        }
        None => None,
    };
    let last = report
        .session
        .and_then(|session| u32::try_from(session.last_seq).ok())
        .unwrap_or_default();
    let title = format!("Search in {}", id.short());
    let main = web.renderer.render(move || {
        search(&Search {
            id,
            last,
            text: &q,
            after,
            problem: problem.as_deref(),
            found: found.as_ref(),
        })
    });
    Ok(asked.page(&Frame::plain(&title, NavEntry::Session), &main.await?))
}
