//! Masking of values whose keys say nothing of what they hold.

use serde_json::Value;

use super::Mask;

impl Mask {
    /// The value with each of its texts masked by itself, whatever key it stands under.
    pub fn each_text(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.apply(&text).into_owned()),
            Value::Array(items) => items.into_iter().map(|item| self.each_text(item)).collect(),
            Value::Object(fields) => {
                Value::Object(fields.into_iter().map(|(key, value)| (key, self.each_text(value))).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }
}
