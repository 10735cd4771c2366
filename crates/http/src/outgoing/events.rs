//! Server-sent events: splits the bytes of a response into events of bounded size.
//!
//! Fields that the specification ignores are not errors, and a byte that is not UTF-8 becomes U+FFFD: neither makes an
//! answer fail. A line that is not a field is passed on, because some servers send JSON without a frame.

use std::borrow::Cow;

use bytes::{Buf as _, BytesMut};
use sseer::parser::{RawEventLineOwned, parse_line_from_buffer};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The fields of one event, without its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub data: Option<String>,
    pub id: Option<String>,
    /// The delay before a stream that broke is opened again.
    pub retry_ms: Option<u64>,
}

/// A piece of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A whole event.
    Event(Event),
    /// A line that belongs to no event.
    Unframed(String),
}

/// An event is larger than this many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {0} bytes")]
pub struct TooLarge(pub usize);

/// The state between two reads of one response.
#[derive(Debug)]
pub struct Reader {
    max_bytes: usize,
    buffer: BytesMut,
    /// The part of the buffer that has no end of a line.
    scanned: usize,
    event: Option<Event>,
    has_begun: bool,
}

impl Reader {
    /// Reads events of at most `max_bytes`.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            buffer: BytesMut::new(),
            scanned: 0,
            event: None,
            has_begun: false,
        }
    }

    /// Adds bytes of the response, after [`Self::next_piece`] has returned `None`.
    ///
    /// # Errors
    /// When an event is too large.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        let data = self.event.as_ref().and_then(|event| event.data.as_ref());
        let held = self.buffer.len() + data.map_or(0, String::len);
        if held + bytes.len() > self.max_bytes {
            return Err(TooLarge(self.max_bytes));
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Adds the end of the response: the last event counts without the blank line after it.
    pub fn end(&mut self) {
        self.buffer.extend_from_slice(b"\n\n");
    }

    /// The next whole piece; `None` until more bytes are added.
    pub fn next_piece(&mut self) -> Option<Piece> {
        if !self.has_begun && !self.skip_byte_order_mark() {
            return None;
        }
        while let Some(line) = parse_line_from_buffer(&mut self.buffer, &mut self.scanned) {
            let piece = match line {
                RawEventLineOwned::Comment => None,
                RawEventLineOwned::Empty => self.event.take().map(Piece::Event),
                RawEventLineOwned::Field {
                    field_name,
                    field_value,
                } => self.field(&field_name, field_value.as_deref()),
            };
            if piece.is_some() {
                return piece;
            }
        }
        None
    }

    /// Returns whether the beginning is complete.
    fn skip_byte_order_mark(&mut self) -> bool {
        if self.buffer.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(&self.buffer) {
            return false;
        }
        if self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.buffer.advance(BYTE_ORDER_MARK.len());
        }
        self.has_begun = true;
        true
    }

    /// Adds a field to the event. A line with another name is not a field.
    fn field(&mut self, name: &[u8], value: Option<&[u8]>) -> Option<Piece> {
        if !matches!(name, b"data" | b"event" | b"id" | b"retry") {
            let mut line = text(name).into_owned();
            if let Some(value) = value {
                // The parser removed the colon and a blank.
                line.push_str(": ");
                line.push_str(&text(value));
            }
            return Some(Piece::Unframed(line));
        }
        let value = text(value.unwrap_or_default());
        let event = self.event.get_or_insert_default();
        match (name, &mut event.data) {
            (b"data", Some(data)) => {
                data.push('\n');
                data.push_str(&value);
            }
            (b"data", data) => *data = Some(value.into_owned()),
            (b"id", _) if !value.contains('\0') => event.id = Some(value.into_owned()),
            (b"retry", _) => event.retry_ms = value.trim().parse().ok().or(event.retry_ms),
            _ => {}
        }
        None
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of a response that is read in parts of this many bytes.
    fn pieces(response: &[u8], size: usize) -> Vec<Piece> {
        let mut reader = Reader::new(1_024);
        let mut found = Vec::new();
        for part in response.chunks(size) {
            reader.push(part).unwrap();
            found.extend(std::iter::from_fn(|| reader.next_piece()));
        }
        reader.end();
        found.extend(std::iter::from_fn(|| reader.next_piece()));
        found
    }

    fn data(text: &str) -> Piece {
        Piece::Event(Event {
            data: Some(text.to_owned()),
            ..Event::default()
        })
    }

    #[test]
    fn a_character_in_two_pieces_is_whole_and_another_encoding_is_replaced() {
        let text = "data: é→😀\n\n";
        for size in 1..=text.len() {
            let read = pieces(text.as_bytes(), size);
            assert_eq!(read, [data("é→😀")], "in pieces of {size}");
        }
        let latin = b"data: caf\xe9 \xc3\xa9";
        assert_eq!(pieces(latin, 1), [data("caf\u{fffd} é")]);
    }

    #[test]
    fn an_event_has_its_last_id_and_delay_and_ignores_what_is_invalid() {
        let event = Event {
            data: Some("a\n".to_owned()),
            id: Some("2".to_owned()),
            retry_ms: Some(3),
        };
        let response =
            b"id: 1\nid: 2\r\nid: \0\nretry: 3\nretry: soon\rdata:a\ndata\nevent: x\n\n{\"b\":1}\n: c\n\n";
        let expected = [
            Piece::Event(event),
            Piece::Unframed("{\"b\": 1}".to_owned()),
        ];
        for size in [1, 2, 3, 1_024] {
            assert_eq!(pieces(response, size), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_that_has_no_end_is_refused_and_many_small_ones_are_not() {
        let mut reader = Reader::new(16);
        for _ in 0..100 {
            reader.push(b"data: 12345\n\n").unwrap();
            assert_eq!(reader.next_piece(), Some(data("12345")));
        }
        reader.push(b"data: 12345\n").unwrap();
        assert_eq!(reader.next_piece(), None);
        assert_eq!(reader.push(b"data: 123456"), Err(TooLarge(16)));
    }
}
