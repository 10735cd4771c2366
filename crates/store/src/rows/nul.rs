//! Replaces NUL by U+FFFD in everything that is stored. Neither `text` nor `jsonb` accepts NUL, so a checkpoint that
//! contained one could never be written.

use serde_json::Value;

pub(crate) fn replace(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{fffd}")
    } else {
        text
    }
}

/// Replaces NUL in every string of the value, keys included.
pub(crate) fn replace_json(value: Value) -> Value {
    match value {
        Value::String(string) => Value::String(replace(string)),
        Value::Array(items) => Value::Array(items.into_iter().map(replace_json).collect()),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(key, value)| (replace(key), replace_json(value)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// Replaces NUL as [`replace_json`] does; a JSON `null` becomes SQL NULL.
pub(crate) fn json_or_null(value: Value) -> Option<Value> {
    (!value.is_null()).then(|| replace_json(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn nul_is_replaced_in_text_and_everywhere_in_json() {
        assert_eq!(super::replace("a\0b".to_owned()), "a\u{fffd}b");
        assert_eq!(
            super::replace_json(json!({"k\0": ["x\0", {"y": "\0"}], "n": 1, "z": null})),
            json!({"k\u{fffd}": ["x\u{fffd}", {"y": "\u{fffd}"}], "n": 1, "z": null})
        );
        assert_eq!(super::json_or_null(json!(null)), None);
        assert_eq!(super::json_or_null(json!("\0")), Some(json!("\u{fffd}")));
    }

    #[test]
    fn an_escaped_nul_inside_a_json_string_is_kept() {
        let arguments = r#"{"name":"\u0000"}"#;
        assert_eq!(super::replace_json(json!(arguments)), json!(arguments));
    }
}
