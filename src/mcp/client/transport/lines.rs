//! Reads lines of bounded length. An answer that is too long becomes an error of its call, so that the call fails at
//! once. If the answer was dropped, the call would wait for its timeout and its outcome would be unknown.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncBufRead, AsyncRead, BufReader, ReadBuf};

/// The longest message that is read.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// A larger buffer is freed after its line.
const MAX_KEPT_BYTES: usize = 64 * 1024;
/// The ids of our requests are shorter.
const MAX_ID_BYTES: usize = 64;

/// A reader that returns the lines of `R`, each of at most 16 MiB.
#[derive(Debug)]
pub(super) struct BoundedLines<R> {
    reader: BufReader<R>,
    max_bytes: usize,
    /// The line that is being read.
    line: Vec<u8>,
    /// The finished line, returned from `at` on.
    finished: Vec<u8>,
    at: usize,
    /// Set while the current line is too long.
    skipped: Option<SkippedMessage>,
}

impl<R: AsyncRead> BoundedLines<R> {
    pub(super) fn new(reader: R) -> Self {
        let reader = BufReader::new(reader);
        Self { reader, max_bytes: MAX_LINE_BYTES, line: Vec::new(), finished: Vec::new(), at: 0, skipped: None }
    }

    /// Adds a piece of the current line.
    fn push(&mut self, piece: &[u8]) {
        if self.skipped.is_none() && self.line.len().saturating_add(piece.len()) > self.max_bytes {
            let mut skipped = SkippedMessage::default();
            skipped.read(&self.line);
            self.line = Vec::new();
            self.skipped = Some(skipped);
        }
        match &mut self.skipped {
            Some(skipped) => skipped.read(piece),
            None => self.line.extend_from_slice(piece),
        }
    }

    fn finish_line(&mut self) {
        self.at = 0;
        self.finished = match self.skipped.take() {
            Some(skipped) => skipped.error_response(self.max_bytes),
            None => std::mem::take(&mut self.line),
        };
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let left = this.finished.get(this.at..).unwrap_or_default();
            if !left.is_empty() {
                let count = left.len().min(buf.remaining());
                buf.put_slice(left.get(..count).unwrap_or_default());
                this.at += count;
                return Poll::Ready(Ok(()));
            }
            if this.finished.capacity() > MAX_KEPT_BYTES {
                this.finished = Vec::new();
            }
            let read = ready!(Pin::new(&mut this.reader).poll_fill_buf(cx))?;
            if read.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let newline = read.iter().position(|byte| *byte == b'\n');
            let count = newline.map_or(read.len(), |at| at + 1);
            let piece = read.get(..count).unwrap_or_default().to_vec();
            Pin::new(&mut this.reader).consume(count);
            this.push(&piece);
            if newline.is_some() {
                this.finish_line();
            }
        }
    }
}

/// Finds the id of a message that is too long to be kept. The id may come before or after the long part.
#[derive(Debug, Default)]
struct SkippedMessage {
    bytes: usize,
    depth: u32,
    /// The string that is being read.
    string: Option<Word>,
    escaped: bool,
    /// The key of the outer object whose value is being read.
    key: Option<Vec<u8>>,
    /// The number that is being read as a value of the outer object.
    number: Word,
    id: Option<Vec<u8>>,
    /// The message is a request of the server, so its id is not the id of a call.
    is_request: bool,
}

/// The start of a string or number: one byte more than an id may have, so that a longer one is recognised.
#[derive(Debug, Default)]
struct Word(Vec<u8>);

impl Word {
    fn push(&mut self, byte: u8) {
        if self.0.len() <= MAX_ID_BYTES {
            self.0.push(byte);
        }
    }
}

impl SkippedMessage {
    fn read(&mut self, piece: &[u8]) {
        self.bytes = self.bytes.saturating_add(piece.len());
        for byte in piece {
            if self.string.is_some() {
                self.read_in_string(*byte);
            } else {
                self.read_outside(*byte);
            }
        }
    }

    fn read_in_string(&mut self, byte: u8) {
        let ends = byte == b'"' && !self.escaped;
        self.escaped = byte == b'\\' && !self.escaped;
        if !ends {
            if let Some(string) = &mut self.string {
                string.push(byte);
            }
            return;
        }
        let Some(Word(string)) = self.string.take() else { return };
        if self.depth != 1 {
            return;
        }
        match &self.key {
            None => {
                self.is_request |= string == b"method";
                self.key = Some(string);
            }
            Some(key) if key == b"id" => self.id = Some([b"\"", string.as_slice(), b"\""].concat()),
            Some(_) => {}
        }
    }

    fn read_outside(&mut self, byte: u8) {
        match byte {
            b'"' => self.string = Some(Word::default()),
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                self.value_ends();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.value_ends(),
            b'-' | b'0'..=b'9' if self.depth == 1 => self.number.push(byte),
            _ => {}
        }
    }

    fn value_ends(&mut self) {
        if self.depth != 1 {
            return;
        }
        let Word(number) = std::mem::take(&mut self.number);
        if self.key.take().is_some_and(|key| key == b"id") && !number.is_empty() {
            self.id = Some(number);
        }
    }

    /// The error response that replaces the message; empty if the message answers no call.
    fn error_response(self, max_bytes: usize) -> Vec<u8> {
        let Self { bytes, id, is_request, .. } = self;
        let Some(id) = id.filter(|id| !is_request && id.len() <= MAX_ID_BYTES) else {
            tracing::warn!(bytes, "mcp message dropped: too large");
            return Vec::new();
        };
        let message =
            format!("the answer is too large: {bytes} bytes, and at most {max_bytes} are read. Ask for less.");
        let error = format!(r#","error":{{"code":-32000,"message":"{message}"}}}}"#);
        [br#"{"jsonrpc":"2.0","id":"#, id.as_slice(), error.as_bytes(), b"\n"].concat()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// The output for these bytes, fed in pieces of `size`, when a line may have 40 bytes.
    async fn read(bytes: &[u8], size: usize) -> String {
        let (mut to, from) = tokio::io::duplex(size);
        let mut lines = BoundedLines { max_bytes: 40, ..BoundedLines::new(from) };
        let mut out = String::new();
        let writing = async {
            to.write_all(bytes).await.unwrap();
            drop(to);
        };
        let (read, ()) = tokio::join!(lines.read_to_string(&mut out), writing);
        read.unwrap();
        out
    }

    fn error_line(id: &str, bytes: usize) -> String {
        let message = format!("the answer is too large: {bytes} bytes, and at most 40 are read. Ask for less.");
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"{message}"}}}}"#) + "\n"
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_becomes_an_error_of_its_call() {
        let long = "x".repeat(50);
        let short = "{\"id\":1}\n";
        let table = [
            (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"text":"{long}"}}}}"#), Some("7")),
            (format!(r#"{{"result":{{"id":1,"text":"\"id\":2,{long}\\"}},"id":-73}}"#), Some("-73")),
            (format!(r#"{{"result":[{{"id":1}},"{long}"], "id" : "a-7" }}"#), Some("\"a-7\"")),
            (format!(r#"{{"note":"id","x":"{long}","id":8}}"#), Some("8")),
            (format!(r#"{{"id":9,"method":"sampling/createMessage","params":"{long}"}}"#), None),
            (format!(r#"{{"method":"notifications/message","params":"{long}"}}"#), None),
            (format!(r#"{{"id":"{}"}}"#, "7".repeat(65)), None),
            (format!(r#"{{"id":null,"error":"{long}"}}"#), None),
            (format!(r#"[{{"id":1,"result":"{long}"}}]"#), None),
            (long.clone(), None),
        ];
        for (line, id) in table {
            let error = id.map(|id| error_line(id, line.len() + 1)).unwrap_or_default();
            for size in [1, 3, 1000] {
                let out = read(format!("{short}{line}\n{short}").as_bytes(), size).await;
                assert_eq!(out, format!("{short}{error}{short}"), "{line} in pieces of {size}");
            }
        }
    }

    #[tokio::test]
    async fn a_line_at_the_limit_is_returned_and_an_unfinished_line_is_not() {
        let line = format!("{}\n", "x".repeat(39));
        assert_eq!(read(line.as_bytes(), 7).await, line);
        assert_eq!(read(b"no end", 7).await, "", "the transport drops unfinished lines, too");
    }
}
