//! JSON in a text: whole, in lines, within words, or cut off. Reads as far as it is JSON, and never anything twice.

use super::doc::{Doc, Kind, Node};
use crate::investigation::mask::bytes::{byte, skip};

/// JSON that was found, with its nodes.
#[derive(Debug)]
pub(crate) struct Island {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) doc: Doc,
}

impl Island {
    /// Whether the text is this JSON and nothing else.
    pub(crate) fn is_whole(&self, text: &str) -> bool {
        let closed = matches!(byte(text, self.end.saturating_sub(1)), b'}' | b']');
        let only = text.get(..self.start).is_some_and(|before| before.trim().is_empty())
            && text.get(self.end..).is_some_and(|after| after.trim().is_empty());
        closed && only && self.doc.nodes.first().is_some_and(|root| root.value.1 == self.end)
    }
}

/// All JSON of the text, in order.
pub(crate) fn islands(text: &str) -> Vec<Island> {
    let mut islands = Vec::new();
    let mut at = 0;
    let bytes = text.as_bytes();
    while let Some(offset) = bytes.get(at..).and_then(|tail| tail.iter().position(|b| matches!(b, b'{' | b'['))) {
        let start = at + offset;
        let mut reader = Reader { text, at: start, doc: Doc::default(), open: Vec::new() };
        reader.read();
        let Reader { at: end, doc, .. } = reader;
        let tells = doc.nodes.iter().any(|node| node.key.is_some() || node.kind == Kind::String);
        at = end.max(start + 1);
        if tells {
            islands.push(Island { start, end, doc });
        }
    }
    islands
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    doc: Doc,
    /// The containers that are open, and whether each is a map.
    open: Vec<(usize, bool)>,
}

impl Reader<'_> {
    fn read(&mut self) {
        if self.value(None) {
            while let Some((_, map)) = self.open.last().copied() {
                if !self.member(map) {
                    break;
                }
            }
        }
        while let Some((index, _)) = self.open.pop() {
            self.doc.close(index);
        }
    }

    fn blank(&mut self) {
        self.at = skip(self.text, self.at, |b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'));
    }

    /// The next member of the innermost container, or its end; whether to go on.
    fn member(&mut self, map: bool) -> bool {
        let begun = self.at;
        self.blank();
        let b = byte(self.text, self.at);
        if b == if map { b'}' } else { b']' } {
            self.at += 1;
            if let Some((index, _)) = self.open.pop() {
                self.doc.close(index);
                let end = self.at;
                if let Some(node) = self.doc.nodes.get_mut(index) {
                    node.value.1 = end;
                }
            }
            return !self.open.is_empty();
        }
        let first = self.open.last().is_some_and(|(index, _)| self.doc.nodes.len() == index + 1);
        if b == b',' && !first {
            self.at += 1;
            self.blank();
        } else if !first {
            self.at = begun;
            return false;
        }
        if !map {
            return self.value(None) || self.fail(begun);
        }
        let Some((key, true)) = self.string() else { return self.fail(begun) };
        self.blank();
        if byte(self.text, self.at) != b':' {
            return self.fail(begun);
        }
        self.at += 1;
        self.blank();
        self.value(Some(key)) || self.fail(begun)
    }

    /// Leaves what is no JSON to be read as text, from the key on whose value is none.
    fn fail(&mut self, begun: usize) -> bool {
        if self.at < self.text.len() || byte(self.text, self.at.saturating_sub(1)) == b':' {
            self.at = begun;
        }
        false
    }

    fn value(&mut self, key: Option<(usize, usize)>) -> bool {
        let start = self.at;
        match byte(self.text, start) {
            b @ (b'{' | b'[') => {
                let kind = if b == b'{' { Kind::Map } else { Kind::List };
                self.push(key, kind, (start, start + 1));
                self.open.push((self.doc.nodes.len() - 1, b == b'{'));
                self.at += 1;
                true
            }
            b'"' => {
                let Some((value, closed)) = self.string() else { return false };
                self.push(key, Kind::String, value);
                if !closed {
                    // Cut off: what follows is text again.
                    let end = self.at;
                    self.open.drain(..).for_each(|(index, _)| self.doc.close(index));
                    self.at = end;
                }
                closed
            }
            _ => {
                let end = skip(self.text, start, |b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
                let word = self.text.get(start..end).unwrap_or_default();
                let number = word.starts_with(|c: char| c.is_ascii_digit() || c == '-')
                    && word.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'e' | b'E' | b'+' | b'-' | b'.'));
                let bare = number || ["true", "false", "null"].contains(&word);
                if bare {
                    self.push(key, Kind::Bare, (start, end));
                    self.at = end;
                }
                bare
            }
        }
    }

    fn push(&mut self, key: Option<(usize, usize)>, kind: Kind, value: (usize, usize)) {
        let next = self.doc.nodes.len() + 1;
        self.doc.nodes.push(Node { key, kind, value, next });
    }

    /// What is between quotes, and whether they are closed on their line.
    fn string(&mut self) -> Option<((usize, usize), bool)> {
        if byte(self.text, self.at) != b'"' {
            return None;
        }
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let mut at = start;
        loop {
            match bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Some(((start, at), true));
                }
                Some(b'\\') => at = (at + 2).min(bytes.len()),
                Some(b'\n' | b'\r') | None => {
                    self.at = at;
                    return Some(((start, at), false));
                }
                Some(_) => at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&str, usize, bool)> {
        let islands = islands(text);
        islands
            .iter()
            .map(|found| (text.get(found.start..found.end).unwrap(), found.doc.nodes.len(), found.is_whole(text)))
            .collect()
    }

    #[test]
    fn json_is_found_wherever_it_stands_and_as_far_as_it_goes() {
        assert_eq!(found(r#" {"a": [1, "x", {"b": null}]} "#), vec![(r#"{"a": [1, "x", {"b": null}]}"#, 6, true)]);
        assert_eq!(found(r#"msg {"a":1} and {"b":2}"#), vec![(r#"{"a":1}"#, 2, false), (r#"{"b":2}"#, 2, false)]);
        assert_eq!(found(r#"{"a":1,"b":{"c":"cut of"#), vec![(r#"{"a":1,"b":{"c":"cut of"#, 4, false)]);
        assert_eq!(found(r#"{"a":1,"b":word}"#), vec![(r#"{"a":1"#, 2, false)]);
        assert_eq!(found("[2026-01-02 x] [info] {user: bob}"), vec![]);
    }
}
