//! Repairs a provider's JSON where one invalid character would make a parser refuse the whole text.
//!
//! A half of a surrogate pair is joined with its other half, which may be in the next event; a half without another
//! becomes U+FFFD. `NaN` and `Infinity` become `null`, and a control character in a text its escape. Every other text
//! stays as it is.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

/// Halves are kept as private letters, which no JSON refuses, until their other half is known.
const MARKS: u32 = 0x10_F800;
const FIRST_HIGH: u32 = 0xD800;
const FIRST_LOW: u32 = 0xDC00;
const LAST_LOW: u32 = 0xDFFF;

/// Mends the events of one stream.
#[derive(Debug, Default)]
pub(crate) struct Repair {
    /// The first halves at the ends of texts, by the place of the text in its event.
    halves: BTreeMap<String, char>,
}

impl Repair {
    /// An event that JSON readers accept, if it has no other fault.
    pub(crate) fn event<'a>(&mut self, event: &'a str) -> Cow<'a, str> {
        let marked = mend(event, mark);
        if matches!(marked, Cow::Borrowed(_)) && self.halves.is_empty() {
            return marked;
        }
        let Ok(mut value) = serde_json::from_str::<Value>(&marked) else {
            return mend(event, |_half| '\u{FFFD}');
        };
        let place = format!("{:?} {:?}", value.get("index"), value.get("output_index"));
        self.join(&mut value, &place);
        Cow::Owned(value.to_string())
    }

    fn join(&mut self, value: &mut Value, place: &str) {
        match value {
            Value::String(text) => self.join_text(text, place),
            Value::Array(list) => {
                for (index, value) in list.iter_mut().enumerate() {
                    self.join(value, &format!("{place}/{index}"));
                }
            }
            Value::Object(map) => {
                for (name, value) in map {
                    self.join(value, &format!("{place}/{name}"));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn join_text(&mut self, text: &mut String, place: &str) {
        if text.is_empty() {
            return;
        }
        let mut waiting = self.halves.remove(place);
        if waiting.is_none() && !text.chars().any(|letter| half(letter).is_some()) {
            return;
        }
        let mut joined = String::with_capacity(text.len());
        for letter in text.chars() {
            if let Some(high) = waiting.take() {
                if let Some(whole) = pair(high, letter) {
                    joined.push(whole);
                    continue;
                }
                joined.push('\u{FFFD}');
            }
            match half(letter) {
                Some(unit) if unit < FIRST_LOW => waiting = Some(letter),
                Some(_) => joined.push('\u{FFFD}'),
                None => joined.push(letter),
            }
        }
        if let Some(high) = waiting {
            self.halves.insert(place.to_owned(), high);
        }
        *text = joined;
    }
}

/// A whole text that JSON readers accept, if it has no other fault.
pub fn whole(json: &str) -> Cow<'_, str> {
    mend(json, |_half| '\u{FFFD}')
}

fn mark(unit: u32) -> char {
    char::from_u32(MARKS + unit - FIRST_HIGH).unwrap_or('\u{FFFD}')
}

/// The half that a letter represents.
fn half(letter: char) -> Option<u32> {
    let unit = u32::from(letter).checked_sub(MARKS)? + FIRST_HIGH;
    (FIRST_HIGH..=LAST_LOW).contains(&unit).then_some(unit)
}

fn pair(high: char, low: char) -> Option<char> {
    let high = half(high)?;
    let low = half(low)?;
    let is_pair = high < FIRST_LOW && low >= FIRST_LOW;
    is_pair.then(|| char::from_u32(0x1_0000 + ((high - FIRST_HIGH) << 10) + (low - FIRST_LOW)))?
}

fn mend(json: &str, replaced: fn(u32) -> char) -> Cow<'_, str> {
    let has_fault = ["\\ud", "\\uD", "NaN", "Infinity"]
        .iter()
        .any(|fault| json.contains(fault));
    if !has_fault && !json.contains(|letter: char| letter.is_ascii_control()) {
        return Cow::Borrowed(json);
    }
    let mut mended = String::with_capacity(json.len());
    let mut rest = json;
    let mut is_text = false;
    let mut is_changed = false;
    while let Some(letter) = rest.chars().next() {
        let (length, replacement) = if is_text {
            in_text(rest, replaced)
        } else {
            between(rest)
        };
        let taken = length.max(letter.len_utf8());
        let (token, after) = rest.split_at_checked(taken).unwrap_or((rest, ""));
        match replacement {
            Some(replacement) => {
                mended.push_str(&replacement);
                is_changed = true;
            }
            None => mended.push_str(token),
        }
        is_text ^= token == "\"";
        rest = after;
    }
    if is_changed {
        Cow::Owned(mended)
    } else {
        Cow::Borrowed(json)
    }
}

/// The length of the next token within a text, and what replaces it.
fn in_text(rest: &str, replaced: fn(u32) -> char) -> (usize, Option<String>) {
    match rest.chars().next() {
        Some('\\') => {}
        // A control character that JSON wants escaped.
        Some(letter @ '\u{0}'..='\u{1f}') => {
            return (1, Some(format!("\\u{:04x}", u32::from(letter))));
        }
        Some(_) | None => return (1, None),
    }
    match (unit(rest), rest.get(6..).and_then(unit)) {
        (Some(high), Some(low)) if high < FIRST_LOW && low >= FIRST_LOW => (12, None),
        (Some(alone), _) => (6, Some(replaced(alone).to_string())),
        // Any other escape has a backslash and a letter, and perhaps digits.
        (None, _) => (1 + rest.chars().nth(1).map_or(0, char::len_utf8), None),
    }
}

/// The half that `\uXXXX` at the beginning of `text` is.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let unit = u32::from_str_radix(digits, 16).ok()?;
    (FIRST_HIGH..=LAST_LOW).contains(&unit).then_some(unit)
}

/// The length of the next token between texts, and what replaces it.
fn between(rest: &str) -> (usize, Option<String>) {
    let word = ["NaN", "-Infinity", "Infinity", "-NaN"]
        .into_iter()
        .find(|word| rest.starts_with(word));
    match word {
        Some(word) => (word.len(), Some("null".to_owned())),
        None => (1, None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn content(text: &str) -> String {
        format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#)
    }

    /// The text of a stream whose events have these pieces, as they stand in JSON.
    fn joined(pieces: &[&str]) -> String {
        let mut repair = Repair::default();
        pieces
            .iter()
            .map(|piece| {
                let event = content(piece);
                let value: Value = serde_json::from_str(&repair.event(&event)).unwrap();
                value
                    .pointer("/choices/0/delta/content")
                    .unwrap()
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    }

    #[test]
    fn halves_are_joined_over_events_and_the_others_are_replaced() {
        for (pieces, expected) in [
            (vec!["a \\ud83d", "\\ude00 b"], "a 😀 b"),
            (vec!["a \\uD83D", "", "\\uDE00"], "a 😀"),
            (vec!["\\ud83d\\ude00"], "😀"),
            (vec!["a \\ud83d b"], "a \u{FFFD} b"),
            (vec!["a \\ude00 b"], "a \u{FFFD} b"),
            (vec!["a \\ud83d", "b"], "a \u{FFFD}b"),
            (vec!["\\ud83d", "\\ud83d", "\\ude00"], "\u{FFFD}😀"),
            (
                vec!["\\\\ud83d \\u00e9 \\n \\\" NaN"],
                "\\ud83d é \n \" NaN",
            ),
            (vec!["é→漢🚀", "\\ud83d", "\\ude00"], "é→漢🚀😀"),
        ] {
            assert_eq!(joined(&pieces), expected, "{pieces:?}");
        }
    }

    #[test]
    fn a_text_that_is_cut_anywhere_is_the_same() {
        let text = "a😀b🚀é\u{FFFD}漢👩‍💻";
        let units: Vec<String> = text
            .encode_utf16()
            .map(|unit| format!("\\u{unit:04x}"))
            .collect();
        for size in 1..=units.len() {
            let pieces: Vec<String> = units.chunks(size).map(<[String]>::concat).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            assert_eq!(joined(&pieces), text, "{size}");
        }
    }

    #[test]
    fn what_is_no_number_becomes_null_outside_of_texts() {
        for (text, expected) in [
            (
                r#"{"a":NaN,"b":[-Infinity, Infinity,1]}"#,
                r#"{"a":null,"b":[null, null,1]}"#,
            ),
            (r#"{"a":"NaN \" Infinity"}"#, r#"{"a":"NaN \" Infinity"}"#),
            (r#"{"a":"\ud83d"}"#, "{\"a\":\"\u{FFFD}\"}"),
            ("{\n\"a\":\"x\ty\u{1}\"}", "{\n\"a\":\"x\\u0009y\\u0001\"}"),
            (r#"{"a":"x\"#, r#"{"a":"x\"#),
            (r#"{"a":"\ud8"#, r#"{"a":"\ud8"#),
        ] {
            assert_eq!(whole(text), expected);
        }
    }

    #[test]
    fn halves_of_two_places_are_not_mixed() {
        let mut repair = Repair::default();
        let block =
            |index: u64, text: &str| format!(r#"{{"index":{index},"delta":{{"text":"{text}"}}}}"#);
        let events = [
            block(0, "a\\ud83d"),
            block(1, "\\ude00"),
            block(0, "\\ude00"),
        ];
        let texts: Vec<Value> = events
            .iter()
            .map(|event| {
                serde_json::from_str::<Value>(&repair.event(event)).unwrap()["delta"]["text"]
                    .clone()
            })
            .collect();
        assert_eq!(json!(texts), json!(["a", "\u{FFFD}", "😀"]));
    }
}
