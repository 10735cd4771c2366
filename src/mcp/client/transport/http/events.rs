//! Server-sent events of bounded size.

use std::error::Error;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, Stream, StreamExt as _};
use reqwest::Response;
use rmcp::model::RequestId;
use sse_stream::{Error as SseError, Sse, SseStream};

use super::HttpFault;
use super::body::too_large;

/// Why a stream of events breaks.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("an event is larger than {0} bytes")]
    TooLarge(usize),
    #[error(transparent)]
    Lost(HttpFault),
}

/// The events of a response. An event of more than `max_bytes` ends the stream; if the stream answers a request, an
/// error of this request comes first.
pub(super) fn events(
    response: Response,
    request: Option<RequestId>,
    max_bytes: usize,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let bytes = stream::unfold(Some(response), |response| async {
        let mut response = response?;
        match response.chunk().await {
            Ok(Some(chunk)) => Some((Ok(chunk), Some(response))),
            Ok(None) => None,
            Err(error) => Some((Err(Broken::Lost(HttpFault::of(error))), None)),
        }
    });
    let answer = request.map(|id| too_large(Some(id), max_bytes));
    let answer = answer.and_then(|message| serde_json::to_string(&message).ok());
    let events = SseStream::from_bytes_stream(bounded(bytes, max_bytes));
    let replaced = events.map(move |event| match (event, &answer) {
        (Err(SseError::Body(error)), Some(answer)) if is_too_large(&*error) => Ok(Sse::default().data(answer)),
        (event, _) => event.map(without_other_data),
    });
    replaced.boxed()
}

/// A proxy or a server may keep a stream alive with events of its own: `event: ping` with a date. What is not even the
/// beginning of a message becomes an event without data; its id and its delay still count.
fn without_other_data(event: Sse) -> Sse {
    let is_other = event.data.as_ref().is_some_and(|data| !data.trim_start().starts_with(['{', '[']));
    if is_other { Sse { event: None, data: None, ..event } } else { event }
}

type Piece = Result<Bytes, Broken>;

fn is_too_large(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(Broken::TooLarge(_)))
}

/// Passes the pieces on until an event has more than `max_bytes`.
fn bounded(pieces: impl Stream<Item = Piece>, max_bytes: usize) -> impl Stream<Item = Piece> {
    let size = EventSize::default();
    pieces.scan((size, false), move |(size, ended), piece| {
        let next = match piece {
            _ if *ended => None,
            Ok(piece) if size.largest_after(&piece) > max_bytes => {
                *ended = true;
                Some(Err(Broken::TooLarge(max_bytes)))
            }
            other => Some(other),
        };
        std::future::ready(next)
    })
}

/// The bytes of the event that is being read.
#[derive(Debug, Default)]
struct EventSize {
    bytes: usize,
    /// The last byte but carriage returns was the end of a line.
    line_ended: bool,
}

impl EventSize {
    /// The size of the largest event that this piece continues or contains.
    fn largest_after(&mut self, piece: &[u8]) -> usize {
        let mut largest = self.bytes;
        for byte in piece {
            self.bytes += 1;
            largest = largest.max(self.bytes);
            match byte {
                b'\n' if self.line_ended => self.bytes = 0,
                b'\n' => self.line_ended = true,
                b'\r' => {}
                _ => self.line_ended = false,
            }
        }
        largest
    }
}
