//! Finds JSON in a text: the whole text, lines, fragments within words, or JSON that is cut off. Linear: no byte is
//! read twice.

use super::document::{Document, Kind};
use crate::bytes::{all, byte, part, rest, skip};
use crate::spans::Span;

/// A piece of JSON in a text.
#[derive(Debug)]
pub(crate) struct JsonFragment {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) doc: Document,
}

impl JsonFragment {
    /// Whether the whole text is this JSON.
    pub(crate) fn is_whole(&self, text: &str) -> bool {
        let closed = matches!(byte(text, self.end.saturating_sub(1)), b'}' | b']');
        let around = [part(text, 0, self.start), rest(text, self.end)];
        let only = around.iter().all(|text| text.trim().is_empty());
        closed
            && only
            && self
                .doc
                .nodes
                .first()
                .is_some_and(|root| root.value.end == self.end)
    }
}

/// All JSON of the text, in order.
pub(crate) fn fragments(text: &str) -> Vec<JsonFragment> {
    let mut fragments = Vec::new();
    let mut at = 0;
    let bytes = text.as_bytes();
    while let Some(offset) = bytes
        .get(at..)
        .and_then(|tail| tail.iter().position(|b| matches!(b, b'{' | b'[')))
    {
        let start = at + offset;
        let mut reader = JsonScanner {
            text,
            at: start,
            doc: Document::default(),
            open: Vec::new(),
        };
        reader.read();
        let JsonScanner { at: end, doc, .. } = reader;
        let tells = doc
            .nodes
            .iter()
            .any(|node| node.key.is_some() || node.kind == Kind::String);
        at = end.max(start + 1);
        // The index of an array that a program dumps: `["password"]=> …`.
        let is_index = byte(text, start) == b'[' && byte(text, end) == b'=';
        if tells && !is_index {
            fragments.push(JsonFragment { start, end, doc });
        }
    }
    fragments
}

struct JsonScanner<'t> {
    text: &'t str,
    at: usize,
    doc: Document,
    /// The maps and lists that are not closed yet.
    open: Vec<usize>,
}

/// A string, without its quotes.
struct JsonString {
    span: Span,
    /// The closing quote is in the same line.
    is_closed: bool,
}

impl JsonScanner<'_> {
    fn read(&mut self) {
        if self.value(None) {
            while let Some(index) = self.open.last().copied()
                && self.member(index)
            {}
        }
        while let Some(index) = self.open.pop() {
            self.doc.close(index);
        }
    }

    fn blank(&mut self) {
        self.at = skip(self.text, self.at, |b| {
            matches!(b, b' ' | b'\t' | b'\n' | b'\r')
        });
    }

    /// Reads the next member of the innermost container, or its end; returns whether to continue.
    fn member(&mut self, index: usize) -> bool {
        let is_map = self.doc.kind(index) == Some(Kind::Map);
        let begun = self.at;
        self.blank();
        let b = byte(self.text, self.at);
        if b == if is_map { b'}' } else { b']' } {
            self.at += 1;
            self.open.pop();
            self.doc.close(index);
            if let Some(node) = self.doc.nodes.get_mut(index) {
                node.value.end = self.at;
            }
            return !self.open.is_empty();
        }
        let first = self.doc.nodes.len() == index + 1;
        if b == b',' && !first {
            self.at += 1;
            self.blank();
        } else if !first {
            self.at = begun;
            return false;
        }
        if !is_map {
            return self.value(None) || self.fail(begun);
        }
        let Some(JsonString {
            span: key,
            is_closed: true,
        }) = self.string()
        else {
            return self.fail(begun);
        };
        self.blank();
        if byte(self.text, self.at) != b':' {
            return self.fail(begun);
        }
        self.at += 1;
        self.blank();
        self.value(Some(key)) || self.fail(begun)
    }

    /// Ends the JSON before a member that is no JSON, which is then read as text.
    fn fail(&mut self, begun: usize) -> bool {
        if self.at < self.text.len() || byte(self.text, self.at.saturating_sub(1)) == b':' {
            self.at = begun;
        }
        false
    }

    fn value(&mut self, key: Option<Span>) -> bool {
        let start = self.at;
        match byte(self.text, start) {
            b @ (b'{' | b'[') => {
                let kind = if b == b'{' { Kind::Map } else { Kind::List };
                self.open.push(self.doc.nodes.len());
                self.doc.push(key, kind, Span::new(start, start + 1));
                self.at += 1;
                true
            }
            b'"' => {
                let Some(JsonString { span, is_closed }) = self.string() else {
                    return false;
                };
                self.doc.push(key, Kind::String, span);
                is_closed
            }
            _ => {
                let end = skip(self.text, start, |b| {
                    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')
                });
                let word = self.text.get(start..end).unwrap_or_default();
                let number = word.starts_with(|c: char| c.is_ascii_digit() || c == '-')
                    && all(word, |b| b.is_ascii_digit() || b"eE+-.".contains(&b));
                let bare = number || ["true", "false", "null"].contains(&word);
                if bare {
                    self.doc.push(key, Kind::Bare, Span::new(start, end));
                    self.at = end;
                }
                bare
            }
        }
    }

    fn string(&mut self) -> Option<JsonString> {
        if byte(self.text, self.at) != b'"' {
            return None;
        }
        let start = self.at + 1;
        let mut at = start;
        while at < self.text.len() && !matches!(byte(self.text, at), b'"' | b'\n' | b'\r') {
            at += 1 + usize::from(byte(self.text, at) == b'\\');
        }
        let span = Span::new(start, at.min(self.text.len()));
        let is_closed = byte(self.text, span.end) == b'"';
        self.at = span.end + usize::from(is_closed);
        Some(JsonString { span, is_closed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&str, usize, bool)> {
        let fragments = fragments(text);
        fragments
            .iter()
            .map(|found| {
                (
                    text.get(found.start..found.end).unwrap(),
                    found.doc.nodes.len(),
                    found.is_whole(text),
                )
            })
            .collect()
    }

    #[test]
    fn json_is_found_anywhere_in_a_text_up_to_its_first_error() {
        assert_eq!(
            found(r#" {"a": [1, "x", {"b": null}]} "#),
            vec![(r#"{"a": [1, "x", {"b": null}]}"#, 6, true)]
        );
        assert_eq!(
            found(r#"msg {"a":1} and {"b":2}"#),
            vec![(r#"{"a":1}"#, 2, false), (r#"{"b":2}"#, 2, false)]
        );
        assert_eq!(
            found(r#"{"a":1,"b":{"c":"cut of"#),
            vec![(r#"{"a":1,"b":{"c":"cut of"#, 4, false)]
        );
        assert_eq!(found(r#"{"a":1,"b":word}"#), vec![(r#"{"a":1"#, 2, false)]);
        assert_eq!(found("[2026-01-02 x] [info] {user: bob}"), vec![]);
    }
}
