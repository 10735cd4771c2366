//! Streams of server-sent events. A reader that comes back sends the number of its last event and misses none.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{Answer, answered};
use crate::fault::Fault;
use crate::frames::{COMMENT, Item, RETRY, frame};
use crate::hub::{Items, OpenStream};
use crate::pages::handlers::events::{EVENTS_PAGE, MANY};
use crate::pages::live::LivePage;
use crate::ports::{Backend, Update};
use crate::stream::{Next, SessionStream};
use crate::{Access, Shared};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::TimelineEvent;
use tarsy_reports::{Excerpt, ExcerptPage};

const COMMENT_INTERVAL: Duration = Duration::from_secs(15);
/// The time between two looks at the connection to the broker.
const NET_INTERVAL: Duration = Duration::from_millis(500);
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The header that makes nginx send each frame at once.
const ACCEL: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The number of the last event that the reader has, after a reconnect.
pub(crate) fn last_event_id(headers: &HeaderMap) -> Option<u32> {
    headers
        .get(LAST_EVENT_ID)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// The stream of a session after event number `after`; 204 when it has ended there, which ends an `EventSource`.
pub(super) async fn session<B: Backend>(
    web: Shared<B>,
    access: &Access,
    id: SessionId,
    after: u32,
) -> Answer {
    if has_ended(&web, id, after).await {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let open = open(&web, access)?;
    let source = Source::Session(Box::new(SessionStream::new(web.clone(), id, after)));
    Ok(response(Reader::new(source, open, web.hub.stop())))
}

/// The rows of a session's page as they change after event number `after`, as markup.
pub(crate) async fn rows<B: Backend>(
    web: Shared<B>,
    access: &Access,
    id: SessionId,
    after: u32,
) -> Answer {
    if has_ended(&web, id, after).await {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let open = open(&web, access)?;
    let page = page_up_to(&web, id, after).await;
    let stream = SessionStream::new(web.clone(), id, after);
    let rows = Rows {
        stream,
        page,
        web: web.clone(),
        is_live: None,
        next_look: Instant::now(),
    };
    Ok(response(Reader::new(
        Source::Rows(Box::new(rows)),
        open,
        web.hub.stop(),
    )))
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

/// Whether the event `after` is the end of its session. Without the database the stream itself finds out.
pub(crate) async fn has_ended<B: Backend>(web: &Shared<B>, id: SessionId, after: u32) -> bool {
    let Some(before) = after.checked_sub(1) else {
        return false;
    };
    let last = web.backend.events(id, before, 1).await.unwrap_or_default();
    last.first()
        .is_some_and(|event| event.session_seq == after && event.event_type.is_end())
}

/// The events of every session from now on.
pub(super) async fn all<B: Backend>(
    State(web): State<Shared<B>>,
    Extension(access): Extension<Access>,
) -> Response {
    answered(
        async {
            let open = open(&web, &access)?;
            let source = Source::<B>::All(web.hub.all().await?);
            Ok(response(Reader::new(source, open, web.hub.stop())))
        }
        .await,
    )
}

fn open<B: Backend>(web: &Shared<B>, access: &Access) -> Result<OpenStream, Fault> {
    let too_many = || Fault::TooMany("this user has as many streams open as permitted".to_owned());
    web.hub.open_stream(&access.counted_as).ok_or_else(too_many)
}

/// The source of a reader's frames.
enum Source<B: Backend> {
    Session(Box<SessionStream<B>>),
    All(Items),
    Rows(Box<Rows<B>>),
}

/// The stream of a page.
struct Rows<B: Backend> {
    stream: SessionStream<B>,
    page: LivePage,
    web: Shared<B>,
    /// The state of the broker connection that the reader was last sent.
    is_live: Option<bool>,
    next_look: Instant,
}

impl<B: Backend> Rows<B> {
    async fn next(&mut self) -> Option<Frame> {
        loop {
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
                Next::End { last_seq } => return Some(end(last_seq)),
                Next::Cut => return None,
            };
            match &item.update {
                Update::Event(_) => return Some(Frame::Rows(item)),
                // An outdated delta changes nothing.
                Update::Delta(delta) => {
                    if let Some(row) = self.page.delta(delta) {
                        return Some(Frame::More(frame("delta", None, &row.into_string())));
                    }
                }
            }
        }
    }
}

impl<B: Backend> Rows<B> {
    /// Whether updates reach this server, when the reader does not know it yet.
    fn net(&mut self) -> Option<Frame> {
        let is_live = self.web.backend.is_live();
        let is_known = self.is_live.replace(is_live) == Some(is_live);
        let word = if is_live { "live" } else { "not live" };
        (!is_known).then(|| Frame::More(frame("net", None, word)))
    }
}

/// One reader of a stream.
struct Reader<B: Backend> {
    source: Source<B>,
    /// Frames that are sent before the next update.
    first: VecDeque<Bytes>,
    next_comment: Instant,
    is_over: bool,
    stop: CancellationToken,
    _open: OpenStream,
}

impl<B: Backend> Reader<B> {
    fn new(source: Source<B>, open: OpenStream, stop: CancellationToken) -> Self {
        let first = VecDeque::from([Bytes::from_static(RETRY.as_bytes())]);
        Self {
            source,
            first,
            next_comment: Instant::now() + COMMENT_INTERVAL,
            is_over: false,
            stop,
            _open: open,
        }
    }

    /// The next frame; `None` ends the response.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(frame) = self.first.pop_front() {
            return Some(frame);
        }
        if self.is_over {
            return None;
        }
        let frame = tokio::select! {
            frame = self.source.next() => frame,
            () = self.stop.cancelled() => None,
            () = sleep_until(self.next_comment) => Some(Frame::More(Bytes::from_static(COMMENT.as_bytes()))),
        };
        self.next_comment = Instant::now() + COMMENT_INTERVAL;
        match frame? {
            Frame::More(frame) => Some(frame),
            Frame::Last(frame) => {
                self.is_over = true;
                Some(frame)
            }
            Frame::Rows(item) => self.source.rows(item).await,
        }
    }
}

enum Frame {
    More(Bytes),
    Last(Bytes),
    /// The rows of this event are not made yet.
    Rows(Arc<Item>),
}

impl<B: Backend> Source<B> {
    /// The rows that an event changes. Not cancel safe: a reader that loses them needs a new stream.
    async fn rows(&mut self, item: Arc<Item>) -> Option<Bytes> {
        let Self::Rows(rows) = self else { return None };
        let empty = LivePage::new(rows.page.session());
        let mut page = std::mem::replace(&mut rows.page, empty);
        let made = rows.web.renderer.render(move || {
            let event = item.event()?;
            let frame = frame(
                "rows",
                Some(event.session_seq),
                &page.event(event).into_string(),
            );
            Some((page, frame))
        });
        let (page, frame) = made.await.ok().flatten()?;
        rows.page = page;
        Some(frame)
    }

    async fn next(&mut self) -> Option<Frame> {
        match self {
            Self::Session(session) => match session.next().await {
                Next::Item(item) => Some(Frame::More(item.frame())),
                Next::End { last_seq } => Some(end(last_seq)),
                Next::Cut => None,
            },
            Self::Rows(rows) => rows.next().await,
            Self::All(items) => match items.recv().await {
                Ok(item) => Some(Frame::More(item.without_id())),
                Err(_) => None,
            },
        }
    }
}

/// The last frame: nothing follows.
fn end(last_seq: u32) -> Frame {
    Frame::Last(frame("end", None, &format!("{{\"last_seq\":{last_seq}}}")))
}

fn response<B: Backend>(reader: Reader<B>) -> Response {
    let frames = stream::unfold(reader, |mut reader| async move {
        let frame = reader.next().await?;
        Some((Ok::<_, Infallible>(frame), reader))
    });
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (ACCEL, HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(frames)).into_response()
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
