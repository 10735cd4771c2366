//! References within a schema, replaced by what they refer to. A definition that contains itself ends in any object.

use serde_json::{Map, Value, json};

use super::target;

/// The greatest depth of references within references.
const MAX_DEPTH: usize = 6;
/// A schema that would become larger keeps its references.
const MAX_BYTES: usize = 64 * 1024;

/// The schema without references and definitions.
pub(super) fn replaced(schema: Map<String, Value>, root: &Value) -> Map<String, Value> {
    if !has_reference(&Value::Object(schema.clone())) {
        return schema;
    }
    let mut replacing = Replacing {
        root,
        left: MAX_BYTES,
    };
    let mut without = schema.clone();
    for key in ["$defs", "definitions"] {
        without.shift_remove(key);
    }
    match replacing.value(Value::Object(without), 0) {
        Some(Value::Object(replaced)) => replaced,
        Some(_) | None => schema,
    }
}

fn has_reference(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(has_reference),
        Value::Object(fields) => {
            fields.get("$ref").is_some_and(Value::is_string) || fields.values().any(has_reference)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

struct Replacing<'s> {
    root: &'s Value,
    left: usize,
}

impl Replacing<'_> {
    /// `None` if the schema becomes too large.
    fn value(&mut self, schema: Value, depth: usize) -> Option<Value> {
        self.left = self.left.checked_sub(8)?;
        match schema {
            Value::Array(items) => items
                .into_iter()
                .map(|item| self.value(item, depth))
                .collect(),
            Value::Object(mut fields) => {
                let reference = fields
                    .get("$ref")
                    .filter(|reference| reference.is_string())
                    .cloned();
                let Some(reference) = reference else {
                    return self.fields(fields, depth).map(Value::Object);
                };
                fields.shift_remove("$ref");
                let definition =
                    target(self.root, &reference).filter(|_definition| depth < MAX_DEPTH);
                let definition = definition.and_then(Value::as_object).cloned();
                let mut found = definition.unwrap_or_else(|| match self.is_object(&reference) {
                    true => Map::from_iter([("type".to_owned(), json!("object"))]),
                    false => Map::new(),
                });
                found.extend(fields);
                self.left = self
                    .left
                    .checked_sub(Value::Object(found.clone()).to_string().len())?;
                self.value(Value::Object(found), depth + 1)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(schema),
        }
    }

    fn fields(&mut self, fields: Map<String, Value>, depth: usize) -> Option<Map<String, Value>> {
        fields
            .into_iter()
            .map(|(key, value)| Some((key, self.value(value, depth)?)))
            .collect()
    }

    fn is_object(&self, reference: &Value) -> bool {
        target(self.root, reference)
            .and_then(|found| found.get("type"))
            .and_then(Value::as_str)
            == Some("object")
    }
}
