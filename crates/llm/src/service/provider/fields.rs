//! Fields of a JSON value. One of another type than expected counts as absent.

use serde_json::Value;

/// The `type` of a part, a block or an event; empty if it has none.
pub(crate) fn kind(value: &Value) -> &str {
    text(value, "type")
}

/// A text, or an empty one.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A text as an owned one.
pub(crate) fn owned(value: &Value, key: &str) -> String {
    text(value, key).to_owned()
}

/// The items of a list.
pub(crate) fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// The texts of a list.
pub(crate) fn texts<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    items(value, key).filter_map(Value::as_str)
}
