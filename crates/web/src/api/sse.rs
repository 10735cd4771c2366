//! Streams of server-sent events. A reader that comes back sends the number of its last event and misses none.

use std::convert::Infallible;
use std::future::ready;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::{Stream, StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use super::Answer;
use crate::fault::Fault;
use crate::frames::frame;
use crate::hub::OpenStream;
use crate::ports::Backend;
use crate::rights::Access;
use crate::state::Shared;
use crate::stream::{Next, SessionStream};
use tarsy_core::ids::SessionId;

/// The time that a browser waits before it connects again.
const RETRY: Duration = Duration::from_secs(1);
/// The interval of comments, which keep proxies from closing a silent connection.
const COMMENT_INTERVAL: Duration = Duration::from_secs(15);
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
    let stop = web.hub.stop();
    let stream = SessionStream::new(web, id, after);
    let frames = stream::unfold(Some(stream), |stream| async {
        let mut stream = stream?;
        match stream.next().await {
            Next::Item(item) => Some((item.frame(), Some(stream))),
            Next::End { last_seq } => Some((end(last_seq), None)),
            Next::Cut => None,
        }
    });
    Ok(response(open, stop, frames))
}

/// The last frame of a session: nothing follows.
pub(crate) fn end(last_seq: u32) -> Event {
    frame("end", None, &format!("{{\"last_seq\":{last_seq}}}"))
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
) -> Answer {
    let open = open(&web, &access)?;
    let frames = stream::unfold(web.hub.all().await?, |mut items| async {
        let item = items.recv().await.ok()?;
        Some((item.without_id(), items))
    });
    Ok(response(open, web.hub.stop(), frames))
}

/// Permission for one more stream of this user.
///
/// # Errors
/// When the user has as many open as permitted.
pub(crate) fn open<B: Backend>(web: &Shared<B>, access: &Access) -> Result<OpenStream, Fault> {
    let open = web.hub.open_stream(&access.counted_as);
    open.ok_or_else(|| Fault::TooMany("this user has as many streams open as permitted".to_owned()))
}

/// The response of a stream, which ends with the server.
pub(crate) fn response(
    open: OpenStream,
    stop: CancellationToken,
    frames: impl Stream<Item = Event> + Send + 'static,
) -> Response {
    let retry = stream::once(ready(Event::default().retry(RETRY)));
    let frames = retry
        .chain(frames)
        .take_until(stop.cancelled_owned())
        .map(move |frame| {
            // The stream counts as long as the response has it.
            let _ = &open;
            Ok::<_, Infallible>(frame)
        });
    let comments = KeepAlive::new().interval(COMMENT_INTERVAL).text("live");
    let mut response = Sse::new(frames).keep_alive(comments).into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(ACCEL, HeaderValue::from_static("no"));
    response
}
