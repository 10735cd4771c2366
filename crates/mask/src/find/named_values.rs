//! Secrets whose name and value have no separator between them: XML elements, name-value columns, calls, sentences.

use super::word::Word;
use crate::bytes::{
    back, begins, byte, is_blank, is_opaque, is_quote, near_line_end, part, rest, skip, skip_near,
};
use crate::names::{Secrecy, is_password, secrecy};
use crate::spans::SecretSpan;
use crate::values::{Reach, is_harmless, is_name_or_uuid, secret_at, secret_word};

/// The largest distance between a name and its value, in bytes.
const MAX_DISTANCE: usize = 64;
/// The most words of a sentence that are read after a name.
const MAX_WORDS: usize = 8;

/// The secret that belongs to a word without a separator after it.
pub(super) fn find(word: Word<'_>) -> Option<SecretSpan> {
    let named = secrecy(word.name());
    if named == Secrecy::None {
        return None;
    }
    element(word, named)
        .or_else(|| named_value(word, named))
        .or_else(|| call(word, named))
        .or_else(|| (named == Secrecy::Strong).then(|| after_blank(word))?)
}

/// `<password type="plain">…</password>`.
fn element(word: Word<'_>, named: Secrecy) -> Option<SecretSpan> {
    let text = word.text;
    let before = byte(text, word.start.wrapping_sub(1));
    if before != b'<' && before != b':' {
        return None;
    }
    let attributes = part(text, word.end, near_line_end(text, word.end, 200));
    let close = attributes.find('>')?;
    if attributes.get(..close)?.ends_with('/') || close > 0 && !attributes.starts_with(' ') {
        return None;
    }
    content(text, word.end + close + 1, named)
}

/// The text of an XML element.
fn content(text: &str, start: usize, named: Secrecy) -> Option<SecretSpan> {
    let start = skip(text, start, |b| b.is_ascii_whitespace());
    let (start, close) = if rest(text, start).starts_with("<![CDATA[") {
        (start + 9, b']')
    } else {
        (start, b'<')
    };
    let mut near = rest(text, start).bytes().take(8_192);
    let length = near.position(|b| b == close)?;
    let value = part(text, start, start + length).trim_end();
    (!is_harmless(value, named)).then(|| SecretSpan::new(start, start + value.len()))
}

/// `name=KEY value=…`, `<name>KEY</name><value>…`, `key="KEY" value="…"`.
fn named_value(word: Word<'_>, named: Secrecy) -> Option<SecretSpan> {
    let text = word.text;
    let gap = |at: usize| {
        skip(text, at, |b| !b.is_ascii_alphanumeric() && b != b'\n').min(at + MAX_DISTANCE)
    };
    let mut at = skip(text, gap(word.end), |b| b == b'\n' || is_blank(b));
    for closing in ["name>", "key>"] {
        if begins(rest(text, at), closing) && byte(text, at.wrapping_sub(1)) == b'/' {
            at = skip(text, gap(at + closing.len()), |b| {
                b.is_ascii_whitespace() || b == b'<'
            });
        }
    }
    if !begins(rest(text, at), "value") && !begins(rest(text, at), "string>") {
        return None;
    }
    let after = skip(text, at, |b| b.is_ascii_alphanumeric());
    if byte(text, after) == b'>' {
        return content(text, after + 1, named);
    }
    let quoted = skip(text, after, |b| is_quote(b) || b == b'\\');
    let separator = skip(text, quoted, is_blank);
    if !matches!(byte(text, separator), b':' | b'=') {
        return None;
    }
    let start = skip(
        text,
        skip(text, separator, |b| matches!(b, b':' | b'=' | b'>')),
        is_blank,
    );
    secret_at(text, start, Reach::Word, named)
}

/// A call such as `setPassword("…")`.
fn call(word: Word<'_>, named: Secrecy) -> Option<SecretSpan> {
    let text = word.text;
    let at = skip(text, word.end, |b| b == b'(');
    let quote = skip(text, at, |b| b == b'\\');
    (at > word.end && is_quote(byte(text, quote)))
        .then(|| secret_at(text, at, Reach::Word, named))
        .flatten()
}

/// `PASSWORD '…'`, `login bob password …`, `Password   …`, `the password is …`.
fn after_blank(word: Word<'_>) -> Option<SecretSpan> {
    let text = word.text;
    let at = skip(text, word.end, is_blank);
    if at == word.end || b"\n\r\0-|<[(".contains(&byte(text, at)) {
        return None;
    }
    let password = is_password(
        &word
            .name()
            .to_ascii_lowercase()
            .replace(['_', '-', '.'], ""),
    );
    if is_quote(byte(text, at)) && password {
        let span = secret_word(text, at)?;
        return (!part(text, span.start, span.end).contains(' ')).then_some(span);
    }
    let end = skip_near(text, at, 256, |b| !b.is_ascii_whitespace());
    let value = part(text, at, end);
    let begins_line = word
        .before()
        .bytes()
        .all(|b| matches!(b, b' ' | b'\t' | b'-' | b'*'));
    let lone = matches!(byte(text, end), 0 | b'\n' | b'\r');
    if begins_line
        && (lone || at > word.end + 1 || byte(text, word.end) == b'\t')
        && is_likely(value)
    {
        return secret_word(text, at);
    }
    if password && follows_login(word) {
        return secret_word(text, at);
    }
    let is_said = ["is", "was", "to", "of", "0", "5", "7", "8"].contains(&value);
    let next = skip(text, end, is_blank);
    let token = part(
        text,
        next,
        skip_near(text, next, 256, |b| !b.is_ascii_whitespace()),
    );
    if is_said && next > end && is_likely(token.trim_matches(['"', '\'', '.', ',', '`'])) {
        return secret_word(text, next);
    }
    let random = is_opaque(value, 20) && !value.contains(['=', ':', '/', '(']);
    random
        .then(|| SecretSpan::new(at, end))
        .or_else(|| said(text, at))
}

/// `the password is now …`, `password for prod is: …`: the word after a verb, some words after the name.
fn said(text: &str, from: usize) -> Option<SecretSpan> {
    const VERBS: [&str; 8] = ["is", "was", "to", "are", "now", "as", "becomes", "equals"];
    let mut at = from;
    let mut says = false;
    for _ in 0..MAX_WORDS {
        let end = skip_near(text, at, MAX_DISTANCE, |b| !b.is_ascii_whitespace());
        let written = part(text, at, end);
        let word = written.trim_matches(['"', '\'', '`', '.', ',', ';', ':', '(', ')', '!', '*']);
        if says && is_random_looking(word) {
            return secret_word(text, at);
        }
        if written.ends_with(['.', ';']) || written.contains(['=', '/', '[', '{']) {
            return None;
        }
        says = VERBS.iter().any(|verb| word.eq_ignore_ascii_case(verb))
            || written.ends_with(':') && !word.is_empty();
        at = skip(text, end, is_blank);
        if at == end {
            return None;
        }
    }
    None
}

/// Whether a word of a sentence looks random: letters with digits, and no version, name, duration or UUID.
fn is_random_looking(word: &str) -> bool {
    let has_capitals = word.bytes().any(|b| b.is_ascii_uppercase());
    let is_version =
        word.contains('.') || word.starts_with(|c: char| c.is_ascii_digit()) && !has_capitals;
    is_opaque(word, 8) && is_likely(word) && !is_version && !is_name_or_uuid(word)
}

/// Whether a value is likely a secret: letters mixed with digits or other characters.
fn is_likely(value: &str) -> bool {
    let letters = value.bytes().any(|b| b.is_ascii_alphabetic());
    let others = value.bytes().any(|b| {
        !b.is_ascii_alphabetic() && !matches!(b, b'.' | b',' | b':' | b'-' | b'_' | b'\'' | b'"')
    });
    value.len() >= 6 && letters && others && !value.contains(['=', '(', '/', ':'])
}

/// Whether a login is directly before the word: in the same line of a netrc file, or in the lines above.
pub(super) fn follows_login(word: Word<'_>) -> bool {
    let from = back(
        word.text,
        word.start.saturating_sub(MAX_DISTANCE * 2),
        word.start,
        |b| b.is_ascii() && b != b';',
    );
    let before = part(word.text, from, word.start);
    before.contains("login ") || before.contains("machine ")
}
