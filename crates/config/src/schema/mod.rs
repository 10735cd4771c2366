//! The JSON Schema of the file, for editors and for the values of the chart.
//!
//! It comes from the schemas that the reader goes along. An editor sees the text of the file: each value may be a text
//! with `${NAME}`, and a key without a value counts as an absent one.

use std::time::Duration;

use serde_json::{Map as Object, Value, json};

use crate::Config;
use crate::declared::{FORM, REQUIRED, kind, range_of_form, schema_of, words};
use crate::read::units::{show_bytes, show_duration, show_tokens};

/// The pattern of a text with a variable.
const VARIABLE: &str = r"\$\{";

/// The schema of the file, as a text of JSON.
pub fn schema() -> String {
    let mut document = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "The configuration of tarsy"
    });
    if let (Some(document), Value::Object(schema)) = (document.as_object_mut(), of_file()) {
        document.extend(schema);
    }
    format!("{document:#}\n")
}

/// The schema without its head, as a part of another one.
fn of_file() -> Value {
    for_editors(&schema_of::<Config>())
}

/// A schema of the reader as an editor needs it.
fn for_editors(schema: &Value) -> Value {
    let mut described = accepted(schema);
    for key in ["default", "minItems", "maxProperties"] {
        let value = &schema[key];
        // Defaults of sections are those of their keys.
        let is_shown =
            !value.is_null() && !value.is_object() && *value != "" && *value != json!([]);
        if is_shown {
            set(&mut described, key, value.clone());
        }
    }
    // A line of a comment is no line of its text.
    if let Some(text) = schema["description"].as_str() {
        set(
            &mut described,
            "description",
            json!(text.replace('\n', " ")),
        );
    }
    described
}

fn accepted(schema: &Value) -> Value {
    if let Some(properties) = schema["properties"].as_object() {
        return object(schema, properties);
    }
    if let Some(alternatives) = schema["anyOf"].as_array() {
        let values: Vec<&Value> = alternatives
            .iter()
            .filter(|known| kind(known) != "null")
            .collect();
        return match values.as_slice() {
            [value] => for_editors(value),
            values => any_of(values.iter().map(|value| for_editors(value)).collect()),
        };
    }
    if let Some(entry) = schema.get("additionalProperties") {
        return json!({"type": "object", "additionalProperties": for_editors(entry)});
    }
    if let Some(words) = words(schema) {
        return any_of(vec![json!({"enum": words}), text("")]);
    }
    if let Some(form) = schema[FORM].as_str() {
        return of_form(form, schema);
    }
    match kind(schema) {
        "boolean" => any_of(vec![json!({"type": "boolean"}), text("^(true|false)$")]),
        "integer" => number(schema, r"^\s*\+?[0-9]+\s*$"),
        "number" => number(schema, r"^\s*[-+]?[0-9.]+([eE][-+]?[0-9]+)?\s*$"),
        "array" => json!({"type": "array", "items": for_editors(&schema["items"])}),
        "string" => json!({"type": "string"}),
        _ => json!({}),
    }
}

fn object(schema: &Value, properties: &Object<String, Value>) -> Value {
    let is_required = |property: &Value| !property[REQUIRED].is_null();
    let entries = properties.iter().map(|(key, property)| {
        let mut value = for_editors(property);
        if !is_required(property) {
            accept_null(&mut value);
        }
        (key.clone(), value)
    });
    let mut object = json!({
        "type": "object",
        "properties": entries.collect::<Object<_, _>>(),
        "additionalProperties": false
    });
    let required = properties
        .iter()
        .filter(|(_, property)| is_required(property));
    let required: Vec<&String> = required.map(|(key, _)| key).collect();
    if !required.is_empty() {
        set(&mut object, "required", json!(required));
    }
    if !schema["anyOf"].is_null() {
        set(&mut object, "anyOf", schema["anyOf"].clone());
    }
    object
}

fn accept_null(value: &mut Value) {
    if let Some(alternatives) = value.get_mut("anyOf").and_then(Value::as_array_mut) {
        alternatives.push(json!({"type": "null"}));
    }
    if let Some(kind) = value.get_mut("type") {
        *kind = json!([kind, "null"]);
    }
}

fn any_of(alternatives: Vec<Value>) -> Value {
    json!({"anyOf": alternatives})
}

/// A text that a pattern describes, or a text with a variable.
fn text(pattern: &str) -> Value {
    let separator = if pattern.is_empty() { "" } else { "|" };
    json!({"type": "string", "pattern": format!("{pattern}{separator}{VARIABLE}")})
}

/// A number in the range of a schema, or a text that a pattern describes.
fn number(schema: &Value, pattern: &str) -> Value {
    let mut number = json!({"type": kind(schema)});
    for bound in ["minimum", "maximum"] {
        if !schema[bound].is_null() {
            set(&mut number, bound, schema[bound].clone());
        }
    }
    any_of(vec![number, text(pattern)])
}

fn of_form(form: &str, schema: &Value) -> Value {
    let (from, to) = range_of_form(schema).unwrap_or_default();
    let number = json!({"type": "integer", "minimum": from, "maximum": to});
    match form {
        "duration" => {
            let mut accepted = vec![text(r"^\s*([0-9]+\s*(ms|s|m|h|d)|0)\s*$")];
            if from == 0 {
                accepted.push(json!({"const": 0}));
            }
            let show = |secs| show_duration(Duration::from_secs(secs));
            with_range(any_of(accepted), &show(from), &show(to))
        }
        "bytes" => {
            let size = text(r"^\s*[0-9]+\s*(B|KiB|MiB|GiB)?\s*$");
            with_range(
                any_of(vec![number, size]),
                &show_bytes(from),
                &show_bytes(to),
            )
        }
        "tokens" => {
            let tokens = text(r"^\s*[0-9]+\s*(k|M)?\s*( tokens)?\s*$");
            with_range(
                any_of(vec![number, tokens]),
                &show_tokens(from),
                &show_tokens(to),
            )
        }
        "mapping" => json!({"type": "object", "additionalProperties": true}),
        _ => json!({"type": "string"}),
    }
}

/// Says which values of a unit are accepted.
fn with_range(mut value: Value, from: &str, to: &str) -> Value {
    set(&mut value, "title", json!(format!("from {from} to {to}")));
    value
}

/// Gives an object a key.
fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
pub(crate) mod tests;
