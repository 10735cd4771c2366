//! JSON for terminals, pipes and programs; no character of it can move a cursor or turn the direction of writing.

use serde::Serialize;

use tarsy_core::visible::is_invisible;

/// A value on one line.
///
/// # Errors
/// When the value cannot be serialised.
pub fn line(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string(value).map(|json| escaped(&json))
}

/// A value on several indented lines.
///
/// # Errors
/// When the value cannot be serialised.
pub fn pretty(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(value).map(|json| escaped(&json))
}

/// The same JSON with each control or invisible character escaped: serde escapes only those below a space. Outside of
/// strings, line breaks are the only such characters in JSON.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if (c.is_control() && c != '\n') || is_invisible(c) || matches!(c, '\u{2028}' | '\u{2029}')
        {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn control_and_invisible_characters_are_escaped_without_changing_the_value() {
        let value = json!({"a\u{9b}": "x\u{202e}y\u{7f}\u{2066}\u{feff}\u{200f}\u{e0041}\u{1b}[2J\u{2028}é✓\n"});
        for text in [line(&value).unwrap(), pretty(&value).unwrap()] {
            assert!(
                !text.contains(|c: char| (c.is_control() && c != '\n') || is_invisible(c)),
                "{text:?}"
            );
            assert!(
                text.contains("é✓") && text.contains("\\udb40\\udc41"),
                "{text:?}"
            );
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }
}
