//! The places in the request that an error names in fields of their own: `"param": "tools[3].parameters"`,
//! `"loc": ["body", "tools", 3]`, `"field": "tools[0].function_declarations[3]"`.

use serde_json::Value;

const FIELDS: [&str; 3] = ["param", "loc", "field"];
/// The greatest depth of a field.
const MAX_DEPTH: usize = 8;
const MAX_PLACES: usize = 64;

pub(super) fn in_value(value: &Value) -> Vec<String> {
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
        Value::Array(list) => list
            .iter()
            .for_each(|value| collect(value, depth - 1, places)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A path, also one that is a list of its parts.
fn path(value: &Value) -> Option<String> {
    let parts = match value {
        Value::String(path) => return Some(path.clone()),
        Value::Array(parts) => parts,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    let part = |part: &Value| {
        part.as_str()
            .map(str::to_owned)
            .or_else(|| part.as_u64().map(|number| number.to_string()))
    };
    parts
        .iter()
        .map(part)
        .collect::<Option<Vec<_>>>()
        .map(|parts| parts.join("."))
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
