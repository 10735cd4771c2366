//! Decodes one layer of base64, base32, hexadecimal and URL encoding. Encoded text with a secret in it is masked.

use std::borrow::Cow;

use crate::bytes::{all, back, byte, part, skip, table_of};
use crate::decoded_view::{self, DecodedView};
use crate::spans::{SecretSpan, Span};

/// A shorter run cannot contain a token of a known format.
const MIN_RUN: usize = 20;

/// A run of base64, base32 or hexadecimal digits, decoded.
#[derive(Debug)]
pub(crate) struct DecodedRun {
    pub(crate) span: SecretSpan,
    pub(crate) decoded: String,
}

/// Runs of base64, base32 or hexadecimal digits that decode to a text. Adds the ends of runs that the next line may
/// continue after a prefix.
pub(crate) fn encoded_runs(text: &str, open: &mut Vec<usize>) -> Vec<DecodedRun> {
    let mut runs = Vec::new();
    let mut at = 0;
    let bytes = text.as_bytes();
    // Looks at every 20th byte first: most words are shorter and are skipped in one step.
    while at + MIN_RUN <= bytes.len() {
        let window = bytes.get(at..at + MIN_RUN).unwrap_or_default();
        if let Some(gap) = window.iter().rposition(|b| !is_base64(*b)) {
            at += gap + 1;
            continue;
        }
        let found = encoded_run(text, at);
        open.extend(found.open_end(text));
        // The line below the run may begin with a word that looks like its end.
        let decoded =
            decoded_run(text, &found).or_else(|| decoded_run(text, &found.first_line(text)?));
        runs.extend(decoded.or_else(|| other_run(text, found.span)));
        at = found.span.end.max(at + 1);
    }
    runs
}

const BASE64: [bool; 256] =
    table_of(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_");

fn is_base64(b: u8) -> bool {
    BASE64.get(usize::from(b)).copied().unwrap_or(false)
}

/// A run of base64 characters that is not decoded yet.
struct EncodedRun {
    span: Span,
    /// The run has more than one line.
    is_wrapped: bool,
}

impl EncodedRun {
    /// The end of the line that another one may continue after a prefix, if the run is a whole line of an encoded
    /// text.
    fn open_end(&self, text: &str) -> Option<usize> {
        // A word in the line below, with more words after it, does not continue the run.
        let line = if byte(text, self.span.end) == b' ' {
            self.first_line(text)?.span
        } else {
            self.span
        };
        let is_line = !self.is_wrapped || line.end < self.span.end;
        let is_whole = is_wrapped_length(line.end - line.start)
            && matches!(byte(text, line.end), b'\n' | b'\r');
        (is_line && is_whole).then_some(line.end)
    }

    /// The part in the first line, if there are more.
    fn first_line(&self, text: &str) -> Option<Self> {
        let start = self.span.start;
        let end = skip(text, skip(text, start, is_base64), |b| b == b'=').min(self.span.end);
        self.is_wrapped.then(|| Self {
            span: Span::new(start, end),
            is_wrapped: false,
        })
    }
}

/// The lines of keys of OpenSSH.
const OPENSSH_LINE: usize = 70;

/// Whether programs wrap encoded text to lines of this length.
fn is_wrapped_length(length: usize) -> bool {
    length >= 40 && length.is_multiple_of(4) || length == OPENSSH_LINE
}

/// The run that begins here, with the lines that it is wrapped to.
fn encoded_run(text: &str, start: usize) -> EncodedRun {
    let mut end = skip(text, start, is_base64);
    let length = end - start;
    let mut is_wrapped = false;
    let mut line = length;
    while is_wrapped_length(length) && line == length {
        let next = skip(text, end, |b| matches!(b, b'\r' | b'\n'));
        let next_start = skip(text, next, |b| b == b' ' || b == b'\t');
        if next == end {
            break;
        }
        let next_end = skip(text, next_start, is_base64);
        line = next_end - next_start;
        let after = skip(text, next_end, |b| b == b'=');
        if line == 0
            || line > length
            || !matches!(byte(text, after), 0 | b'\n' | b'\r' | b' ' | b'"')
        {
            break;
        }
        is_wrapped = true;
        end = next_end;
    }
    EncodedRun {
        span: Span::new(start, skip(text, end, |b| b == b'=').min(end + 2)),
        is_wrapped,
    }
}

fn decoded_run(text: &str, run: &EncodedRun) -> Option<DecodedRun> {
    let raw = run.span.text(text);
    let decode = |from: usize| {
        let tail = raw.get(from..).filter(|tail| tail.len() >= MIN_RUN)?;
        let head = text_of(&decode(tail.bytes().take(MIN_RUN)))?;
        if head.is_empty() {
            None
        } else {
            text_of(&decode(tail.bytes()))
        }
    };
    // The text before the run may use the same characters: `path/<base64>`.
    let first = decode(0).or_else(|| {
        if run.is_wrapped {
            return None;
        }
        let joints = raw
            .bytes()
            .enumerate()
            .filter(|(_, b)| matches!(b, b'/' | b'-' | b'_'));
        joints.take(4).find_map(|(at, _)| decode(at + 1))
    })?;
    Some(DecodedRun {
        span: run.span.into(),
        decoded: first,
    })
}

/// A run of hexadecimal digits, also after `0x` or `\\x`, or of base32.
fn other_run(text: &str, span: Span) -> Option<DecodedRun> {
    let run = span.text(text).trim_end_matches('=');
    let digits = run
        .strip_prefix('x')
        .or_else(|| run.strip_prefix("0x"))
        .unwrap_or(run);
    let decode: fn(&str) -> Vec<u8> =
        if digits.len().is_multiple_of(2) && all(digits, |b| b.is_ascii_hexdigit()) {
            unhex
        } else if all(run, |b| {
            b.is_ascii_uppercase() || (b'2'..=b'7').contains(&b)
        }) {
            unbase32
        } else {
            return None;
        };
    // Most runs are digests, which are no text from their first bytes on.
    let head = text_of(&decode(part(digits, 0, 16)))?;
    if head.is_empty() {
        return None;
    }
    let decoded = text_of(&decode(digits))?;
    Some(DecodedRun {
        span: SecretSpan::new(span.start, skip(text, span.end, |b| b == b'=')),
        decoded,
    })
}

fn unhex(digits: &str) -> Vec<u8> {
    digits
        .as_bytes()
        .chunks_exact(2)
        .map(|pair| pair.iter().fold(0, |byte, b| byte << 4 | digit(*b)))
        .collect()
}

fn digit(b: u8) -> u8 {
    char::from(b)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
        .unwrap_or_default()
}

/// RFC 4648, section 6.
fn unbase32(letters: &str) -> Vec<u8> {
    unpacked(
        letters.bytes().map(|b: u8| {
            if b.is_ascii_uppercase() {
                b - b'A'
            } else {
                b - b'2' + 26
            }
        }),
        5,
    )
}

/// The bytes that values of this many bits make up.
fn unpacked(values: impl Iterator<Item = u8>, width: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.size_hint().1.unwrap_or_default());
    let mut bits = 0_u32;
    let mut have = 0;

    for value in values {
        bits = bits << width | u32::from(value);
        have += width;
        if have >= 8 {
            have -= 8;
            bytes.push(u8::try_from((bits >> have) & 0xff).unwrap_or_default());
        }
    }
    bytes
}

fn decode(letters: impl Iterator<Item = u8>) -> Vec<u8> {
    unpacked(
        letters.filter_map(|letter: u8| {
            Some(match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a' + 26,
                b'0'..=b'9' => letter - b'0' + 52,
                b'+' | b'-' => 62,
                b'/' | b'_' => 63,
                _ => return None,
            })
        }),
        6,
    )
}

/// The bytes as text: UTF-8, or UTF-16 with ASCII only. `None` for binary data.
fn text_of(bytes: &[u8]) -> Option<String> {
    let wide = bytes.len() > 4 && bytes.iter().skip(1).step_by(2).all(|b| *b == 0);
    let bytes = if wide {
        bytes.iter().copied().filter(|b| *b != 0).collect()
    } else {
        Cow::Borrowed(bytes)
    };
    let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    (bytes.len() <= text.len() + 3
        && text
            .chars()
            .all(|c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t' | '\u{1b}')))
    .then(|| text.to_owned())
}

/// URL-encoded runs, decoded, with their offsets: each run as a whole, and its values.
pub(crate) fn percent_runs(text: &str) -> Vec<(usize, DecodedView)> {
    let mut runs = Vec::new();
    let mut done = 0;
    while let Some(offset) = text.get(done..).and_then(|tail| tail.find('%')) {
        let at = done + offset;
        if !(byte(text, at + 1).is_ascii_hexdigit() && byte(text, at + 2).is_ascii_hexdigit()) {
            done = at + 1;
            continue;
        }
        let start = back(text, done.max(at.saturating_sub(65_536)), at, in_run);
        let end = skip(text, at, in_run);
        let run = part(text, start, end);
        runs.extend(decoded_view::percent_decode(run).map(|view| (start, view)));
        let mut from = 0;
        for piece in run.split(['?', '&', '=']) {
            if piece.len() < run.len() && piece.len() > 8 && piece.contains('%') {
                runs.extend(decoded_view::percent_decode(piece).map(|view| (start + from, view)));
            }
            from += piece.len() + 1;
        }
        done = end.max(at + 1);
    }
    runs
}

fn in_run(b: u8) -> bool {
    !b.is_ascii_whitespace()
        && !matches!(b, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\')
        && b.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base64_run_is_decoded_once_if_it_contains_text() {
        let decoded = |text: &str| {
            encoded_runs(text, &mut Vec::new())
                .into_iter()
                .map(|run| run.decoded)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            decoded("x aGVsbG8gd29ybGQsIGhlbGxvIQ== y"),
            vec!["hello world, hello!"]
        );
        assert_eq!(
            decoded("path/aGVsbG8gd29ybGQsIGhlbGxvIQ"),
            vec!["hello world, hello!"]
        );
        assert_eq!(
            decoded("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"),
            Vec::<String>::new()
        );
        assert_eq!(
            decoded(r"x \x68656c6c6f2c20776f726c64"),
            vec!["hello, world"]
        );
        assert_eq!(decoded("x NBSWY3DPFQQHO33SNRSCC==="), vec!["hello, world!"]);
        let wrapped = "UDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEy\nMzQ1Njc4OTA=";
        assert_eq!(
            decoded(wrapped),
            vec!["P12345678901234567890123456789012345678 90".replace(' ', "")]
        );
    }
}
