//! Random words: those of a format without a rare text, those with a short prefix (`abc_…`), and those directly after
//! the name of an issuer or of a scheme (`consul …`, `ApiKey …`).
//!
//! A random word alone is no secret: it may be a digest, a certificate or an id.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::begins_word;
use super::pattern::Pattern;
use crate::bytes::{CharCounts, all, back, byte, part, skip, table_of};
use crate::spans::SecretSpan;

/// Shorter words are not looked at.
const MIN_WORD: usize = 20;
/// A part after a prefix that is shorter may be the name of a thing.
const MIN_RANDOM: usize = 20;
const MAX_PREFIX: usize = 24;
/// The distance between the name of an issuer and the word, in bytes.
const MAX_DISTANCE: usize = 4;
/// The longest name of an issuer.
const MAX_NAME: usize = 24;

/// Names of issuers and of authorization schemes.
const ISSUERS: &str = include_str!("issuers.txt");
static NAMES: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    ISSUERS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
        .collect()
});

/// Prefixes of ids and digests.
const NO_TOKENS: [&str; 62] = [
    "sha1", "sha224", "sha256", "sha384", "sha512", "md5", "crc32", "blake3", "nonce", "digest",
    "etag", "req", "request", "res", "resp", "msg", "message", "call", "toolu", "srvtoolu", "tool",
    "chatcmpl", "cmpl", "gen", "run", "thread", "asst", "step", "file", "batch", "evt", "event",
    "cus", "sub", "pi", "in", "ch", "txn", "price", "prod", "acct", "cs", "seti", "pm", "card",
    "po", "org", "proj", "project", "user", "team", "wf", "job", "task", "id", "uid", "trace",
    "span", "rs", "ws", "image", "build",
];

/// Finds the random words that are likely tokens.
pub(super) fn find(text: &str, formats: &[Pattern], spans: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    // Looks at every 20th byte first: most words are shorter and are skipped in one step.
    while at + MIN_WORD <= bytes.len() {
        let window = bytes.get(at..at + MIN_WORD).unwrap_or_default();
        if let Some(gap) = window.iter().rposition(|b| !in_word(*b)) {
            at += gap + 1;
            continue;
        }
        let end = skip(text, at, in_word);
        if begins_word(text, at) {
            spans.extend(token(text, at, end, formats));
        }
        at = end;
    }
}

const IN_WORD: [bool; 256] =
    table_of(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./+~");

fn in_word(b: u8) -> bool {
    IN_WORD.get(usize::from(b)).copied().unwrap_or(false)
}

fn token(text: &str, start: usize, end: usize, formats: &[Pattern]) -> Option<SecretSpan> {
    let fitting = formats
        .iter()
        .filter(|format| format.least() <= end - start);
    let known = fitting
        .filter_map(|format| format.at(text, start))
        .find(|known| *known >= start + MIN_WORD);
    if let Some(end) = known {
        return Some(SecretSpan::new(start, end));
    }
    // No prefix is read further than this.
    let near = part(
        text,
        start,
        text.floor_char_boundary(end.min(start + 1_024)),
    );
    let word = near.trim_end_matches(['.', '-', '/']);
    if is_prefixed(word) || is_random(word) && follows_issuer(text, start) {
        return Some(SecretSpan::new(start, skip(text, end, |b| b == b'=')));
    }
    None
}

/// `abc_` or `abc-v1-` before a random part.
fn is_prefixed(word: &str) -> bool {
    // Most words have no capitals.
    if CharCounts::count(word).upper < 3 {
        return false;
    }
    let head = part(
        word,
        0,
        word.floor_char_boundary(MAX_PREFIX.min(word.len())),
    );
    let mut from = 0;
    for (at, _) in head.match_indices(['_', '-']).take(3) {
        let piece = part(head, from, at);
        let is_first = from == 0;
        let is_name = piece.len() >= 2 - usize::from(!is_first)
            && all(piece, |b| b.is_ascii_alphanumeric())
            && !(is_first && (NO_TOKENS.contains(&piece) || all(piece, |b| b.is_ascii_digit())))
            && CharCounts::count(piece).digits < 3;
        if !is_name {
            return false;
        }
        let rest = part(word, at + 1, word.len());
        if all(rest, |b| b.is_ascii_alphanumeric() || b == b'_') && is_mixed(rest, MIN_RANDOM) {
            return true;
        }
        from = at + 1;
    }
    false
}

/// Whether letters and digits alternate as they do in random text of both cases, and in no name.
fn is_mixed(word: &str, min_bytes: usize) -> bool {
    let kinds = CharCounts::count(word);
    if word.len() < min_bytes || kinds.lower < 3 || kinds.upper < 3 || kinds.digits < 2 {
        return false;
    }
    let kind = |b: u8| {
        (
            b.is_ascii_lowercase(),
            b.is_ascii_uppercase(),
            b.is_ascii_digit(),
        )
    };
    let changes = word
        .as_bytes()
        .windows(2)
        .filter(|pair| matches!(pair, [a, b] if kind(*a) != kind(*b)))
        .count();
    changes * 100 >= word.len() * 42
}

/// Whether a word is a random one: of both cases, hexadecimal, or a UUID.
fn is_random(word: &str) -> bool {
    let is_hex = word.len() >= 32
        && all(word, |b| b.is_ascii_hexdigit() || b == b'-')
        && word.matches('-').count() <= 4;
    let is_word = all(word, |b| b.is_ascii_alphanumeric() || b"_-+/".contains(&b));
    is_hex && CharCounts::count(word).digits > 4 || is_word && is_mixed(word, MIN_RANDOM)
}

/// Whether the word directly before this one is the name of an issuer.
fn follows_issuer(text: &str, start: usize) -> bool {
    let gap = back(text, start.saturating_sub(MAX_DISTANCE), start, |b| {
        matches!(b, b' ' | b'\t' | b':' | b'=' | b'"' | b'\'')
    });
    if gap == start {
        return false;
    }
    let name = back(text, gap.saturating_sub(MAX_NAME + 1), gap, |b| {
        b.is_ascii_alphanumeric()
    });
    let name = part(text, name, gap);
    let before = byte(text, (gap - name.len()).wrapping_sub(1));
    let is_word = !matches!(before, b'_' | b'-' | b'/' | b'.' | b'@');
    is_word
        && name.len() >= 3
        && name.len() <= MAX_NAME
        && NAMES.contains(name.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_word_with_a_prefix_or_behind_an_issuer_is_a_token() {
        let found = |text: &str| {
            let mut spans = Vec::new();
            find(text, &[], &mut spans);
            spans
                .iter()
                .map(|span| text.get(span.start..span.end).unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let random = "aX4mZ9qLw2Rt7KbN0vYc5D";
        assert_eq!(
            found(&format!("used abq_{random}, and")),
            [format!("abq_{random}")]
        );
        assert_eq!(
            found(&format!("used abq-v1-{random}")),
            [format!("abq-v1-{random}")]
        );
        assert_eq!(found(&format!("Linode {random}")), [random]);
        assert_eq!(
            found("consul: 3f1c9a52-77b0-4d1e-9c54-0a1b2c3d4e5f"),
            ["3f1c9a52-77b0-4d1e-9c54-0a1b2c3d4e5f"]
        );
        for text in [
            random.to_owned(),
            format!("req_{random}"),
            format!("sha512-{random}"),
            format!("myconsul {random}"),
            "checkout-7d9f8b6c5d4e3f2a1b0c-x2x8p".to_owned(),
            "test_HttpServerReturnsNotFoundForUnknownPath2".to_owned(),
            "https://example.com/a_b/SomeLongPathWithWords12".to_owned(),
        ] {
            assert_eq!(found(&text), Vec::<String>::new(), "{text}");
        }
    }
}
