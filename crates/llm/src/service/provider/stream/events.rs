//! Splits the bytes of a response into events.
//!
//! Lines that are none of server-sent events are collected, because providers also send errors as plain JSON in the
//! middle of a stream, and gateways a whole answer. The last event counts without the blank line after it.

use crate::service::provider::error::{ErrorCode, ProviderError};
use tarsy_http::outgoing::events::{Piece, Reader};

/// The size of one event at most.
const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;
/// Further text without a frame is dropped.
const MAX_UNFRAMED_BYTES: usize = 8 * 1024 * 1024;
/// A longer text without a frame is read at the end of the response only.
const MAX_EARLY_BYTES: usize = 64 * 1024;

/// The state between two reads.
#[derive(Debug)]
pub(crate) struct Events {
    reader: Reader,
    unframed: String,
    has_ended: bool,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            reader: Reader::new(MAX_EVENT_BYTES),
            unframed: String::new(),
            has_ended: false,
        }
    }
}

impl Events {
    /// Adds bytes of the response.
    ///
    /// # Errors
    /// When an event is too large.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), ProviderError> {
        let too_large = "an event of the stream has more than 32 MiB";
        self.reader
            .push(bytes)
            .map_err(|_error| ProviderError::new(ErrorCode::Provider, too_large))
    }

    /// Adds the end of the response.
    pub(crate) fn end(&mut self) {
        self.reader.end();
        self.has_ended = true;
    }

    /// The next whole event: its data, or JSON that the stream has without a frame.
    pub(crate) fn next(&mut self) -> Option<String> {
        while let Some(piece) = self.reader.next_piece() {
            let event = match piece {
                Piece::Event(event) => event.data,
                Piece::Unframed(line) => self.unframed(&line),
            };
            if event.is_some() {
                return event;
            }
        }
        if self.has_ended {
            self.take_unframed()
        } else {
            None
        }
    }

    /// Text without a frame, if it is a whole JSON value.
    fn take_unframed(&mut self) -> Option<String> {
        let text = std::mem::take(&mut self.unframed);
        serde_json::from_str::<serde::de::IgnoredAny>(&text)
            .is_ok()
            .then_some(text)
    }

    /// Adds a line without a frame. Returns the collected text as soon as it is a whole JSON value.
    fn unframed(&mut self, line: &str) -> Option<String> {
        let is_start = self.unframed.is_empty() && !line.trim_start().starts_with(['{', '[']);
        if is_start || self.unframed.len() + line.len() > MAX_UNFRAMED_BYTES {
            return None;
        }
        self.unframed.push_str(line);
        self.unframed.push('\n');
        let is_end = self.unframed.len() <= MAX_EARLY_BYTES
            && self.unframed.trim_end().ends_with(['}', ']']);
        if is_end && serde_json::from_str::<serde::de::IgnoredAny>(&self.unframed).is_ok() {
            return Some(std::mem::take(&mut self.unframed));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a response that is read in pieces of this many bytes.
    fn events(response: &[u8], size: usize) -> Vec<String> {
        let mut events = Events::default();
        let mut found = Vec::new();
        for piece in response.chunks(size) {
            events.push(piece).unwrap();
            while let Some(event) = events.next() {
                found.push(event);
            }
        }
        events.end();
        while let Some(event) = events.next() {
            found.push(event);
        }
        found
    }

    #[test]
    fn events_do_not_depend_on_the_size_of_reads() {
        let unframed = "{\n\"error\": {\n\"code\": 500, \"message\": \"a: b\"}\n}\n";
        for (response, expected) in [
            ("data: a\n\ndata: b\n\n", vec!["a", "b"]),
            (
                "data: a\r\n\r\ndata: é→漢🚀\u{2028}x\r\n\r\n",
                vec!["a", "é→漢🚀\u{2028}x"],
            ),
            ("data:a\rdata:b\r\r: comment\r\rdata\r\r", vec!["a\nb", ""]),
            (
                ": ping\n\nevent: x\nid: 1\nretry: 3\ndata: a\n\n\n\n",
                vec!["a"],
            ),
            ("\u{feff}data: a", vec!["a"]),
            ("data: a\n", vec!["a"]),
            ("hello\n\ndata: a\n\n", vec!["a"]),
            ("", vec![]),
        ] {
            for size in [1, 3, 4_096] {
                assert_eq!(
                    events(response.as_bytes(), size),
                    expected,
                    "{response:?} {size}"
                );
            }
        }
        for size in [1, 3, 4_096] {
            let response = format!("data: a\n\n{unframed}");
            let found = events(response.as_bytes(), size);
            assert_eq!(found.len(), 2, "{found:?}");
            let error: serde_json::Value = serde_json::from_str(&found[1]).unwrap();
            assert_eq!(error["error"]["message"], "a: b");
            assert_eq!(events(b"[{\n  \"error\": {}\n}\n]\n", size).len(), 1);
        }
    }

    #[test]
    fn a_byte_that_is_no_text_is_replaced_and_what_has_no_end_is_refused() {
        assert_eq!(
            events(b"data: caf\xe9 a\n\ndata: b\n\n", 1),
            ["caf\u{FFFD} a", "b"]
        );
        let mut events = Events::default();
        let piece = vec![b'x'; MAX_EVENT_BYTES / 2];
        events.push(&piece).unwrap();
        events.push(&piece).unwrap();
        assert!(events.push(b"x").is_err());
    }
}
