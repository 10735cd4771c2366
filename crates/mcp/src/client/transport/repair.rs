//! Repairs a message that is nearly JSON: half of a character, `NaN`, text in another encoding.

use std::borrow::Cow;

/// The words for numbers that JSON does not have. They become `null`.
const NO_NUMBERS: [&str; 5] = ["-Infinity", "+Infinity", "Infinity", "-NaN", "NaN"];
const REPLACEMENT: &str = "\\ufffd";

/// The text, with U+FFFD for what is no UTF-8.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Whether a text may have half of a character. A parser that only skips a text does not notice one.
pub(super) fn may_have_half_character(text: &str) -> bool {
    text.as_bytes()
        .windows(3)
        .any(|window| window.eq_ignore_ascii_case(b"\\ud"))
}

/// The same JSON with U+FFFD for each half of a character in its texts, an escape for each control character in them,
/// and `null` for numbers that are none or too large.
pub(super) fn repaired(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    let mut in_text = false;
    while let Some(letter) = rest.chars().next() {
        let (written, length) = match (in_text, letter) {
            (true, '\u{0}'..='\u{1f}') => {
                // A control character that JSON wants escaped.
                out.push_str(&format!("\\u{:04x}", u32::from(letter)));
                ("", letter.len_utf8())
            }
            (true, '\\') => escape(rest),
            (false, 'N' | 'I' | '-' | '+' | '0'..='9') => number(rest),
            (_, letter) => {
                in_text ^= letter == '"';
                (
                    rest.get(..letter.len_utf8()).unwrap_or_default(),
                    letter.len_utf8(),
                )
            }
        };
        out.push_str(written);
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}

/// The replacement of a number at the beginning of `rest`, and the replaced length.
fn number(rest: &str) -> (&str, usize) {
    if let Some(word) = NO_NUMBERS.iter().find(|word| rest.starts_with(**word)) {
        return ("null", word.len());
    }
    let end = rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'));
    let length = end.unwrap_or(rest.len()).max(1);
    let digits = rest.get(..length).unwrap_or_default();
    let is_infinite = digits.parse::<f64>().is_ok_and(f64::is_infinite);
    (if is_infinite { "null" } else { digits }, length)
}

/// The replacement of an escape at the beginning of `rest`, and the replaced length.
fn escape(rest: &str) -> (&str, usize) {
    let as_it_is = |length: usize| {
        let length = if rest.is_char_boundary(length) && length <= rest.len() {
            length
        } else {
            rest.len().min(1)
        };
        (rest.get(..length).unwrap_or_default(), length)
    };
    match unit(rest) {
        Some(0xd800..=0xdbff) => match rest.get(6..).and_then(unit) {
            Some(0xdc00..=0xdfff) => as_it_is(12),
            Some(_) | None => (REPLACEMENT, 6),
        },
        Some(0xdc00..=0xdfff) => (REPLACEMENT, 6),
        Some(_) => as_it_is(6),
        None => as_it_is(2),
    }
}

/// The unit of UTF-16 in an escape like `\ud83d` at the beginning.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex {
        u16::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn half_characters_and_numbers_that_are_none_are_replaced() {
        for (given, expected) in [
            (r#"{"a":"x \ud83d y"}"#, r#"{"a":"x \ufffd y"}"#),
            (
                r#"{"a":"\ude00\uD83D\uDE00\\ud83d"}"#,
                r#"{"a":"\ufffd\uD83D\uDE00\\ud83d"}"#,
            ),
            (r#"{"a":"\ud83d\u0041"}"#, r#"{"a":"\ufffd\u0041"}"#),
            (r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
            (
                r#"[NaN,-Infinity, Infinity,-1,"NaN \" NaN"]"#,
                r#"[null,null, null,-1,"NaN \" NaN"]"#,
            ),
            ("[1e999,-1e999,1e9,12]", "[null,null,1e9,12]"),
            ("{\n\"a\":\"x\ty\u{1b}\"}", "{\n\"a\":\"x\\u0009y\\u001b\"}"),
            ("\"\\", "\"\\"),
            ("\"\\é", "\"\\é"),
        ] {
            assert_eq!(repaired(given), expected);
        }
        assert!(
            may_have_half_character(r#"{"a":"\uD83d"}"#)
                && !may_have_half_character(r#"{"a":"\u00e9"}"#)
        );
    }

    proptest! {
        #[test]
        fn json_is_not_changed(text in any::<String>(), number in any::<f64>()) {
            let json = serde_json::json!({ "a": [text, number], text: null }).to_string();
            prop_assert_eq!(repaired(&json), json);
        }

        #[test]
        fn a_text_of_any_escapes_can_be_read(units in prop::collection::vec(any::<u16>(), 0..8), word in 0_usize..5) {
            let text: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let json = repaired(&format!(r#"{{"a":"{text}","b":[{}]}}"#, NO_NUMBERS[word]));
            prop_assert!(serde_json::from_str::<Value>(&json).is_ok(), "{json}");
        }

        #[test]
        fn any_text_is_repaired_without_a_panic(text in any::<String>(), pieces in "[\\\\ud8cNaI\"é-]{0,30}") {
            repaired(&text);
            repaired(&pieces);
        }
    }
}
