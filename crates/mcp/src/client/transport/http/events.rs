//! Server-sent events of bounded size.

use std::borrow::Cow;

use futures_util::stream::{self, BoxStream, StreamExt as _};
use reqwest::Response;
use rmcp::model::RequestId;
use sse_stream::{Error as SseError, Sse};

use super::HttpFault;
use super::body::too_large;
use crate::client::transport::message;
use crate::client::transport::open::OpenRequests;
use tarsy_http::outgoing::events::{Event, Piece, Reader, TooLarge};

/// A response that is read.
struct EventReader {
    /// `None` after its end.
    response: Option<Response>,
    reader: Reader,
    request: Option<RequestId>,
    open: OpenRequests,
}

/// The events of a response. An event of more than `max_bytes` ends the stream; if the stream answers a request, an
/// error of this request comes first.
pub(super) fn events(
    response: Response,
    request: Option<RequestId>,
    max_bytes: usize,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let reading = EventReader {
        response: Some(response),
        reader: Reader::new(max_bytes),
        open: OpenRequests::only(request.as_ref()),
        request,
    };
    stream::unfold(reading, |mut reading| async {
        let event = reading.next().await?;
        Some((event, reading))
    })
    .boxed()
}

impl EventReader {
    async fn next(&mut self) -> Option<Result<Sse, SseError>> {
        loop {
            while let Some(piece) = self.reader.next_piece() {
                match piece {
                    Piece::Event(event) => return Some(Ok(with_message(event, &self.open))),
                    Piece::Unframed(_) => {}
                }
            }
            match self.response.as_mut()?.chunk().await {
                Ok(Some(chunk)) => {
                    if let Err(error) = self.reader.push(&chunk) {
                        self.response = None;
                        return Some(self.instead_of_answer(error));
                    }
                }
                // The last event of a stream that ended as a whole may lack its empty line.
                Ok(None) => {
                    self.reader.end();
                    self.response = None;
                }
                Err(error) => {
                    self.response = None;
                    return Some(Err(SseError::Body(Box::new(HttpFault::from_error(error)))));
                }
            }
        }
    }

    fn instead_of_answer(&mut self, error: TooLarge) -> Result<Sse, SseError> {
        let TooLarge(max_bytes) = error;
        let request = self.request.take();
        let message = request.map(|id| too_large(Some(id), max_bytes));
        let message = message.and_then(|message| serde_json::to_string(&message).ok());
        message
            .map(|message| Sse::default().data(message))
            .ok_or_else(|| SseError::Body(Box::new(error)))
    }
}

/// The event with its message in the form of JSON-RPC, under any name. A proxy or a server may keep a stream alive with
/// other events: `event: ping` with a date. Data without any message are left out; the id and the delay of the event
/// still count.
fn with_message(event: Event, open: &OpenRequests) -> Sse {
    let data = event.data.and_then(|data| {
        match message::parse(data.as_bytes(), open)? {
            Cow::Borrowed(_) => {}
            Cow::Owned(message) => return Some(String::from_utf8_lossy(&message).into_owned()),
        }
        Some(data)
    });
    Sse {
        event: None,
        data,
        id: event.id,
        retry: event.retry_ms,
    }
}
