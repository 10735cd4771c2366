//! Reads lines of bounded length, and writes them as JSON-RPC has them. An answer that is too long becomes an error of
//! its call, so that the call fails at once. If the answer was dropped, the call would wait for its timeout and its
//! outcome would be unknown.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncBufRead, AsyncRead, BufReader, ReadBuf};

use super::message;
use super::open::OpenRequests;
use super::skipped::SkippedMessage;

/// The longest message that is read.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// A larger buffer is freed after its line.
const MAX_KEPT_BYTES: usize = 64 * 1024;

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
    /// The current line, if it is too long to be kept.
    skipped: Option<SkippedMessage>,
    open: OpenRequests,
}

impl<R: AsyncRead> BoundedLines<R> {
    /// The lines answer requests in `open`.
    pub(super) fn new(reader: R, open: OpenRequests) -> Self {
        Self {
            reader: BufReader::new(reader),
            max_bytes: MAX_LINE_BYTES,
            line: Vec::new(),
            finished: Vec::new(),
            at: 0,
            skipped: None,
            open,
        }
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
            None => match message::parse(&std::mem::take(&mut self.line), &self.open) {
                Some(message) => [message.trim_ascii(), b"\n"].concat(),
                None => Vec::new(),
            },
        };
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// The output for these bytes, fed in pieces of `size`, when a line may have 40 bytes.
    async fn read(bytes: &[u8], size: usize) -> String {
        let (mut to, from) = tokio::io::duplex(size);
        let mut lines = BoundedLines {
            max_bytes: 40,
            ..BoundedLines::new(from, OpenRequests::default())
        };
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
        let message = format!(
            "the answer is too large: {bytes} bytes, and at most 40 are read. Ask for less."
        );
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"{message}"}}}}"#)
            + "\n"
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_becomes_an_error_of_its_call() {
        let long = "x".repeat(50);
        let short = "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n";
        let table = [
            (
                format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"text":"{long}"}}}}"#),
                Some("7"),
            ),
            (
                format!(r#"{{"result":{{"id":1,"text":"\"id\":2,{long}\\"}},"id":-73}}"#),
                Some("-73"),
            ),
            (
                format!(r#"{{"result":[{{"id":1}},"{long}"], "id" : "a-7" }}"#),
                Some("\"a-7\""),
            ),
            (format!(r#"{{"note":"id","x":"{long}","id":8}}"#), Some("8")),
            (
                format!(r#"{{"id":9,"method":"sampling/createMessage","params":"{long}"}}"#),
                None,
            ),
            (
                format!(r#"{{"method":"notifications/message","params":"{long}"}}"#),
                None,
            ),
            (format!(r#"{{"id":"{}"}}"#, "7".repeat(65)), None),
            (format!(r#"{{"id":null,"error":"{long}"}}"#), None),
            (format!(r#"[{{"id":1,"result":"{long}"}}]"#), None),
            (long.clone(), None),
        ];
        for (line, id) in table {
            let error = id
                .map(|id| error_line(id, line.len() + 1))
                .unwrap_or_default();
            for size in [1, 3, 1000] {
                let out = read(format!("{short}{line}\n{short}").as_bytes(), size).await;
                assert_eq!(
                    out,
                    format!("{short}{error}{short}"),
                    "{line} in pieces of {size}"
                );
            }
        }
    }

    #[tokio::test]
    async fn a_line_at_the_limit_is_returned_and_an_unfinished_line_is_not() {
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"{}\"}}\n",
            "n".repeat(10)
        );
        assert_eq!(line.len(), 40);
        assert_eq!(read(line.as_bytes(), 7).await, line);
        assert_eq!(
            read(b"no end", 7).await,
            "",
            "the transport drops unfinished lines, too"
        );
    }
}
