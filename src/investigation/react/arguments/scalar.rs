//! A plain word as a value: quoted text, a flag, nothing, a number, else the text.

use serde_json::{Number, Value};

/// The value of a word. A number stays exactly what it is or becomes text: no whole number becomes a fraction, and
/// what JSON cannot hold (`nan`, `inf`, an integer of thirty digits, one that begins with a zero) is text.
pub(super) fn value(word: &str) -> Value {
    let word = word.trim();
    if let Some(text) = quoted(word) {
        return Value::String(text);
    }
    match word.to_ascii_lowercase().as_str() {
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        "null" | "none" | "~" => return Value::Null,
        _ => {}
    }
    number(word).map_or_else(|| Value::String(word.to_owned()), Value::Number)
}

/// The text between quotes, if the word is nothing else.
pub(super) fn quoted(word: &str) -> Option<String> {
    if word.starts_with('"') {
        return serde_json::from_str(word).ok();
    }
    let inner = word.strip_prefix('\'')?.strip_suffix('\'')?;
    let text = inner.replace("''", "\0");
    // A quote in the middle ends the text there.
    (!text.contains('\'')).then(|| text.replace('\0', "'"))
}

fn number(word: &str) -> Option<Number> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let is_plain = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    let padded = digits.starts_with('0') && digits.chars().nth(1).is_some_and(|c| c.is_ascii_digit());
    if !is_plain || padded {
        return None;
    }
    if digits.chars().all(|c| c.is_ascii_digit()) {
        return word.parse::<i64>().ok().map(Number::from).or_else(|| word.parse::<u64>().ok().map(Number::from));
    }
    Number::from_f64(word.parse().ok()?)
}
