//! Lines of a bounded length. An answer that is longer becomes an error of the call that it answers, so that the call
//! fails at once: dropped, it would be waited for until its time is over, and taken for one whose outcome is unknown.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncBufRead, AsyncRead, BufReader, ReadBuf};

/// What is read of one message.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// A buffer of a long line is not kept.
const KEPT_BYTES: usize = 64 * 1024;
/// Longer ids are none of ours.
const MAX_ID_BYTES: usize = 64;

/// A reader that hands out what `R` says, line by line, none of them longer than 16 MiB.
#[derive(Debug)]
pub(super) struct BoundedLines<R> {
    reader: BufReader<R>,
    max_bytes: usize,
    /// The line that is being read.
    line: Vec<u8>,
    /// What is handed out now, from `at` on.
    whole: Vec<u8>,
    at: usize,
    /// Of a line that is too long.
    skipped: Option<Skipped>,
}

impl<R: AsyncRead> BoundedLines<R> {
    pub(super) fn new(reader: R) -> Self {
        let reader = BufReader::new(reader);
        Self { reader, max_bytes: MAX_BYTES, line: Vec::new(), whole: Vec::new(), at: 0, skipped: None }
    }

    /// Takes a piece that ends at the end of a line if `ends` says so.
    fn take(&mut self, piece: &[u8], ends: bool) {
        if self.skipped.is_none() && self.line.len().saturating_add(piece.len()) > self.max_bytes {
            let mut skipped = Skipped::default();
            skipped.read(&self.line);
            self.line = Vec::new();
            self.skipped = Some(skipped);
        }
        match &mut self.skipped {
            Some(skipped) => skipped.read(piece),
            None => self.line.extend_from_slice(piece),
        }
        if ends {
            self.at = 0;
            self.whole = match self.skipped.take() {
                Some(skipped) => skipped.answer(self.max_bytes),
                None => std::mem::take(&mut self.line),
            };
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let left = this.whole.get(this.at..).unwrap_or_default();
            if !left.is_empty() {
                let count = left.len().min(buf.remaining());
                buf.put_slice(left.get(..count).unwrap_or_default());
                this.at += count;
                return Poll::Ready(Ok(()));
            }
            if this.whole.capacity() > KEPT_BYTES {
                this.whole = Vec::new();
            }
            let read = ready!(Pin::new(&mut this.reader).poll_fill_buf(cx))?;
            if read.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let newline = read.iter().position(|byte| *byte == b'\n');
            let count = newline.map_or(read.len(), |at| at + 1);
            let piece = read.get(..count).unwrap_or_default().to_vec();
            Pin::new(&mut this.reader).consume(count);
            this.take(&piece, newline.is_some());
        }
    }
}

/// Looks for the id of a message that is too long to be kept. It may stand before what is long or behind it.
#[derive(Debug, Default)]
struct Skipped {
    bytes: usize,
    depth: u32,
    /// The string that is being read.
    string: Option<Word>,
    escaped: bool,
    /// Of the outer object: the name whose value is being read.
    name: Option<Vec<u8>>,
    /// A value of the outer object that is no string.
    bare: Word,
    id: Option<Vec<u8>>,
    /// It asks for something: its id is one of the server's own.
    asks: bool,
}

/// The beginning of a word: one byte more than an id may have, so that a longer one is told apart.
#[derive(Debug, Default)]
struct Word(Vec<u8>);

impl Word {
    fn push(&mut self, byte: u8) {
        if self.0.len() <= MAX_ID_BYTES {
            self.0.push(byte);
        }
    }
}

impl Skipped {
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
        match &self.name {
            None => {
                self.asks |= string == b"method";
                self.name = Some(string);
            }
            Some(name) if name == b"id" => self.id = Some([b"\"", string.as_slice(), b"\""].concat()),
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
            b'-' | b'0'..=b'9' if self.depth == 1 => self.bare.push(byte),
            _ => {}
        }
    }

    fn value_ends(&mut self) {
        if self.depth != 1 {
            return;
        }
        let Word(bare) = std::mem::take(&mut self.bare);
        if self.name.take().is_some_and(|name| name == b"id") && !bare.is_empty() {
            self.id = Some(bare);
        }
    }

    /// The error that stands in for the message; nothing when it answers no call.
    fn answer(self, max_bytes: usize) -> Vec<u8> {
        let Self { bytes, id, asks, .. } = self;
        let Some(id) = id.filter(|id| !asks && id.len() <= MAX_ID_BYTES) else {
            tracing::warn!(bytes, "mcp message dropped: too large");
            return Vec::new();
        };
        let told = format!("the answer is too large: {bytes} bytes, and at most {max_bytes} are read. Ask for less.");
        let error = format!(r#","error":{{"code":-32000,"message":"{told}"}}}}"#);
        [br#"{"jsonrpc":"2.0","id":"#, id.as_slice(), error.as_bytes(), b"\n"].concat()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// What comes out of these bytes when each line may have 40, fed in pieces of `size`.
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

    fn told(id: &str, bytes: usize) -> String {
        let told = format!("the answer is too large: {bytes} bytes, and at most 40 are read. Ask for less.");
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"{told}"}}}}"#) + "\n"
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_becomes_an_error_of_the_call_that_it_answers() {
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
            let error = id.map(|id| told(id, line.len() + 1)).unwrap_or_default();
            for size in [1, 3, 1000] {
                let out = read(format!("{short}{line}\n{short}").as_bytes(), size).await;
                assert_eq!(out, format!("{short}{error}{short}"), "{line} in pieces of {size}");
            }
        }
    }

    #[tokio::test]
    async fn a_line_at_the_limit_is_handed_out_and_one_without_an_end_is_not() {
        let line = format!("{}\n", "x".repeat(39));
        assert_eq!(read(line.as_bytes(), 7).await, line);
        assert_eq!(read(b"no end", 7).await, "", "as the transport does with what was cut off");
    }
}
