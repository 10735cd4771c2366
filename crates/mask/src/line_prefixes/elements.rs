//! Recognises the elements of a prefix at the begin of a line of a log.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::bytes::{all, byte, is_blank, is_word, part, skip_near};
use crate::names::{Secrecy, secrecy};

/// A longer prefix is not recognised.
const MAX_PREFIX: usize = 256;
const MAX_ELEMENTS: usize = 10;
const LEVELS: [&str; 13] = [
    "trace", "debug", "info", "notice", "warn", "warning", "error", "err", "fatal", "critical",
    "panic", "stdout", "stderr",
];
const MONTHS_AND_DAYS: [&str; 19] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Mon",
    "Tue", "Wed", "Thu", "Fri", "Sat", "Sun",
];
const EXTENSIONS: [&str; 12] = [
    ".yaml",
    ".yml",
    ".json",
    ".txt",
    ".log",
    ".conf",
    ".env",
    ".properties",
    ".cfg",
    ".ini",
    ".toml",
    ".xml",
];

/// The position of a line in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinePosition {
    First,
    Later,
}

/// The prefix of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    /// The length in bytes, with the blank after the prefix; 0 if the line has none.
    pub(super) length: usize,
    /// The same for all lines of a source.
    pub(super) identity: u64,
}

#[derive(Clone, Copy, Debug)]
struct Element {
    /// The end of the name of the source; `None` for a time, a level or a number, another one in each line.
    name_end: Option<usize>,
    end: usize,
    /// The text of the line begins directly after it.
    is_last: bool,
}

impl Prefix {
    pub(super) fn new(line: &str, position: LinePosition) -> Self {
        let line =
            part(line, 0, line.floor_char_boundary(MAX_PREFIX)).trim_end_matches(['\n', '\r']);
        let mut hash = DefaultHasher::new();
        let mut end = 0;
        for _ in 0..MAX_ELEMENTS {
            let start = skip_blanks(line, end);
            let Some(element) = element(line, start) else {
                break;
            };
            match element.name_end {
                Some(name_end) => part(line, start, name_end).hash(&mut hash),
                None => hash.write_u8(0),
            }
            end = element.end;
            if element.is_last {
                return Self {
                    length: end,
                    identity: hash.finish(),
                };
            }
        }
        if position == LinePosition::First {
            end = label(line, end).unwrap_or(end);
        }
        Self {
            length: end + usize::from(end > 0 && is_blank(byte(line, end))),
            identity: hash.finish(),
        }
    }
}

fn skip_blanks(line: &str, at: usize) -> usize {
    skip_near(line, at, MAX_PREFIX, is_blank)
}

fn varying(end: usize) -> Element {
    Element {
        name_end: None,
        end,
        is_last: false,
    }
}

fn element(line: &str, at: usize) -> Option<Element> {
    let name = |end: usize| Element {
        name_end: Some(end),
        ..varying(end)
    };
    let end = skip_near(line, at, MAX_PREFIX, |b| !is_blank(b));
    let token = part(line, at, end);
    match token.bytes().next()? {
        b'[' => {
            let close = at + part(line, at, line.len()).find(']')? + 1;
            let inner = part(line, at + 1, close - 1);
            let is_json = inner.is_empty() || inner.contains(['"', '{', ',', '\'']);
            let end = if byte(line, close) == b':' {
                close + 1
            } else {
                close
            };
            let is_end = end >= line.len() || is_blank(byte(line, end));
            let is_time =
                all(inner, |b| b.is_ascii_digit() || !b.is_ascii_alphabetic()) || is_level(inner);
            (!is_json && is_end).then(|| if is_time { varying(end) } else { name(end) })
        }
        b'<' => {
            let digits = token
                .strip_prefix('<')?
                .trim_end_matches(|c: char| c.is_ascii_digit())
                .strip_suffix('>')?;
            (!digits.is_empty() && all(digits, |b| b.is_ascii_digit())).then(|| varying(end))
        }
        b'|' | b'>' | b'#' if token.len() == 1 => Some(varying(end)),
        b'/' if token == "//" => Some(varying(end)),
        b'0'..=b'9' if is_time(token) => Some(varying(end)),
        b'0'..=b'9' => line_number(line, at).or_else(|| located(token, at)),
        _ if token == "│" || is_level(token) => Some(varying(end)),
        b'F' | b'P' if token.len() == 1 && at > 0 => Some(varying(end)),
        _ if is_klog(token) => Some(varying(end)),
        _ if MONTHS_AND_DAYS.contains(&token.trim_end_matches(',')) => {
            Some(varying(date(line, end)))
        }
        _ => located(token, at).or_else(|| named(line, at, end).map(name)),
    }
}

/// `2026-01-02T03:04:05.678Z`, `03:04:05,678`, `1700000000.5`.
fn is_time(token: &str) -> bool {
    let token = token.trim_end_matches(':');
    let digits = token.bytes().filter(u8::is_ascii_digit).count();
    let signs = token.bytes().filter(|b| b":-/.,+".contains(b)).count();
    let others = all(token, |b| b.is_ascii_digit() || b":-/.,+TZ".contains(&b));
    others && (digits >= 5 && signs >= 2 || digits >= 10)
}

fn is_level(token: &str) -> bool {
    let token = token.trim_end_matches([':', '|']);
    LEVELS.iter().any(|level| token.eq_ignore_ascii_case(level))
}

/// `I0102`, the begin of a line of klog; its later elements follow.
fn is_klog(token: &str) -> bool {
    let digits = token.strip_prefix(['I', 'W', 'E', 'F']);
    digits.is_some_and(|digits| digits.len() == 4 && all(digits, |b| b.is_ascii_digit()))
}

/// The end of `Jan  2` after the name of a month.
fn date(line: &str, end: usize) -> usize {
    let start = skip_blanks(line, end);
    let day = skip_near(line, start, 3, |b| b.is_ascii_digit());
    let is_end = day >= line.len() || is_blank(byte(line, day));
    if day > start && day - start <= 2 && is_end {
        day
    } else {
        end
    }
}

/// The number of a line: `12:`, `12-`, `12|`, or with a tab after it.
fn line_number(line: &str, at: usize) -> Option<Element> {
    let digits = skip_near(line, at, 9, |b| b.is_ascii_digit());
    let (end, is_last) = match byte(line, digits) {
        b'\t' => (digits, false),
        b':' | b'|' | b'-' => (digits + 1, true),
        b' ' if byte(line, digits + 1) == b'|' => (digits + 2, false),
        _ => return None,
    };
    Some(Element {
        is_last,
        ..varying(end)
    })
}

/// The end of a name: `web-1  |`, `host shop[17]:`, `pod container`.
fn named(line: &str, at: usize, end: usize) -> Option<usize> {
    let token = part(line, at, end);
    let next = skip_blanks(line, end);
    // A table has such a cell, too, but not at the begin of a line.
    if at == 0
        && is_plain(token)
        && byte(line, next) == b'|'
        && (next + 1 >= line.len() || is_blank(byte(line, next + 1)))
    {
        return Some(next + 1);
    }
    if token.ends_with("]:") && token.contains('[') {
        return Some(end);
    }
    if !is_plain(token) || next != end + 1 {
        return None;
    }
    let second_end = skip_near(line, next, MAX_PREFIX, |b| !is_blank(b));
    let second = part(line, next, second_end);
    if second.ends_with("]:") && second.contains('[') {
        return Some(second_end);
    }
    let is_end = second_end >= line.len() || is_blank(byte(line, second_end));
    (is_pod(token) && is_plain(second) && is_end).then_some(second_end)
}

/// A file name with the number of a line, as grep prints it: `etc/a.yaml:12:`, `etc/a.yaml-12-`, `a.yaml:`.
fn located(token: &str, at: usize) -> Option<Element> {
    let name = token
        .bytes()
        .take_while(|b| is_word(*b) || *b == b'/')
        .count();
    let (path, extension) = EXTENSIONS.iter().find_map(|extension| {
        let at = part(token, 0, name).find(extension)?;
        let after = byte(token, at + extension.len());
        (!after.is_ascii_alphanumeric()).then_some((at, extension.len()))
    })?;
    let mut end = path + extension;
    if !matches!(byte(token, end), b':' | b'-') {
        return None;
    }
    end += 1;
    let digits = skip_near(token, end, 9, |b| b.is_ascii_digit());
    let end = if digits > end && matches!(byte(token, digits), b':' | b'-') {
        digits + 1
    } else {
        end
    };
    Some(Element {
        name_end: Some(at + path + extension),
        end: at + end,
        is_last: true,
    })
}

fn is_plain(token: &str) -> bool {
    all(token, |b| is_word(b) || b == b'/')
        && token.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// Whether a word may be the name of a pod: `web-7d9f8b6c5-x2x8p`, `db-0`.
fn is_pod(token: &str) -> bool {
    token.contains('-')
        && token.bytes().any(|b| b.is_ascii_digit())
        && all(token, |b: u8| {
            b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.')
        })
}

/// The end of a label that a program writes before a whole text: `Echo:`, `Output of the command:`.
fn label(line: &str, from: usize) -> Option<usize> {
    let start = skip_blanks(line, from);
    let colon = part(line, start, line.len()).find(": ")?;
    let label = part(line, start, start + colon);
    let is_label = label.len() <= 48
        && label.starts_with(|c: char| c.is_ascii_alphabetic())
        && all(label, |b| b.is_ascii_alphanumeric() || b == b' ')
        && secrecy(label) == Secrecy::None;
    is_label.then_some(start + colon + 1)
}
