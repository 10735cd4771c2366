//! Adapts nested schemas: items of lists, types for `nullable`, definitions for references.

use serde_json::{Map, Value, json};

use super::target;

/// Keywords whose value is a schema, or a list of schemas.
const SCHEMAS: [&str; 12] = [
    "items",
    "prefixItems",
    "additionalItems",
    "additionalProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "anyOf",
    "oneOf",
];
/// Keywords whose value is a map of schemas.
const MAPS: [&str; 5] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];

/// The schema, and each schema in it, with what providers need.
pub(super) fn completed(schema: Map<String, Value>, root: &Value) -> Map<String, Value> {
    let mut schema: Map<String, Value> = schema
        .into_iter()
        .map(|(key, value)| {
            let value = match value {
                Value::Object(map) if MAPS.contains(&key.as_str()) => {
                    let inner = map
                        .into_iter()
                        .filter_map(|(name, inner)| Some((name, of_property(inner, root)?)));
                    Value::Object(inner.collect())
                }
                value if SCHEMAS.contains(&key.as_str()) || key == "allOf" => within(value, root),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)
                | Value::Object(_) => value,
            };
            (key, value)
        })
        .collect();
    if schema
        .get("$ref")
        .is_some_and(|reference| target(root, reference).is_none())
    {
        schema.shift_remove("$ref");
    }
    accept_null(&mut schema);
    add_items(&mut schema);
    add_required(&mut schema);
    schema
}

fn within(value: Value, root: &Value) -> Value {
    match value {
        Value::Object(schema) => Value::Object(completed(schema, root)),
        Value::Array(items) => items.into_iter().map(|item| within(item, root)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// The schema of a property; `None` for one that must be absent. `true` allows each value.
fn of_property(value: Value, root: &Value) -> Option<Value> {
    match value {
        Value::Bool(false) => None,
        Value::Bool(true) | Value::Null => Some(json!({})),
        Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            Some(within(value, root))
        }
    }
}

/// `nullable` is a word of `OpenAPI`.
fn accept_null(schema: &mut Map<String, Value>) {
    let Some(Value::Bool(is_nullable)) = schema.get("nullable").cloned() else {
        return;
    };
    schema.shift_remove("nullable");
    if !is_nullable {
        return;
    }
    let has_alternatives = ["$ref", "anyOf", "oneOf", "allOf"]
        .iter()
        .any(|key| schema.contains_key(*key));
    match schema.get_mut("type") {
        Some(Value::Array(types)) if !types.contains(&json!("null")) => types.push(json!("null")),
        Some(word @ Value::String(_)) if *word != "null" => *word = json!([word, "null"]),
        None if has_alternatives => {
            let inner = std::mem::take(schema);
            schema.insert("anyOf".to_owned(), json!([inner, {"type": "null"}]));
        }
        Some(_) | None => {}
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

/// A list without a word about its items has any.
fn add_items(schema: &mut Map<String, Value>) {
    let is_list = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|word| word == "array"),
        Some(word) => word == "array",
        None => false,
    };
    match schema.get("items") {
        Some(Value::Object(_)) => {}
        // A tuple of JSON schema before 2020.
        Some(Value::Array(items)) if !items.is_empty() => {
            let items = json!({"anyOf": items});
            schema.insert("items".to_owned(), items);
        }
        Some(_) => {
            schema.insert("items".to_owned(), json!({}));
        }
        None if is_list => {
            schema.insert("items".to_owned(), json!({}));
        }
        None => {}
    }
}

/// Gemini refuses a required property that is not declared.
fn add_required(schema: &mut Map<String, Value>) {
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for name in required.iter().filter_map(Value::as_str) {
            properties
                .entry(name.to_owned())
                .or_insert_with(|| json!({}));
        }
    }
}
