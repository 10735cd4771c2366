//! Spans that hold a secret, and the text without them.

use std::borrow::Cow;

use super::MASKED;
use super::bytes::byte;

/// A span that is masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) start: usize,
    pub(super) end: usize,
    /// A JSON value without quotes: what replaces it needs some.
    pub(super) quoted: bool,
}

impl Mark {
    pub(super) fn new(start: usize, end: usize) -> Self {
        Self { start, end, quoted: false }
    }

    pub(super) fn shifted(self, by: usize) -> Self {
        Self { start: self.start + by, end: self.end + by, ..self }
    }
}

/// The text without what is marked. What is masked already stays as it is.
pub(super) fn replace(text: &str, mut marks: Vec<Mark>) -> Cow<'_, str> {
    for mark in &mut marks {
        widen(text, mark);
    }
    marks.sort_unstable_by_key(|mark| (mark.start, mark.end));
    let mut masked = String::new();
    let mut done = 0;
    let mut merged = marks.into_iter().peekable();
    while let Some(mut mark) = merged.next() {
        while let Some(next) = merged.next_if(|next| next.start < mark.end || next.start == mark.start) {
            mark.end = mark.end.max(next.end);
            mark.quoted |= next.quoted;
        }
        let secret = text.get(mark.start..mark.end).unwrap_or_default();
        if secret.replace(MASKED, "").trim().is_empty() {
            continue;
        }
        masked.push_str(text.get(done..mark.start).unwrap_or_default());
        let quote = if mark.quoted { "\"" } else { "" };
        masked.extend([quote, MASKED, quote]);
        done = mark.end;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    masked.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(masked)
}

/// Takes in the whole of an escape, a character or an earlier mask that the span begins or ends in.
fn widen(text: &str, mark: &mut Mark) {
    mark.end = mark.end.min(text.len());
    while !text.is_char_boundary(mark.start) {
        mark.start -= 1;
    }
    while !text.is_char_boundary(mark.end) {
        mark.end += 1;
    }
    if is_escaped(text, mark.start) {
        mark.start -= 1;
    }
    if mark.end > mark.start && is_escaped(text, mark.end) {
        mark.end += text.get(mark.end..).and_then(|tail| tail.chars().next()).map_or(0, char::len_utf8);
    }
    for back in 1..MASKED.len() {
        let masked_at = |at: usize| text.get(at..at + MASKED.len()) == Some(MASKED);
        if mark.start >= back && masked_at(mark.start - back) {
            mark.start -= back;
        }
        if mark.end >= back && masked_at(mark.end - back) {
            mark.end += MASKED.len() - back;
        }
    }
}

/// Whether the character at `at` belongs to a backslash before it.
fn is_escaped(text: &str, at: usize) -> bool {
    let mut backslashes = 0;
    while backslashes < at.min(64) && byte(text, at - 1 - backslashes) == b'\\' {
        backslashes += 1;
    }
    backslashes % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_overlap_become_one_and_never_cut_an_escape_or_a_mask() {
        let masked = |text, spans: &[(usize, usize)]| {
            replace(text, spans.iter().map(|(start, end)| Mark::new(*start, *end)).collect()).into_owned()
        };
        assert_eq!(masked("abcdef", &[(3, 5), (1, 4)]), "a[masked]f");
        assert_eq!(masked(r"a\nbc", &[(2, 4)]), "a[masked]c");
        assert_eq!(masked("a [masked] b", &[(4, 8)]), "a [masked] b");
        assert_eq!(masked("a [masked]b", &[(4, 11)]), "a [masked]");
        assert_eq!(masked("äb", &[(1, 3)]), "[masked]");
        let number = Mark { start: 1, end: 3, quoted: true };
        assert_eq!(replace("[12]", vec![number]), "[\"[masked]\"]");
    }
}
