//! Reads an event's metadata, which another version may have written: every key may be absent.

use serde_json::Value;

use crate::readable::text::{self, Charset};
use crate::review::Verdict;

/// The metadata of one event; texts are cleaned when they are read.
#[derive(Clone, Copy, Debug)]
pub struct Meta<'a> {
    value: &'a Value,
    pub(crate) charset: Charset,
}

impl<'a> Meta<'a> {
    pub fn new(value: &'a Value, charset: Charset) -> Self {
        Self { value, charset }
    }

    /// A text that is not empty.
    pub fn text(&self, key: &str) -> Option<String> {
        let text = text::one_line(self.value.get(key)?.as_str()?, self.charset);
        (!text.is_empty()).then_some(text)
    }

    /// The verdict of a review.
    pub(crate) fn review(&self) -> Option<Verdict> {
        let word = self.value.get("review")?.get("verdict")?.as_str()?;
        Some(Verdict::parse(word))
    }

    pub fn number(&self, key: &str) -> Option<u64> {
        self.value.get(key)?.as_u64()
    }

    pub(crate) fn is_set(&self, key: &str) -> bool {
        self.value
            .get(key)
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }

    /// Keys and values of an object.
    pub(crate) fn pairs(&self, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.value
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    }

    pub fn list(&self, key: &str) -> &'a [Value] {
        self.value
            .get(key)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }
}

/// A tool call's arguments in one line, sorted by name: `namespace=checkout pod=checkout-7d9f`. Arguments that are not
/// an object are shown unchanged.
pub fn arguments(content: &str, charset: Charset) -> String {
    let mut value = serde_json::from_str::<Value>(content).unwrap_or_default();
    value.sort_all_objects();
    let Value::Object(object) = value else {
        return text::one_line(content, charset);
    };
    let pairs: Vec<_> = object
        .iter()
        .map(|(key, value)| format!("{key}={}", argument(value)))
        .collect();
    text::one_line(&pairs.join(" "), charset)
}

fn argument(value: &Value) -> String {
    match value.as_str() {
        Some(text) if !text.is_empty() && !text.contains(char::is_whitespace) => text.to_owned(),
        Some(text) => format!("'{text}'"),
        None => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_read_like_a_command_line() {
        for (json, line) in [
            (
                r#"{"namespace":"checkout","limit":20}"#,
                "namespace=checkout limit=20",
            ),
            (
                r#"{"q":"two words","tags":["a"],"none":null}"#,
                "q='two words' tags=[\"a\"] none=null",
            ),
            ("{}", ""),
            ("not json\n at all", "not json at all"),
        ] {
            let mut words: Vec<_> = line.split(' ').collect();
            let arguments = arguments(json, Charset::Unicode);
            let mut found: Vec<_> = arguments.split(' ').collect();
            words.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, words);
        }
    }
}
