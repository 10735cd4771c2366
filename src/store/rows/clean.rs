//! What Postgres cannot store: NUL. Neither `text` nor `jsonb` takes it, and a checkpoint with one in it could never
//! succeed. The one place that replaces it, by U+FFFD, on the way in.

use serde_json::Value;

/// The text without NUL.
pub(crate) fn text(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

/// The text without NUL, if there is one.
pub(crate) fn optional(value: Option<String>) -> Option<String> {
    value.map(text)
}

/// The value without NUL, keys included.
pub(crate) fn json(value: Value) -> Value {
    match value {
        Value::String(string) => Value::String(text(string)),
        Value::Array(items) => Value::Array(items.into_iter().map(json).collect()),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(key, value)| (text(key), json(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// The value without NUL; a JSON `null` is SQL NULL.
pub(crate) fn nullable(value: Value) -> Option<Value> {
    (!value.is_null()).then(|| json(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn nul_is_replaced_in_text_and_in_every_corner_of_json() {
        assert_eq!(super::text("a\0b".to_owned()), "a\u{fffd}b");
        assert_eq!(
            super::json(json!({"k\0": ["x\0", {"y": "\0"}], "n": 1, "z": null})),
            json!({"k\u{fffd}": ["x\u{fffd}", {"y": "\u{fffd}"}], "n": 1, "z": null})
        );
        assert_eq!(super::nullable(json!(null)), None);
        assert_eq!(super::nullable(json!("\0")), Some(json!("\u{fffd}")));
    }

    #[test]
    fn an_escaped_nul_inside_a_string_of_json_stays_as_it_is() {
        let arguments = r#"{"name":"\u0000"}"#;
        assert_eq!(super::json(json!(arguments)), json!(arguments));
    }
}
