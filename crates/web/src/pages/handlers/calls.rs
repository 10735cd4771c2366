//! Handlers of `/sessions/{id}/calls` and `/sessions/{id}/calls/{number}`.

use axum::extract::{Path, State};

use super::{Asked, Page};
use crate::api::{CallPath, call_at, calls_of};
use crate::pages::calls::{call, list as calls_list};
use crate::ports::Backend;
use crate::shell::{Frame, NavEntry};
use crate::state::Shared;

pub(super) async fn list<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
    asked: Asked,
) -> Page {
    let (id, calls) = calls_of(&web, &asked.viewer.access, &part).await?;
    let title = format!("Model calls of {}", id.short());
    let main = web.renderer.render(move || calls_list(id, &calls)).await?;
    Ok(asked.page(&Frame::plain(&title, NavEntry::Session), &main))
}

pub(super) async fn show<B: Backend>(
    State(web): State<Shared<B>>,
    Path(path): Path<CallPath>,
    asked: Asked,
) -> Page {
    let (id, found) = call_at(&web, &asked.viewer.access, &path, &asked.query()?).await?;
    let title = format!("Model call {} of {}", found.call.number, id.short());
    let main = web.renderer.render(move || call(id, &found)).await?;
    Ok(asked.page(&Frame::plain(&title, NavEntry::Session), &main))
}
