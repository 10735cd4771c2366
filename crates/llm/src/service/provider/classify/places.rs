//! The places in the request that an error names in fields of their own: `"param": "tools[3].parameters"`,
//! `"loc": ["body", "tools", 3]`, `"field": "tools[0].function_declarations[3]"`.

use serde_json::Value;

use super::words::word;

const FIELDS: [&str; 3] = ["param", "loc", "field"];
/// The greatest depth of a field.
const MAX_DEPTH: usize = 8;
const MAX_PLACES: usize = 64;

/// The places that the fields of an error name.
pub(crate) fn in_value(value: &Value) -> Vec<String> {
    let mut places = Vec::new();
    collect(value, MAX_DEPTH, &mut places);
    places.truncate(MAX_PLACES);
    places
}

fn collect(value: &Value, depth: usize, places: &mut Vec<String>) {
    if depth == 0 {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if FIELDS.contains(&name.as_str()) {
                    places.extend(path(value));
                } else {
                    collect(value, depth - 1, places);
                }
            }
        }
        Value::Array(list) => {
            for value in list {
                collect(value, depth - 1, places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A path, also one that is a list of its parts.
fn path(value: &Value) -> Option<String> {
    match value {
        Value::String(path) => Some(path.clone()),
        Value::Array(parts) => {
            let parts: Option<Vec<String>> = parts.iter().map(word).collect();
            Some(parts?.join("."))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_field_of_a_place_is_found_wherever_it_lies() {
        let body = json!({
            "error": {"message": "x", "param": "tools[3].parameters", "details": [
                {"fieldViolations": [{"field": "tools[0].function_declarations[5]", "description": "d"}]},
            ]},
            "detail": [{"type": "extra", "loc": ["body", "tools", 0, "function"], "input": {"param": {"loc": 1}}}],
            "param": null,
        });
        let places = [
            "body.tools.0.function",
            "tools[0].function_declarations[5]",
            "tools[3].parameters",
        ];
        let mut found = in_value(&body);
        found.sort();
        assert_eq!(found, places);
        let many = json!({"detail": vec![json!({"loc": ["tools", 1]}); 100]});
        assert_eq!(in_value(&many).len(), MAX_PLACES);
    }
}
