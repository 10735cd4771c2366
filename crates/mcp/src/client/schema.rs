//! Cleans, masks and bounds the description and the schema of a tool before they become part of a plan.

use rmcp::model::Tool;
use serde_json::{Map, Value};

use tarsy_core::visible::{has_invisible, visible};
use tarsy_mask::Mask;

/// The rest of a longer description is cut off.
const MAX_DESCRIPTION_BYTES: usize = 4 * 1024;
/// A schema cannot be cut, so a tool with a larger one is not offered.
const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// The part of a long description that is cleaned and masked, in bytes.
const MAX_READ_BYTES: usize = 64 * 1024;
/// Keywords whose values are examples of what a property holds.
const SAMPLE_KEYWORDS: [&str; 5] = ["default", "const", "enum", "example", "examples"];
/// Keywords whose texts are for readers.
const TEXT_KEYWORDS: [&str; 4] = ["description", "title", "$comment", "markdownDescription"];

/// The description of a tool, cleaned, masked and cut.
pub(super) fn description(tool: &Tool, mask: &Mask) -> String {
    let whole = tool.description.as_deref().unwrap_or_default();
    let read = whole
        .get(..whole.floor_char_boundary(MAX_READ_BYTES))
        .unwrap_or_default();
    let masked = mask.apply(visible(read).trim()).into_owned();
    if masked.len() <= MAX_DESCRIPTION_BYTES {
        return masked;
    }
    let end = masked.floor_char_boundary(MAX_DESCRIPTION_BYTES);
    format!(
        "{} [cut: {} bytes in all]",
        masked.get(..end).unwrap_or_default(),
        whole.len()
    )
}

/// The schema of a tool's arguments, cleaned and masked.
///
/// # Errors
/// When the schema is too large, or has invisible characters in a word that a call would have to repeat: a text like
/// "its schema …".
pub(super) fn schema(tool: &Tool, mask: &Mask) -> Result<String, String> {
    let schema = tool.schema_as_json_value();
    let too_large = |bytes: usize| {
        format!("its schema has {bytes} bytes; at most {MAX_SCHEMA_BYTES} are allowed")
    };
    let bytes = schema.to_string().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(too_large(bytes));
    }
    let masked = masked(mask, cleaned(schema, SchemaRole::Schema)?).to_string();
    // A mask may be longer than the text that it hides.
    if masked.len() > MAX_SCHEMA_BYTES {
        Err(too_large(masked.len()))
    } else {
        Ok(masked)
    }
}

/// The position of a value in a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaRole {
    /// A schema, or a value that is none of the following.
    Schema,
    /// A map of schemas by the names of arguments.
    Properties,
    /// A text for readers.
    Text,
}

/// Removes invisible characters from texts for readers. Names and values that a call repeats must have none, because
/// the server compares them.
fn cleaned(value: Value, place: SchemaRole) -> Result<Value, String> {
    match value {
        Value::String(text) if place == SchemaRole::Text => Ok(Value::String(visible(&text))),
        Value::String(text) if has_invisible(&text) => {
            Err("its schema has invisible characters".to_owned())
        }
        Value::Array(items) => items.into_iter().map(|item| cleaned(item, place)).collect(),
        Value::Object(fields) => {
            let mut cleaned_fields = Map::new();
            for (key, value) in fields {
                if has_invisible(&key) {
                    return Err("its schema has a name with invisible characters".to_owned());
                }
                let within = match key.as_str() {
                    _ if place == SchemaRole::Properties => SchemaRole::Schema,
                    "properties" | "patternProperties" | "$defs" | "definitions" => {
                        SchemaRole::Properties
                    }
                    key if TEXT_KEYWORDS.contains(&key) => SchemaRole::Text,
                    _ => SchemaRole::Schema,
                };
                cleaned_fields.insert(key, cleaned(value, within)?);
            }
            Ok(Value::Object(cleaned_fields))
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value),
    }
}

/// In a schema `password` is a property, and its value is a schema, not a secret. So strings are masked one by one, and
/// sample values together with the name of their property.
fn masked(mask: &Mask, schema: Value) -> Value {
    match schema {
        Value::String(text) => Value::String(mask.apply(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(|item| masked(mask, item)).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| {
                if key == "properties"
                    && let Value::Object(properties) = value
                {
                    return (key, Value::Object(mask_properties(mask, properties)));
                }
                let value = masked(mask, value);
                (key, value)
            });
            Value::Object(fields.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => schema,
    }
}

fn mask_properties(mask: &Mask, mut properties: Map<String, Value>) -> Map<String, Value> {
    for (name, value) in &mut properties {
        *value = masked(mask, value.take());
        for keyword in SAMPLE_KEYWORDS {
            match value.get_mut(keyword) {
                Some(Value::Array(samples)) => {
                    for sample in samples {
                        *sample = mask_sample(mask, name, sample);
                    }
                }
                Some(sample) => *sample = mask_sample(mask, name, sample),
                None => {}
            }
        }
    }
    properties
}

fn mask_sample(mask: &Mask, name: &str, value: &Value) -> Value {
    let pair = Value::Object(Map::from_iter([(name.to_owned(), value.clone())]));
    mask.json(&pair)
        .get(name)
        .cloned()
        .unwrap_or_else(|| Value::String(tarsy_mask::MASKED.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(description: &str, schema: Value) -> Tool {
        let tool = json!({"name": "t", "description": description, "inputSchema": schema});
        serde_json::from_value(tool).unwrap()
    }

    #[test]
    fn a_masked_schema_keeps_its_form() {
        let mask = Mask::new(["known-val5e".to_owned()]);
        let given = json!({"type": "object", "required": ["password"], "properties": {
            "password": {"type": "string", "description": "not known-val5e", "default": "hunter2-hunter2"},
            "token": {"type": "string", "examples": ["ghp_0123456789abcdefghijABCDEFGHIJ012345"]},
            "depth": {"type": "integer", "default": 3},
        }});
        let expected = json!({"type": "object", "required": ["password"], "properties": {
            "password": {"type": "string", "description": "not [masked]", "default": "[masked]"},
            "token": {"type": "string", "examples": ["[masked]"]},
            "depth": {"type": "integer", "default": 3},
        }});
        let schema = schema(&tool("", given), &mask).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&schema).unwrap(), expected);
    }

    #[test]
    fn a_long_description_is_cut_and_a_large_schema_is_refused() {
        let mask = Mask::default();
        let long = description(&tool(&"é".repeat(4_000), json!({"type": "object"})), &mask);
        assert!(
            long.len() < MAX_DESCRIPTION_BYTES + 40 && long.ends_with("[cut: 8000 bytes in all]"),
            "{}",
            long.len()
        );
        assert_eq!(
            description(&tool("password=hunter2-hunter2", json!({})), &mask),
            "password=[masked]"
        );
        let large = schema(
            &tool(
                "",
                json!({"type": "object", "description": "x ".repeat(40_000)}),
            ),
            &mask,
        )
        .unwrap_err();
        assert!(large.starts_with("its schema has 80"), "{large}");
    }

    #[test]
    fn invisible_characters_are_removed_from_texts_and_refused_in_names_and_values() {
        let mask = Mask::default();
        let given = json!({"type": "object", "title": "T\u{1b}[31m", "properties": {
            "description": {"type": "string", "description": "a\u{200b}b\u{e0041}\n\tc", "pattern": "^\n$"},
        }});
        let expected = json!({"type": "object", "title": "T", "properties": {
            "description": {"type": "string", "description": "ab\n\tc", "pattern": "^\n$"},
        }});
        let clean = schema(&tool("", given), &mask).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&clean).unwrap(), expected);
        for hidden in [
            json!({"properties": {"na\u{200b}me": {"type": "string"}}}),
            json!({"properties": {"name": {"enum": ["a", "b\u{202e}"]}}}),
            json!({"required": ["na\u{ad}me"]}),
        ] {
            let fault = schema(&tool("", hidden), &mask).unwrap_err();
            assert!(fault.starts_with("its schema has"), "{fault}");
        }
        assert_eq!(
            description(&tool(" Reads\u{202e} \u{1b}[2Jit.\n", json!({})), &mask),
            "Reads it."
        );
    }
}
