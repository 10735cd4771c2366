//! Decoded views of a text: without terminal escape sequences, with JSON escapes resolved, URL-decoded, or with the
//! lines of a diff as they are in the files. A view maps its offsets back to the original text.

use super::bytes::{all, part, rest};
use super::spans::SecretSpan;

/// A decoded text, with the original offset of each part.
#[derive(Debug, Default)]
pub(super) struct DecodedView {
    pub(super) text: String,
    /// The parts in the order of their offsets.
    parts: Vec<ViewPart>,
    raw_length: usize,
}

#[derive(Clone, Copy, Debug)]
struct ViewPart {
    /// The offset of the part in the view.
    here: usize,
    /// The offset of the part in the original text.
    raw: usize,
    /// The part is the same byte by byte.
    is_copy: bool,
}

impl DecodedView {
    /// An empty view of a text of this length in bytes.
    pub(super) fn of_length(raw_length: usize) -> Self {
        Self {
            raw_length,
            ..Self::default()
        }
    }

    /// Appends a part of the original text, which begins there at `at`.
    pub(super) fn copied(&mut self, raw: &str, at: usize) {
        if !raw.is_empty() {
            self.parts.push(ViewPart {
                here: self.text.len(),
                raw: at,
                is_copy: true,
            });
            self.text.push_str(raw);
        }
    }

    /// Appends a character for the original text at `at`.
    pub(super) fn replaced(&mut self, by: Option<char>, at: usize) {
        self.parts.push(ViewPart {
            here: self.text.len(),
            raw: at,
            is_copy: false,
        });
        self.text.extend(by);
    }

    fn part(&self, at: usize) -> usize {
        self.parts
            .partition_point(|part| part.here <= at)
            .saturating_sub(1)
    }

    fn start(&self, at: usize) -> usize {
        let Some(ViewPart { here, raw, is_copy }) = self.parts.get(self.part(at)).copied() else {
            return 0;
        };
        if is_copy { raw + (at - here) } else { raw }
    }

    fn end(&self, at: usize) -> usize {
        let index = self.part(at.saturating_sub(1));
        let Some(ViewPart { here, raw, is_copy }) = self.parts.get(index).copied() else {
            return self.raw_length;
        };
        if is_copy {
            raw + (at - here)
        } else {
            self.parts
                .get(index + 1)
                .map_or(self.raw_length, |next| next.raw)
        }
    }

    /// The same span in the original text.
    pub(super) fn raw(&self, span: &SecretSpan) -> SecretSpan {
        SecretSpan::new(self.start(span.start), self.end(span.end))
    }
}

/// The text without terminal escape sequences, control characters and invisible characters; `None` if it has none.
pub(super) fn clean(raw: &str) -> Option<DecodedView> {
    // Without a branch for each byte, so that the compiler vectorises it.
    if !raw
        .as_bytes()
        .chunks(4_096)
        .any(|bytes: &[u8]| bytes.iter().fold(false, |any, b| any | is_control(*b)))
        && (raw.is_ascii() || !raw.chars().any(is_invisible))
    {
        return None;
    }
    let mut view = DecodedView::of_length(raw.len());
    let mut done = 0;
    let mut at = 0;
    while let Some(c) = rest(raw, at).chars().next() {
        let length = match c {
            '\u{1b}' => escape_sequence(rest(raw, at + 1)) + 1,
            _ if is_invisible(c) => c.len_utf8(),
            _ => {
                at += c.len_utf8();
                continue;
            }
        };
        view.copied(part(raw, done, at), done);
        view.replaced(None, at);
        at += length;
        done = at;
    }
    view.copied(rest(raw, done), done);
    Some(view)
}

fn is_control(b: u8) -> bool {
    b < 0x20 && !matches!(b, b'\n' | b'\t' | b'\r') || b == 0x7f
}

fn is_invisible(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t' | '\r')
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The length of the escape sequence after an escape character (ECMA-48).
fn escape_sequence(tail: &str) -> usize {
    let bytes = tail.as_bytes();
    let inner = bytes.get(1..).unwrap_or_default();
    match bytes.first() {
        Some(b'[') => match inner.iter().position(|b| !(0x20..0x40).contains(b)) {
            Some(end) if inner.get(end).is_some_and(u8::is_ascii) => end + 2,
            Some(end) => end + 1,
            None => bytes.len(),
        },
        Some(b']') => match inner
            .iter()
            .take(2_048)
            .position(|b| matches!(b, 7 | 0x1b | b'\n'))
        {
            Some(end) if inner.get(end) == Some(&7) => end + 2,
            Some(end) => end + 1,
            None => 1,
        },
        Some(b) if b.is_ascii_graphic() => 1,
        Some(_) | None => 0,
    }
}

/// The text with the escapes of a JSON string resolved; `None` if it has none.
pub(super) fn unescape(raw: &str) -> Option<DecodedView> {
    let mut view = DecodedView::of_length(raw.len());
    let mut done = 0;
    let mut at = 0;
    while let Some(offset) = rest(raw, at).find('\\') {
        let start = at + offset;
        at = start + 1;
        if let Some((c, length)) = escaped(rest(raw, at)) {
            view.copied(part(raw, done, start), done);
            view.replaced(Some(c), start);
            at += length;
            done = at;
        }
    }
    view.copied(rest(raw, done), done);
    (done > 0).then_some(view)
}

/// The character that the escape means, and its length without the backslash.
fn escaped(tail: &str) -> Option<(char, usize)> {
    let c = match tail.bytes().next()? {
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'b' | b'f' => ' ',
        b'"' => '"',
        b'\'' => '\'',
        b'\\' => '\\',
        b'/' => '/',
        b'e' => '\u{1b}',
        b'x' => return Some((char::from_u32(hex(tail.get(1..3)?)?)?, 3)),
        b'u' => return unicode(tail),
        _ => return None,
    };
    Some((c, 1))
}

fn unicode(tail: &str) -> Option<(char, usize)> {
    let first = hex(tail.get(1..5)?)?;
    if let Some(c) = char::from_u32(first) {
        return Some((c, 5));
    }
    let second = tail
        .get(5..11)
        .filter(|pair| pair.starts_with("\\u"))
        .and_then(|pair| hex(pair.get(2..)?));
    let pair = second.filter(|low| (0xdc00..0xe000).contains(low) && first < 0xdc00);
    match pair.and_then(|low| char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00)))
    {
        Some(c) => Some((c, 11)),
        None => Some((char::REPLACEMENT_CHARACTER, 5)),
    }
}

fn hex(digits: &str) -> Option<u32> {
    all(digits, |b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

/// The begin of the line before the lines of a hunk, in a unified diff.
const HUNK: &str = "@@ -";

/// The text with the lines of its hunks as they are in the files, without the marks `+`, `-` and space of a unified
/// diff; `None` if it has no hunk.
pub(super) fn undiff(raw: &str) -> Option<DecodedView> {
    let first = raw
        .starts_with(HUNK)
        .then_some(0)
        .or_else(|| Some(raw.find("\n@@ -")? + 1))?;
    let mut view = DecodedView::of_length(raw.len());
    let (head, hunks) = raw.split_at_checked(first)?;
    view.copied(head, 0);
    let mut at = first;
    let mut in_hunk = false;
    for line in hunks.split_inclusive('\n') {
        in_hunk =
            line.starts_with(HUNK) || in_hunk && line.starts_with(['+', '-', ' ', '\\', '\n']);
        let mark = match line.as_bytes().first() {
            // A view has no hunk, or it would have a view again.
            Some(b'@') if in_hunk => HUNK.len(),
            Some(b'+' | b'-' | b' ') if in_hunk => 1,
            Some(_) | None => 0,
        };
        if mark > 0 {
            view.replaced(None, at);
        }
        view.copied(line.get(mark..).unwrap_or_default(), at + mark);
        at += line.len();
    }
    Some(view)
}

/// The URL-decoded text, with `?` for invalid UTF-8; `None` if nothing is encoded.
pub(super) fn percent_decode(raw: &str) -> Option<DecodedView> {
    let mut view = DecodedView::of_length(raw.len());
    let mut done = 0;
    let mut at = 0;

    while let Some(found) = rest(raw, at).find('%') {
        let start = at + found;
        let bytes = percent_bytes(raw, start);
        at = start + 1;
        if bytes.is_empty() {
            continue;
        }
        view.copied(part(raw, done, start), done);
        let mut offset = start;
        for chunk in bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                view.replaced(Some(c), offset);
                offset += 3 * c.len_utf8();
            }
            for _ in chunk.invalid() {
                view.replaced(Some('?'), offset);
                offset += 3;
            }
        }
        done = start + 3 * bytes.len();
        at = done;
    }
    view.copied(rest(raw, done), done);
    (done > 0).then_some(view)
}

fn percent_bytes(raw: &str, start: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut at = start;
    while let Some(code) = raw.get(at..at + 3).and_then(|code| code.strip_prefix('%')) {
        let Some(value) = hex(code).and_then(|value| u8::try_from(value).ok()) else {
            break;
        };
        bytes.push(value);
        at += 3;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw_range(view: &DecodedView, part: &str) -> (usize, usize) {
        let start = view.text.find(part).unwrap();
        let raw = view.raw(&SecretSpan {
            start,
            end: start + part.len(),
            quoted: false,
        });
        (raw.start, raw.end)
    }

    #[test]
    fn a_view_maps_its_parts_to_the_original_text() {
        let raw = "a\u{1b}[31mbc\u{200b}d\u{1b}[0m e";
        let view = clean(raw).unwrap();
        assert_eq!(view.text, "abcd e");
        let (start, end) = raw_range(&view, "bcd");
        assert_eq!(raw.get(start..end), Some("bc\u{200b}d"));
        let raw = r#"x\u0061\"b\n\ud83d\ude00\q"#;
        let view = unescape(raw).unwrap();
        assert_eq!(view.text, "xa\"b\n😀\\q");
        assert_eq!(raw_range(&view, "a\"b"), (1, 10));
        assert_eq!(raw_range(&view, "😀"), (12, 24));
        let raw = "q=%C3%A4%20b%zz%ff";
        let view = percent_decode(raw).unwrap();
        assert_eq!(view.text, "q=ä b%zz?");
        assert_eq!(raw_range(&view, "ä "), (2, 11));
    }

    #[test]
    fn the_lines_of_a_hunk_lose_their_marks_and_other_lines_do_not() {
        let raw = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ f\n a: >-\n-  old\n+  new\ndiff --git\n+ y\n";
        let view = undiff(raw).unwrap();
        assert_eq!(
            view.text,
            "--- a/x\n+++ b/x\n1,2 +1,2 @@ f\na: >-\n  old\n  new\ndiff --git\n+ y\n"
        );
        let (start, end) = raw_range(&view, "old\n  new");
        assert_eq!(raw.get(start..end), Some("old\n+  new"));
        assert!(undiff(&view.text).is_none() && undiff("a\n+ b\n @@ -1\n").is_none());
    }

    #[test]
    fn a_text_without_escapes_has_no_view() {
        assert!(
            clean("ä\n\tb").is_none()
                && unescape("a\\q").is_none()
                && percent_decode("94 % %zz").is_none()
        );
    }
}
