//! The handler of `/system`.

use axum::extract::State;

use super::{Asked, Page, still};
use crate::api::system;
use crate::pages::system as page;
use crate::ports::Backend;
use crate::shell::{Frame, NavEntry};
use crate::state::Shared;

pub(super) async fn show<B: Backend>(State(web): State<Shared<B>>, asked: Asked) -> Page {
    let found = system(&web, &asked.viewer.access)?;
    let main = web.renderer.render(move || page::system(&found)).await?;
    let frame = Frame {
        net: still(&web),
        ..Frame::plain("System", NavEntry::System)
    };
    Ok(asked.page(&frame, &main))
}
