//! Parses a scalar: a quoted string, a boolean, null, a number, else text.

use serde_json::{Number, Value};

/// The value of a word. An integer stays an integer. A number that JSON cannot represent (`nan`, `inf`, an integer of
/// thirty digits) is text. So is an integer with a leading zero, which is a name, and `~`, which is a folder.
pub(super) fn value(word: &str) -> Value {
    let word = word.trim();
    if let Some(text) = quoted(word) {
        return Value::String(text);
    }
    let is = |other: &str| word.eq_ignore_ascii_case(other);
    if is("true") || is("false") {
        return Value::Bool(is("true"));
    }
    if is("null") || is("none") {
        return Value::Null;
    }
    number(word).map_or_else(|| Value::String(word.to_owned()), Value::Number)
}

/// The text between quotes, if the quotes surround the whole word.
pub(super) fn quoted(word: &str) -> Option<String> {
    if let Some(text) = word
        .strip_prefix("\"\"\"")
        .and_then(|word| word.strip_suffix("\"\"\""))
    {
        return Some(text.to_owned());
    }
    if let Some(inner) = word
        .strip_prefix('"')
        .and_then(|word| word.strip_suffix('"'))
    {
        return serde_json::from_str(word).ok().or_else(|| lenient(inner));
    }
    single(word.strip_prefix('\'')?.strip_suffix('\'')?)
}

/// Decodes a string that JSON rejects: with line breaks, or with a backslash that escapes nothing, as models write it
/// in regular expressions. Such a backslash is kept.
fn lenient(inner: &str) -> Option<String> {
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return None,
            '\\' => match chars.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                escaped @ ('"' | '\\' | '/') => text.push(escaped),
                other => text.extend(['\\', other]),
            },
            c => text.push(c),
        }
    }
    Some(text)
}

/// Decodes a single-quoted string: the doubled quote of YAML and the escaped one of Python. Any other backslash is
/// kept.
fn single(inner: &str) -> Option<String> {
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            // An unescaped quote within the text: it is not a single string.
            '\'' => text.push(chars.next().filter(|next| *next == '\'')?),
            '\\' => match chars.next() {
                Some(escaped @ ('\'' | '"')) => text.push(escaped),
                Some(other) => text.extend(['\\', other]),
                None => text.push('\\'),
            },
            c => text.push(c),
        }
    }
    Some(text)
}

fn number(word: &str) -> Option<Number> {
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    let is_plain = digits
        .strip_prefix('.')
        .unwrap_or(digits)
        .starts_with(|c: char| c.is_ascii_digit())
        && digits
            .bytes()
            .all(|c| c.is_ascii_digit() || matches!(c, b'.' | b'e' | b'E' | b'+' | b'-'));
    let padded =
        digits.starts_with('0') && digits.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
    if !is_plain || padded {
        return None;
    }
    if digits.bytes().all(|c| c.is_ascii_digit()) {
        return word
            .parse::<i64>()
            .ok()
            .map(Number::from)
            .or_else(|| word.parse::<u64>().ok().map(Number::from));
    }
    Number::from_f64(word.parse().ok()?)
}
