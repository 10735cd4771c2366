//! Finds the request that an unreadable or oversized message answers.

use super::open::OpenRequests;

/// The ids of our requests are shorter.
const MAX_ID_BYTES: usize = 64;

/// Finds the id of a message that is too long to be kept. The id may come before or after the long part.
#[derive(Debug, Default)]
pub(super) struct SkippedMessage {
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
    /// Whether the message is a request of the server, so that its id is not the id of a call.
    is_request: bool,
    /// Whether it has a member of an answer.
    is_answer: bool,
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
    /// Reads the id and the kind of a message from its bytes.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let mut message = Self::default();
        message.read(bytes);
        message
    }

    pub(super) fn read(&mut self, piece: &[u8]) {
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
        let Some(Word(string)) = self.string.take() else {
            return;
        };
        if self.depth != 1 {
            return;
        }
        match &self.key {
            None => {
                self.is_request |= string == b"method";
                self.is_answer |= string == b"result" || string == b"error";
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

    /// The open request that the message answers: by its id or, without one, the only one.
    pub(super) fn answers(self, open: &OpenRequests) -> Option<String> {
        if self.is_request {
            return None;
        }
        match self.id {
            Some(id) => {
                let id = String::from_utf8_lossy(&id).trim_matches('"').to_owned();
                open.has(&id).then_some(id)
            }
            None if self.is_answer => open.single(),
            None => None,
        }
    }

    /// The error response that replaces the message; empty if the message answers no call.
    pub(super) fn error_response(self, max_bytes: usize) -> Vec<u8> {
        let bytes = self.bytes;
        let is_request = self.is_request;
        let Some(id) = self.id.filter(|id| !is_request && id.len() <= MAX_ID_BYTES) else {
            tracing::warn!(bytes, "mcp message dropped: too large");
            return Vec::new();
        };
        let message = format!(
            "the answer is too large: {bytes} bytes, and at most {max_bytes} are read. Ask for less."
        );
        let error = format!(r#","error":{{"code":-32000,"message":"{message}"}}}}"#);
        [
            br#"{"jsonrpc":"2.0","id":"#,
            id.as_slice(),
            error.as_bytes(),
            b"\n",
        ]
        .concat()
    }
}
