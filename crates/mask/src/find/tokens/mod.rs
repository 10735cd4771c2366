//! Tokens that a text shows without a name: those of known formats (AWS, GitHub, Slack, …), and random words with a
//! prefix or after the name of their issuer.
//!
//! The issuers publish the formats; the public rule sets of secret scanners collect them. `formats.txt` has them with
//! their sources.

mod pattern;
mod random_words;

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

use self::pattern::Pattern;
use crate::bytes::{CharCounts, byte, part, skip};
use crate::prefilter::Prefilter;
use crate::spans::SecretSpan;

/// A pattern, issuer, source and date in each line.
const FORMATS: &str = include_str!("formats.txt");

/// A shorter line is not wrapped.
const MIN_WRAPPED: usize = 36;

/// All formats, compiled.
struct Formats {
    /// The patterns that are found by a text.
    searched: Vec<Pattern>,
    finder: AhoCorasick,
    prefilter: Prefilter,
    /// The patterns that are tried at each long word.
    words: Vec<Pattern>,
}

static COMPILED: LazyLock<Option<Formats>> = LazyLock::new(|| {
    let patterns = rows().filter_map(|row| Pattern::parse(row.first()?));
    let (searched, words): (Vec<_>, Vec<_>) =
        patterns.partition(|pattern| pattern.anchor.is_some());
    let texts = || searched.iter().filter_map(Pattern::text);
    let builder = AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .match_kind(MatchKind::Standard)
        .build(texts());
    let prefilter = Prefilter::new(texts(), 3, 16);
    Some(Formats {
        finder: builder.ok()?,
        prefilter,
        searched,
        words,
    })
});

/// The columns of each row.
fn rows() -> impl Iterator<Item = Vec<&'static str>> {
    let lines = FORMATS
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split('|').map(str::trim).collect())
}

/// Finds every token of a known format, and every random word that is likely one.
pub(crate) fn find(text: &str, spans: &mut Vec<SecretSpan>) {
    let Some(Formats {
        searched,
        finder,
        prefilter,
        words,
    }) = COMPILED.as_ref()
    else {
        return;
    };
    let mut done = 0;
    let windows = prefilter.windows(text, |_| true).into_iter();
    for found in
        windows.flat_map(|(from, to)| finder.find_overlapping_iter(Input::new(text).span(from..to)))
    {
        if found.start() < done {
            continue;
        }
        let token = searched
            .get(found.pattern().as_usize())
            .and_then(|format| format.around(text, found.start()));
        let token = token.filter(|(start, _)| begins_word(text, *start));
        if let Some((start, end)) = token.filter(|(start, end)| !is_plain_json(text, *start, *end))
        {
            let end = wrapped(text, start, end);
            done = end;
            spans.push(SecretSpan::new(start, end));
        }
    }
    random_words::find(text, words, spans);
}

/// Whether a word may begin here: a letter before it would be a part of it, and a backslash begins an escape.
fn begins_word(text: &str, start: usize) -> bool {
    start == 0 || {
        let before = byte(text, start - 1);
        let of_hash = byte(text, start) == b'$';
        (!before.is_ascii_alphanumeric() || of_hash) && before != b'\\'
    }
}

/// Whether a text that begins as a JSON Web Token is only JSON in base64: it has no dot.
fn is_plain_json(text: &str, start: usize, end: usize) -> bool {
    let token = part(text, start, end);
    token.starts_with("eyJ") && !token.starts_with("eyJrIjoi") && !token.contains('.')
}

/// The end of a token that may be wrapped: it continues in the lines below that have a single word. A short line is the
/// last one.
fn wrapped(text: &str, start: usize, end: usize) -> usize {
    let mut end = end;
    let mut length = end - start;
    while length >= MIN_WRAPPED {
        let next = skip(text, end, |b| matches!(b, b'\r' | b'\n'));
        let line = skip(text, next, |b| matches!(b, b' ' | b'\t'));
        let last = skip(text, line, in_wrapped_line);
        let lone = next > end && matches!(byte(text, last), 0 | b'\n' | b'\r') && last - line >= 12;
        let kinds = CharCounts::count(part(text, line, last));
        if !lone || kinds.digits == 0 || kinds.upper == 0 || kinds.lower == 0 {
            break;
        }
        length = last - line;
        end = last;
    }
    end
}

fn in_wrapped_line(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'+' | b'/' | b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_pattern_an_issuer_a_source_and_a_date() {
        const SOURCES: [&str; 4] = ["gitleaks", "betterleaks", "kingfisher", "issuer"];
        assert_eq!(
            rows()
                .filter(|row: &Vec<&'static str>| {
                    let [pattern, issuer, source, date] = row.as_slice() else {
                        return true;
                    };
                    let is_date =
                        date.len() == 10 && date.bytes().all(|b| b.is_ascii_digit() || b == b'-');
                    let read = Pattern::parse(pattern);
                    let is_long = read
                        .as_ref()
                        .is_some_and(|read| read.text().is_none_or(|text| text.len() >= 2));
                    !is_long || issuer.is_empty() || !SOURCES.contains(source) || !is_date
                })
                .collect::<Vec<_>>(),
            Vec::<Vec<&str>>::new()
        );
        assert!(rows().count() > 300);
    }

    #[test]
    fn a_format_stands_in_one_row() {
        let mut patterns: Vec<&str> = rows().filter_map(|row| row.first().copied()).collect();
        let count = patterns.len();
        patterns.sort_unstable();
        patterns.dedup();
        assert_eq!(patterns.len(), count);
    }
}
