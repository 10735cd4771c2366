//! A place in a text that only moves forward.

use crate::readable::text::beginning;

/// A longer run without quotes is no key, and no macro.
const MAX_AHEAD: usize = 128;

#[derive(Debug)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Moves to the next character after `bytes`.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at = self.text.ceil_char_boundary(self.at.saturating_add(bytes));
    }

    pub(super) fn take(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token);
        if is_next {
            self.at += token.len();
        }
        is_next
    }

    /// The text up to the first of the bytes, which have to be ASCII; to the end if there is none.
    pub(super) fn take_until(&mut self, is_end: impl Fn(u8) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest
            .bytes()
            .position(|byte| byte.is_ascii() && is_end(byte))
            .unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// White space, and other characters that have no place outside of a text.
    pub(super) fn skip_gaps(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(is_gap).len();
    }

    /// `// …` and `/* … */`.
    pub(super) fn skip_comment(&mut self) -> bool {
        if self.rest().starts_with("//") {
            self.take_until(|byte| byte == b'\n');
            return true;
        }
        let is_block = self.rest().starts_with("/*");
        if is_block {
            let rest = self.rest();
            self.at += rest.find("*/").map_or(rest.len(), |end| end + 2);
        }
        is_block
    }

    /// Whether a brace begins a macro that was not replaced: `{EVENT.VALUE}`, `{{ .Labels.pod }}`.
    pub(super) fn is_macro(&self) -> bool {
        let Some(inner) = self.rest().strip_prefix('{') else {
            return false;
        };
        if inner.starts_with('{') {
            return true;
        }
        let inner = inner.strip_prefix(['$', '#', '?']).unwrap_or(inner);
        let length = inner
            .bytes()
            .take(MAX_AHEAD)
            .take_while(|byte: &u8| {
                byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"._".contains(byte)
            })
            .count();
        length > 0 && inner.as_bytes().get(length) == Some(&b'}')
    }

    /// Moves after the macro or the brace that is next.
    pub(super) fn skip_braces(&mut self) {
        let end = if self.rest().starts_with("{{") {
            "}}"
        } else {
            "}"
        };
        let ahead = beginning(self.rest(), MAX_AHEAD);
        self.at += ahead.find(end).map_or(1, |at| at + end.len());
    }
}

/// White space of any kind, control characters, and what represents a bad byte.
pub(super) fn is_gap(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '\u{feff}' | '\u{fffd}')
}

/// Whether a text begins with a key and its colon: `"state":`, or `state:`. A key that is longer than the look ahead
/// counts.
pub(super) fn begins_with_key(text: &str) -> bool {
    let bytes = text.as_bytes();
    let quote = bytes
        .first()
        .copied()
        .filter(|byte| matches!(byte, b'"' | b'\''));
    let mut at = usize::from(quote.is_some());
    while let Some(byte) = bytes.get(at).copied() {
        if at > MAX_AHEAD {
            return quote.is_some();
        }
        match quote {
            Some(quote) if byte == quote => {
                let behind = text
                    .get(at + 1..)
                    .unwrap_or_default()
                    .trim_start_matches(is_gap);
                return behind.starts_with([':', '=']);
            }
            Some(_) => at += if byte == b'\\' { 2 } else { 1 },
            None if is_key_byte(byte) => at += 1,
            None => {
                return at > 0
                    && text
                        .get(at..)
                        .unwrap_or_default()
                        .trim_start_matches(is_gap)
                        .starts_with(':');
            }
        }
    }
    false
}

/// Whether a byte may be part of a key without quotes.
pub(super) fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.$@-".contains(&byte) || !byte.is_ascii()
}
