//! Server-sent events of bounded size.

use std::borrow::Cow;
use std::error::Error;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, Stream, StreamExt as _};
use reqwest::Response;
use rmcp::model::RequestId;
use sse_stream::{Error as SseError, Sse, SseStream};

use super::HttpFault;
use super::body::too_large;
use crate::client::transport::message;
use crate::client::transport::open::OpenRequests;

/// The reason why a stream of events breaks.
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
            // The last event of a stream that ended as a whole may lack its empty line.
            Ok(None) => Some((Ok(Bytes::from_static(b"\n\n")), None)),
            Err(error) => Some((Err(Broken::Lost(HttpFault::of(error))), None)),
        }
    });
    let open = OpenRequests::only(request.as_ref());
    let answer = request.map(|id| too_large(Some(id), max_bytes));
    let answer = answer.and_then(|message| serde_json::to_string(&message).ok());
    let events = SseStream::from_bytes_stream(as_utf8(bounded(bytes, max_bytes)));
    let replaced = events.map(move |event| match (event, &answer) {
        (Err(SseError::Body(error)), Some(answer)) if is_too_large(&*error) => {
            Ok(Sse::default().data(answer))
        }
        (event, _) => event.map(|event| with_message(event, &open)),
    });
    replaced.boxed()
}

/// The event with its message as JSON-RPC has it. A proxy or a server may keep a stream alive with events of its own:
/// `event: ping` with a date. What is not even the beginning of a message becomes an event without data; its id and its
/// delay still count.
fn with_message(event: Sse, open: &OpenRequests) -> Sse {
    let Some(data) = &event.data else {
        return event;
    };
    match message::read(data.as_bytes(), open) {
        // A message is one under any name of its event.
        Some(Cow::Borrowed(_)) => Sse {
            event: None,
            ..event
        },
        Some(Cow::Owned(message)) => {
            let data = String::from_utf8_lossy(&message).into_owned();
            Sse {
                event: None,
                data: Some(data),
                ..event
            }
        }
        None => Sse {
            event: None,
            data: None,
            ..event
        },
    }
}

/// The pieces with U+FFFD for what is no UTF-8. A character may begin in one piece and end in the next one.
fn as_utf8(pieces: impl Stream<Item = Piece>) -> impl Stream<Item = Piece> {
    pieces.scan(Vec::new(), |begun, piece| {
        let piece = piece.map(|piece| {
            begun.extend_from_slice(&piece);
            let end = match std::str::from_utf8(begun) {
                // Only the beginning of a character is left.
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                Ok(_) => begun.len(),
                Err(_) => begun.len() - unfinished(begun),
            };
            let rest = begun.split_off(end);
            let whole = std::mem::replace(begun, rest);
            match String::from_utf8(whole) {
                Ok(text) => Bytes::from(text),
                Err(error) => Bytes::from(String::from_utf8_lossy(error.as_bytes()).into_owned()),
            }
        });
        std::future::ready(Some(piece))
    })
}

/// The bytes at the end that begin a character and do not end it.
fn unfinished(bytes: &[u8]) -> usize {
    let begins = |length: &usize| match bytes
        .len()
        .checked_sub(*length)
        .and_then(|at| bytes.get(at))
    {
        Some(0xc2..=0xdf) => *length < 2,
        Some(0xe0..=0xef) => *length < 3,
        Some(0xf0..=0xf4) => *length < 4,
        Some(_) | None => false,
    };
    (1..=3).find(begins).unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_character_in_two_pieces_is_whole_and_another_encoding_is_replaced() {
        let text = "data: é→😀\n\n";
        for size in 1..=text.len() {
            let pieces: Vec<Piece> = text
                .as_bytes()
                .chunks(size)
                .map(|piece| Ok(Bytes::copy_from_slice(piece)))
                .collect();
            let read: Vec<Bytes> = as_utf8(stream::iter(pieces))
                .map(Result::unwrap)
                .collect()
                .await;
            assert_eq!(read.concat(), text.as_bytes(), "in pieces of {size}");
        }
        let latin = stream::iter([
            Ok(Bytes::from_static(b"caf\xe9 \xc3")),
            Ok(Bytes::from_static(b"\xa9")),
        ]);
        let read: Vec<Bytes> = as_utf8(latin).map(Result::unwrap).collect().await;
        assert_eq!(read.concat(), "caf\u{fffd} é".as_bytes());
    }
}
