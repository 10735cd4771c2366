//! The handler of `/sessions/{id}/events/{number}`.

use axum::extract::{Path, State};
use serde::Deserialize;

use super::{Asked, Page};
use crate::api::{EventPath, event_at};
use crate::cache;
use crate::pages::event::{body, event};
use crate::ports::Backend;
use crate::shell::response::html_response;
use crate::shell::{self, Frame, NavEntry};
use crate::state::Shared;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parameters {
    /// `1` for the body of the event alone, which the script puts into the page of its session.
    part: String,
}

pub(super) async fn show<B: Backend>(
    State(web): State<Shared<B>>,
    Path(path): Path<EventPath>,
    asked: Asked,
) -> Page {
    let Parameters { part } = asked.query()?;
    let found = event_at(&web, &path).await?;
    let id = found.session_id;
    let title = format!("Event {} of {}", found.session_seq, id.short());
    let viewer = asked.viewer.clone();
    let page = web.renderer.render(move || match part.as_str() {
        "1" => body(id, &found),
        _ => shell::page(
            &Frame::plain(&title, NavEntry::Session),
            &viewer,
            &event(id, &found),
        ),
    });
    let page = page.await?;
    // The event never changes, but the page around it and the markup of its body do.
    let tag = cache::tag(&page.0, &asked.uri);
    let unchanged = cache::unchanged(&asked.headers, &tag);
    Ok(unchanged.unwrap_or_else(|| cache::tagged(html_response(page), tag)))
}
