//! The live stream of a page: its rows as they change, as markup.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::response::sse::Event;
use futures_util::stream;
use serde::Deserialize;
use tokio::time::{Instant, sleep_until};

use super::events::{EVENTS_PAGE, MANY};
use super::{Asked, Page};
use crate::api::{find, sse};
use crate::frames::{Item, frame};
use crate::pages::live::LivePage;
use crate::ports::{Backend, Update};
use crate::state::Shared;
use crate::stream::{Next, SessionStream};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::TimelineEvent;
use tarsy_reports::{Excerpt, ExcerptPage};

/// The time between two looks at the connection to the broker.
const NET_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct After {
    after: u32,
}

/// The rows of a running session as they change.
pub(super) async fn show<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
    asked: Asked,
) -> Page {
    let After { after } = asked.query()?;
    let id = find(&web, &part).await?;
    let after = sse::last_event_id(&asked.headers).unwrap_or(after);
    if sse::has_ended(&web, id, after).await {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let open = sse::open(&web, &asked.viewer.access)?;
    let rows = Rows {
        page: page_up_to(&web, id, after).await,
        stream: SessionStream::new(web.clone(), id, after),
        web: web.clone(),
        is_live: None,
        next_look: Instant::now(),
        is_over: false,
    };
    let frames = stream::unfold(rows, |mut rows| async {
        let frame = rows.next().await?;
        Some((frame, rows))
    });
    Ok(sse::response(open, web.hub.stop(), frames))
}

/// The page as its reader has it. Without the database its later rows are complete except for what earlier ones add.
async fn page_up_to<B: Backend>(web: &Shared<B>, id: SessionId, after: u32) -> LivePage {
    let mut page = LivePage::new(id);
    let mut last = 0;
    while last < after {
        let limit = EVENTS_PAGE.min(after - last);
        let read = ExcerptPage {
            session: id,
            after: last,
            limit,
            characters: MANY,
        };
        let excerpts = web.backend.excerpts(read).await.unwrap_or_default();
        let Some(newest) = excerpts.last() else { break };
        last = newest.event.session_seq;
        for Excerpt { event, is_cut } in excerpts {
            page.pass(&TimelineEvent {
                truncated: is_cut,
                ..event
            });
        }
    }
    page
}

/// The rows of a page, and the state of the broker.
struct Rows<B: Backend> {
    stream: SessionStream<B>,
    page: LivePage,
    web: Shared<B>,
    /// The state of the broker connection that the reader was last sent.
    is_live: Option<bool>,
    next_look: Instant,
    /// The reader has the last frame.
    is_over: bool,
}

impl<B: Backend> Rows<B> {
    /// The next frame; `None` ends the stream.
    async fn next(&mut self) -> Option<Event> {
        while !self.is_over {
            let next = tokio::select! {
                biased;
                () = sleep_until(self.next_look) => {
                    self.next_look = Instant::now() + NET_INTERVAL;
                    match self.net() {
                        Some(net) => return Some(net),
                        None => continue,
                    }
                }
                next = self.stream.next() => next,
            };
            let item = match next {
                Next::Item(item) => item,
                Next::End { last_seq } => {
                    self.is_over = true;
                    return Some(sse::end(last_seq));
                }
                Next::Cut => return None,
            };
            match &item.update {
                Update::Event(_) => return self.rows(item).await,
                // An outdated delta changes nothing.
                Update::Delta(delta) => {
                    if let Some(row) = self.page.delta(delta) {
                        return Some(frame("delta", None, &row.into_string()));
                    }
                }
            }
        }
        None
    }

    /// Whether updates reach this server, when the reader does not know it yet.
    fn net(&mut self) -> Option<Event> {
        let is_live = self.web.backend.is_live();
        let is_known = self.is_live.replace(is_live) == Some(is_live);
        let word = if is_live { "live" } else { "not live" };
        (!is_known).then(|| frame("net", None, word))
    }

    /// The rows that an event changes.
    async fn rows(&mut self, item: Arc<Item>) -> Option<Event> {
        let empty = LivePage::new(self.page.session());
        let mut page = std::mem::replace(&mut self.page, empty);
        let made = self.web.renderer.render(move || {
            let event = item.event()?;
            let rows = page.event(event).into_string();
            Some((page, frame("rows", Some(event.session_seq), &rows)))
        });
        let (page, frame) = made.await.ok().flatten()?;
        self.page = page;
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use crate::testing::backend::FakeBackend;
    use crate::testing::data::story;

    #[tokio::test(start_paused = true)]
    async fn a_page_learns_at_first_and_at_each_change_whether_the_broker_is_connected() {
        let backend = FakeBackend::with_events(1);
        backend.lose_broker();
        let path = format!("/sessions/{}/live?after=1", story()[0].session_id);
        let mut body = backend.answer(&path, &[]).await.into_body();
        let mut next = async || loop {
            let frame = body.frame().await.expect("the stream goes on").unwrap();
            let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
            if !text.starts_with(':') {
                return text;
            }
        };
        assert_eq!(next().await, "retry: 1000\n\n");
        assert_eq!(next().await, "event: net\ndata: not live\n\n");
        backend.connect_broker();
        assert_eq!(next().await, "event: net\ndata: live\n\n");
        backend.emit(&story()[1]);
        assert!(
            next().await.starts_with("id: 2\nevent: rows\n"),
            "the state is sent once"
        );
        backend.lose_broker();
        assert_eq!(next().await, "event: net\ndata: not live\n\n");
    }
}
