//! Spans of secrets, and their replacement in the text.

use std::borrow::Cow;

use super::bytes::{byte, part};

/// Replaces a secret.
pub const MASKED: &str = "[masked]";

/// A range of bytes in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Span {
    pub(super) fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    pub(super) fn is_empty(self) -> bool {
        self.start >= self.end
    }

    pub(super) fn text(self, text: &str) -> &str {
        part(text, self.start, self.end)
    }
}

/// A span that is replaced by [`MASKED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SecretSpan {
    pub(super) start: usize,
    pub(super) end: usize,
    /// A JSON value without quotes: its replacement is put in quotes.
    pub(super) quoted: bool,
}

impl SecretSpan {
    pub(super) fn new(start: usize, end: usize) -> Self {
        Self {
            start,
            end,
            quoted: false,
        }
    }

    pub(super) fn shifted(self, by: usize) -> Self {
        Self {
            start: self.start + by,
            end: self.end + by,
            ..self
        }
    }
}

impl From<Span> for SecretSpan {
    fn from(span: Span) -> Self {
        Self::new(span.start, span.end)
    }
}

/// The extent of the text around a secret that is masked with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grain {
    Exact,
    /// The word: up to a blank or a quote.
    Word,
    /// The line, and in JSON the string.
    Line,
}

/// The kind of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TextForm {
    /// The whole text is JSON.
    Json,
    #[default]
    Other,
}

/// Extends the spans of secrets that are not masked yet. In JSON a span stays within its string.
pub(super) fn coarsen(text: &str, spans: &mut [SecretSpan], grain: Grain, form: TextForm) {
    if grain == Grain::Exact {
        return;
    }
    let ends = |b: u8| match grain {
        Grain::Word | Grain::Exact => b.is_ascii_whitespace() || matches!(b, b'"' | b'\''),
        Grain::Line => matches!(b, b'\n' | b'\r') || form == TextForm::Json && b == b'"',
    };
    let bytes = text.as_bytes();
    // Spans of one word are extended once, so that the time stays linear.
    let mut read = Span::default();
    spans.sort_unstable_by_key(|span| span.start);
    for span in spans {
        if span.quoted || is_masked(text, *span) {
            continue;
        }
        if !(read.start..read.end).contains(&span.start) {
            let before = bytes.get(read.end..span.start).unwrap_or_default();
            let start = before
                .iter()
                .rposition(|b| ends(*b))
                .map_or(read.end, |at| read.end + at + 1);
            read = Span::new(start.min(span.start), read.end);
        }
        let behind = bytes.get(span.end..).unwrap_or_default();
        if read.end < span.end {
            read.end = span.end + behind.iter().position(|b| ends(*b)).unwrap_or(behind.len());
        }
        *span = SecretSpan::new(read.start.min(span.start), read.end.max(span.end));
    }
}

fn is_masked(text: &str, span: SecretSpan) -> bool {
    let secret = text.get(span.start..span.end).unwrap_or_default();
    secret.replace(MASKED, "").trim().is_empty()
}

/// Replaces the spans in the text. A span that is already masked stays as it is.
pub(super) fn replace(text: &str, mut spans: Vec<SecretSpan>) -> Cow<'_, str> {
    for span in &mut spans {
        widen(text, span);
    }
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let mut masked = String::new();
    let mut done = 0;
    let mut merged = spans.into_iter().peekable();
    while let Some(mut span) = merged.next() {
        while let Some(next) =
            merged.next_if(|next| next.start < span.end || next.start == span.start)
        {
            span.end = span.end.max(next.end);
            span.quoted |= next.quoted;
        }
        if is_masked(text, span) {
            continue;
        }
        masked.push_str(text.get(done..span.start).unwrap_or_default());
        let quote = if span.quoted { "\"" } else { "" };
        masked.extend([quote, MASKED, quote]);
        done = span.end;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    masked.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(masked)
}

/// Extends a span that begins or ends inside of an escape, a character or an earlier mask to the whole of it.
fn widen(text: &str, span: &mut SecretSpan) {
    span.start = text.floor_char_boundary(span.start);
    span.end = text.ceil_char_boundary(span.end);
    if is_escaped(text, span.start) {
        span.start -= 1;
    }
    if span.end > span.start && is_escaped(text, span.end) {
        span.end += text
            .get(span.end..)
            .and_then(|tail| tail.chars().next())
            .map_or(0, char::len_utf8);
    }
    for back in 1..MASKED.len() {
        let masked_at = |at: usize| text.get(at..at + MASKED.len()) == Some(MASKED);
        if span.start >= back && masked_at(span.start - back) {
            span.start -= back;
        }
        if span.end >= back && masked_at(span.end - back) {
            span.end += MASKED.len() - back;
        }
    }
}

/// Whether a backslash before it escapes the character at `at`.
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
            replace(
                text,
                spans
                    .iter()
                    .map(|(start, end)| SecretSpan::new(*start, *end))
                    .collect(),
            )
            .into_owned()
        };
        assert_eq!(masked("abcdef", &[(3, 5), (1, 4)]), "a[masked]f");
        assert_eq!(masked(r"a\nbc", &[(2, 4)]), "a[masked]c");
        assert_eq!(masked("a [masked] b", &[(4, 8)]), "a [masked] b");
        assert_eq!(masked("a [masked]b", &[(4, 11)]), "a [masked]");
        assert_eq!(masked("äb", &[(1, 3)]), "[masked]");
        let number = SecretSpan {
            start: 1,
            end: 3,
            quoted: true,
        };
        assert_eq!(replace("[12]", vec![number]), "[\"[masked]\"]");
    }
}
