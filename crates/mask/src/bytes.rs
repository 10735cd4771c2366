//! Reads bytes and parts of a text at any offset, without a panic.

/// The byte at `at`; 0 after the end.
pub(super) fn byte(text: &str, at: usize) -> u8 {
    text.as_bytes().get(at).copied().unwrap_or(0)
}

/// The part of a text; empty if the offsets are invalid.
pub(super) fn part(text: &str, from: usize, to: usize) -> &str {
    text.get(from..to).unwrap_or_default()
}

/// The text from `at` on.
pub(super) fn rest(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

/// The offset of the first byte from `at` on that is not accepted.
pub(super) fn skip(text: &str, at: usize, accepted: impl Fn(u8) -> bool) -> usize {
    let tail = text.as_bytes().get(at..).unwrap_or_default();
    at + tail
        .iter()
        .position(|b| !accepted(*b))
        .unwrap_or(tail.len())
}

/// The offset that [`skip`] gives, at most `max` bytes on.
pub(super) fn skip_near(text: &str, at: usize, max: usize, accepted: impl Fn(u8) -> bool) -> usize {
    let tail = text.as_bytes().get(at..).unwrap_or_default();
    let near = tail.get(..max).unwrap_or(tail);
    at + near
        .iter()
        .position(|b| !accepted(*b))
        .unwrap_or(near.len())
}

/// Whether a byte is part of base64 in one of its two alphabets, with its padding.
pub(super) fn in_base64_run(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"+/-_=".contains(&b)
}

/// Whether all bytes are accepted.
pub(super) fn all(text: &str, accepted: impl Fn(u8) -> bool) -> bool {
    text.bytes().all(accepted)
}

/// The start of the accepted bytes directly before `at`, not before `from`.
pub(super) fn back(text: &str, from: usize, at: usize, accepted: impl Fn(u8) -> bool) -> usize {
    let before = text.as_bytes().get(from..at).unwrap_or_default();
    from + before
        .iter()
        .rposition(|b| !accepted(*b))
        .map_or(0, |last| last + 1)
}

/// The end of the line of `at`, before its line break.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let end = rest(text, at)
        .find('\n')
        .map_or(text.len(), |length| at + length);
    if end > at && byte(text, end - 1) == b'\r' {
        end - 1
    } else {
        end
    }
}

/// The begin of the line after that of `at`.
pub(super) fn next_line(text: &str, at: usize) -> usize {
    rest(text, at)
        .find('\n')
        .map_or(text.len(), |length| at + length + 1)
}

/// The offset that [`line_end`] gives, at most `max` bytes on: for repeated use within a long line.
pub(super) fn near_line_end(text: &str, at: usize, max: usize) -> usize {
    text.floor_char_boundary(skip_near(text, at, max, |b| !matches!(b, b'\n' | b'\r')))
}

pub(super) fn is_blank(b: u8) -> bool {
    b == b' ' || b == b'\t'
}

/// Whether a byte is part of a name or token.
pub(super) fn is_word(b: u8) -> bool {
    WORD.get(usize::from(b)).copied().unwrap_or(false)
}

const WORD: [bool; 256] =
    table_of(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.");

/// A table with these bytes set: faster than ranges where each byte of a text is read.
pub(super) const fn table_of(bytes: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut index = 0;
    #[expect(clippy::indexing_slicing, reason = "at compile time")]
    while index < bytes.len() {
        table[bytes[index] as usize] = true;
        index += 1;
    }
    table
}

pub(super) fn is_quote(b: u8) -> bool {
    matches!(b, b'"' | b'\'' | b'`')
}

/// Whether the text begins with `start`, ignoring ASCII case.
pub(super) fn begins(text: &str, start: &str) -> bool {
    text.as_bytes()
        .get(..start.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
}

/// Numbers of characters of a value, by kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CharCounts {
    pub(super) lower: usize,
    pub(super) upper: usize,
    pub(super) digits: usize,
    pub(super) others: usize,
}

impl CharCounts {
    pub(super) fn count(text: &str) -> Self {
        let mut kinds = Self::default();
        for b in text.bytes() {
            match b {
                b'a'..=b'z' => kinds.lower += 1,
                b'A'..=b'Z' => kinds.upper += 1,
                b'0'..=b'9' => kinds.digits += 1,
                _ => kinds.others += 1,
            }
        }
        kinds
    }

    /// Whether upper and lower case are mixed, more than in a name.
    pub(super) fn has_both_cases(self) -> bool {
        self.upper > 1 && self.lower > 1
    }
}

/// Whether a value looks random: letters mixed with digits, or upper mixed with lower case.
pub(super) fn is_opaque(value: &str, min_bytes: usize) -> bool {
    let kinds = CharCounts::count(value);
    let mixed = kinds.digits > 0 && kinds.lower + kinds.upper > 1 || kinds.has_both_cases();
    value.len() >= min_bytes && mixed && !value.bytes().any(|b| b.is_ascii_whitespace())
}
