//! Renders JSON for people: an indented outline, one field per line.

use std::collections::BTreeMap;

use serde_json::Value;

/// Collects lines with their indentation.
#[derive(Debug, Default)]
pub(super) struct Outline {
    text: String,
}

impl Outline {
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Adds a line; line breaks in it keep the indentation, so that a value cannot look like another field.
    pub(super) fn line(&mut self, depth: usize, text: &str) {
        for part in text.trim_end().split('\n') {
            let depth = if part.is_empty() { 0 } else { depth };
            self.text.extend(std::iter::repeat_n("  ", depth));
            self.text.push_str(part);
            self.text.push('\n');
        }
    }

    pub(super) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Adds a key with its value; empty values are left out.
    pub(super) fn field(&mut self, depth: usize, key: &str, value: &Value) {
        match value {
            Value::Null => {}
            Value::String(text) => self.text_field(depth, key, text),
            Value::Bool(_) | Value::Number(_) => self.line(depth, &format!("{key}: {value}")),
            Value::Array(items) if items.is_empty() => {}
            Value::Object(fields) if fields.is_empty() => {}
            Value::Array(_) | Value::Object(_) => {
                self.line(depth, &format!("{key}:"));
                self.value(depth + 1, value);
            }
        }
    }

    /// Adds a value without a key.
    pub(super) fn value(&mut self, depth: usize, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.field(depth, key, value);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.field(depth, &format!("{}", index + 1), item);
                }
            }
            Value::String(text) => self.line(depth, text),
            Value::Null | Value::Bool(_) | Value::Number(_) => self.line(depth, &value.to_string()),
        }
    }

    /// Adds a heading with its pairs, if there are any.
    pub(super) fn pairs(&mut self, depth: usize, heading: &str, pairs: &BTreeMap<String, String>) {
        if pairs.is_empty() {
            return;
        }
        self.line(depth, &format!("{heading}:"));
        for (key, value) in pairs {
            self.text_field(depth + 1, key, value);
        }
    }

    pub(super) fn text_field(&mut self, depth: usize, key: &str, text: &str) {
        let text = text.trim();
        if text.contains('\n') {
            self.line(depth, &format!("{key}:"));
            self.line(depth + 1, text);
        } else if !text.is_empty() {
            self.line(depth, &format!("{key}: {text}"));
        }
    }
}
