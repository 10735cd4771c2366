//! Masks and bounds the description and the schema of a tool before they become part of a plan.

use rmcp::model::Tool;
use serde_json::{Map, Value};

use crate::investigation::mask::Mask;

/// The rest of a longer description is cut off.
const MAX_DESCRIPTION_BYTES: usize = 4 * 1024;
/// A schema cannot be cut, so a tool with a larger one is not offered.
const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// Keywords whose values are examples of what a property holds.
const SAMPLE_KEYWORDS: [&str; 5] = ["default", "const", "enum", "example", "examples"];

/// The description of a tool, masked and cut.
pub(super) fn description(tool: &Tool, mask: &Mask) -> String {
    let text = tool.description.as_deref().unwrap_or_default().replace('\0', "");
    let masked = mask.apply(&text);
    if masked.len() <= MAX_DESCRIPTION_BYTES {
        return masked.into_owned();
    }
    let end = masked.floor_char_boundary(MAX_DESCRIPTION_BYTES);
    format!("{} [cut: {} bytes in all]", masked.get(..end).unwrap_or_default(), masked.len())
}

/// The schema of a tool's arguments, masked.
///
/// # Errors
/// When the schema is too large: a text like "its schema …".
pub(super) fn schema(tool: &Tool, mask: &Mask) -> Result<String, String> {
    let schema = masked(mask, tool.schema_as_json_value()).to_string();
    if schema.len() > MAX_SCHEMA_BYTES {
        return Err(format!("its schema has {} bytes; at most {MAX_SCHEMA_BYTES} are allowed", schema.len()));
    }
    Ok(schema)
}

/// In a schema `password` is a property, and its value is a schema, not a secret. So strings are masked one by one, and
/// sample values together with the name of their property.
fn masked(mask: &Mask, schema: Value) -> Value {
    match schema {
        Value::String(text) => Value::String(mask.apply(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(|item| masked(mask, item)).collect(),
        Value::Object(fields) => {
            let field = |(key, value): (String, Value)| {
                if key != "properties" {
                    return (key, masked(mask, value));
                }
                let Value::Object(properties) = value else { return (key, masked(mask, value)) };
                (key, Value::Object(mask_properties(mask, properties)))
            };
            Value::Object(fields.into_iter().map(field).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => schema,
    }
}

fn mask_properties(mask: &Mask, properties: Map<String, Value>) -> Map<String, Value> {
    let property = |(name, value): (String, Value)| {
        let mut value = masked(mask, value);
        for sample in SAMPLE_KEYWORDS {
            if let Some(held) = value.get_mut(sample) {
                let values = if let Value::Array(values) = held { values.iter_mut().collect() } else { vec![held] };
                for held in values {
                    *held = mask_sample(mask, &name, held);
                }
            }
        }
        (name, value)
    };
    properties.into_iter().map(property).collect()
}

fn mask_sample(mask: &Mask, name: &str, value: &Value) -> Value {
    let pair = Value::Object(Map::from_iter([(name.to_owned(), value.clone())]));
    mask.json(&pair).get(name).cloned().unwrap_or_else(|| Value::String(crate::investigation::mask::MASKED.to_owned()))
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
        assert_eq!(description(&tool("password=hunter2-hunter2", json!({})), &mask), "password=[masked]");
        let large =
            schema(&tool("", json!({"type": "object", "description": "x ".repeat(40_000)})), &mask).unwrap_err();
        assert!(large.starts_with("its schema has 80"), "{large}");
    }
}
