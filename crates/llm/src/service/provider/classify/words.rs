//! The error codes of providers, in all their different forms.

use std::time::Duration;

use serde_json::Value;

use super::{delay, places};
use crate::service::provider::key::ApiKey;

const MAX_WORD_BYTES: usize = 64;
/// The names of the fields that have a text for people.
const MESSAGES: [&str; 12] = [
    "message",
    "detail",
    "msg",
    "error_msg",
    "error_message",
    "errorMessage",
    "status_msg",
    "faultstring",
    "error_description",
    "description",
    "Message",
    "title",
];
/// The names of the fields that have a code or a type, the best one first.
const CODES: [&str; 9] = [
    "code",
    "type",
    "status",
    "__type",
    "error_code",
    "error_type",
    "errorCode",
    "status_code",
    "reason",
];
/// The names of objects that have an error in them.
const INNER: [&str; 4] = ["error", "errors", "fault", "base_resp"];
/// The greatest depth of an error inside another one.
const MAX_DEPTH: usize = 6;

/// The words of a failure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    /// The code, or else the type.
    pub word: String,
    /// Every code and type, for comparisons.
    pub words: Vec<String>,
    /// The text for people, without the key.
    pub message: String,
    /// A text that is compared, but not passed on: that of a page or of a proxy.
    pub hidden: String,
    /// The delay that a field asks for.
    delay: Option<Duration>,
    /// The places in the request that fields name; without the key.
    places: Vec<String>,
}

impl Words {
    /// The words of a provider whose errors have one shape. The first one is the code.
    pub(crate) fn new<'a>(words: impl Iterator<Item = &'a str>, message: &str) -> Self {
        let words: Vec<String> = words
            .filter(|word| is_word(word) && !word.is_empty())
            .map(str::to_owned)
            .collect();
        let word = words.first().cloned().unwrap_or_default();
        Self {
            word,
            words,
            message: message.to_owned(),
            ..Self::default()
        }
    }

    /// The words of the body of a response.
    pub(crate) fn of_body(body: &str, key: Option<&ApiKey>) -> Self {
        match serde_json::from_str::<Value>(body) {
            Ok(value) => Self::from_body(&value, key),
            Err(_not_json) => Self {
                hidden: body.chars().take(2_000).collect(),
                ..Self::default()
            },
        }
    }

    /// The words of `{"error": {…}}`, of its content, of `{"message": …}` and others.
    pub(crate) fn from_body(body: &Value, key: Option<&ApiKey>) -> Self {
        let mut words = Self {
            delay: delay::in_value(body),
            places: places::in_value(body),
            ..Self::default()
        };
        words.collect(body, MAX_DEPTH);
        if let Some(key) = key {
            words.redact(key);
        }
        words.words.retain(|word| is_word(word));
        words.word = words
            .words
            .iter()
            .find(|word| word.as_str() != "error")
            .cloned()
            .unwrap_or_default();
        words
    }

    /// The word and the message.
    pub(crate) fn text(&self) -> String {
        match (self.word.as_str(), self.message.as_str()) {
            ("", text) | (text, "") => text.to_owned(),
            (word, message) => format!("{word}. {message}"),
        }
    }

    /// The texts that may name a part of the request.
    pub(crate) fn full_text(&self) -> String {
        format!(
            "{}\n{}\n{}\n",
            self.message,
            self.hidden,
            self.places.join("\n")
        )
    }

    /// The time that the provider asks to wait.
    pub(crate) fn delay(&self) -> Option<Duration> {
        self.delay.or_else(|| delay::in_text(&self.message))
    }

    /// The innermost error comes first.
    fn collect(&mut self, body: &Value, depth: usize) {
        let body = body
            .as_array()
            .map_or(body, |list| list.first().unwrap_or(&Value::Null));
        if let Some(text) = body.as_str() {
            return self.add_message(text, depth);
        }
        let mut fields = INNER.iter().filter_map(|name| body.get(name));
        if let Some(inner) = fields.find(|inner| is_said(inner))
            && depth > 0
        {
            self.collect(inner, depth - 1);
        }
        let codes = CODES.iter().filter_map(|name| word(body.get(name)?));
        self.words.extend(codes.filter(|code| !code.is_empty()));
        let mut fields = MESSAGES.iter().filter_map(|name| body.get(name));
        match fields.find(|text| is_said(text)) {
            Some(Value::String(text)) => self.add_message(text, depth),
            Some(nested) if depth > 0 => self.collect(nested, depth - 1),
            Some(_) | None => {}
        }
        // A gateway passes on the error of its provider.
        if let Some(raw) = body.pointer("/metadata/raw")
            && depth > 0
        {
            match raw.as_str() {
                Some(text) => self.add_nested(text, depth - 1),
                None => self.collect(raw, depth - 1),
            }
        }
    }

    /// A text that may be the JSON of another error.
    fn add_nested(&mut self, text: &str, depth: usize) {
        match serde_json::from_str::<Value>(text) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => self.collect(&value, depth),
            Ok(_) | Err(_) => self.add_message(text, depth),
        }
    }

    fn add_message(&mut self, text: &str, depth: usize) {
        let text = text.trim();
        if text.starts_with(['{', '[']) && depth > 0 && serde_json::from_str::<Value>(text).is_ok()
        {
            return self.add_nested(text, depth - 1);
        }
        if text.is_empty() || self.message.contains(text) {
            return;
        }
        if !self.message.is_empty() {
            self.message.push_str(": ");
        }
        self.message.push_str(text);
    }

    fn redact(&mut self, key: &ApiKey) {
        self.message = key.redact(&self.message);
        for word in self.words.iter_mut().chain(&mut self.places) {
            *word = key.redact(word);
        }
    }
}

/// Whether a field has a value.
fn is_said(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// A code, which is a text or a number.
pub(super) fn word(value: &Value) -> Option<String> {
    match value.as_str() {
        Some(text) => Some(text.to_owned()),
        None => Some(value.as_u64()?.to_string()),
    }
}

/// Whether a text is a word of a provider. Anything else could be a text of the request.
fn is_word(text: &str) -> bool {
    text.len() <= MAX_WORD_BYTES
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}
