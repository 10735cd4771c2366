//! The handler of `/queue`.

use axum::extract::State;
use axum::response::Response;

use super::{Asked, still};
use crate::pages::queue::{QueuePage, queue};
use crate::ports::Backend;
use crate::shell::{Frame, NavEntry};
use crate::state::Shared;

/// Dead letters of the page.
const MAX_DEAD: u32 = 50;

pub(super) async fn show<B: Backend>(State(web): State<Shared<B>>, asked: Asked) -> Response {
    let (lanes, dead, checks) = tokio::join!(
        web.backend.lanes(),
        web.backend.dead_letters(MAX_DEAD),
        web.backend.checks()
    );
    let main = queue(&QueuePage {
        lanes,
        workers: web.backend.workers(),
        dead,
        checks,
    });
    let frame = Frame {
        net: still(&web),
        ..Frame::plain("Queue", NavEntry::Queue)
    };
    asked.page(&frame, &main)
}
