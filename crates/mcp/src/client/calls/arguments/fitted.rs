//! Corrects arguments to fit the schema of their tool: removes `null` for an optional argument, and parses an object
//! or list that the model wrote as JSON in a text.

use serde_json::{Map, Value};

/// The limit of references that are followed from one place.
const MAX_REFERENCES: usize = 16;
/// Values that are nested deeper stay as they are.
const MAX_DEPTH: usize = 32;

/// The types of JSON schema that a place accepts. Without a word about types, a place accepts each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Accepted {
    null: bool,
    text: bool,
    object: bool,
    list: bool,
}

/// The schema with `nullable`, a word of `OpenAPI`, as the type `null`.
pub(super) fn with_null(schema: Value) -> Value {
    match schema {
        Value::Array(items) => items.into_iter().map(with_null).collect(),
        Value::Object(mut fields) => {
            let is_nullable =
                fields.get("nullable") == Some(&Value::Bool(true)) && is_schema(&fields);
            if is_nullable {
                fields.remove("nullable");
            }
            let inner: Map<_, _> = fields
                .into_iter()
                .map(|(key, value)| (key, with_null(value)))
                .collect();
            if is_nullable {
                serde_json::json!({"anyOf": [inner, {"type": "null"}]})
            } else {
                Value::Object(inner)
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema,
    }
}

/// A map of properties may have one that is called `nullable`; its value is no `true`.
fn is_schema(fields: &Map<String, Value>) -> bool {
    ["type", "$ref", "anyOf", "oneOf", "allOf", "enum", "format"]
        .iter()
        .any(|key| fields.contains_key(*key))
}

/// The arguments as the schema wants them; `None` if nothing about them is changed.
pub(super) fn fitted(schema: &Value, arguments: &Value) -> Option<Value> {
    let mut fitted = arguments.clone();
    Fitting { root: schema }.value(schema, &mut fitted, 0);
    (fitted != *arguments).then_some(fitted)
}

struct Fitting<'s> {
    root: &'s Value,
}

impl<'s> Fitting<'s> {
    fn value(&self, schema: &'s Value, value: &mut Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let schemas = self.alternatives(schema);
        if let Value::String(text) = value {
            let accepted = accepted(&schemas);
            let read = serde_json::from_str::<Value>(text).ok().filter(|read| {
                !accepted.text
                    && ((read.is_object() && accepted.object) || (read.is_array() && accepted.list))
            });
            match read {
                Some(read) => *value = read,
                None => return,
            }
        }
        match value {
            Value::Object(members) => self.members(&schemas, members, depth),
            Value::Array(items) => {
                let of_items = schemas
                    .iter()
                    .find_map(|schema| schema.get("items"))
                    .filter(|items| items.is_object());
                for item in items.iter_mut() {
                    if let Some(schema) = of_items {
                        self.value(schema, item, depth + 1);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn members(&self, schemas: &[&'s Value], members: &mut Map<String, Value>, depth: usize) {
        let of_member = |name: &str| {
            schemas
                .iter()
                .find_map(|schema| schema.get("properties")?.get(name))
        };
        let required: Vec<&Value> = schemas
            .iter()
            .filter_map(|schema| schema.get("required").and_then(Value::as_array))
            .flatten()
            .collect();
        members.retain(|name, value| {
            let refuses_null =
                of_member(name).is_some_and(|schema| !accepted(&self.alternatives(schema)).null);
            let is_required = required.iter().any(|required| *required == name);
            !value.is_null() || !refuses_null || is_required
        });
        for (name, value) in members.iter_mut() {
            if let Some(schema) = of_member(name) {
                self.value(schema, value, depth + 1);
            }
        }
    }

    /// The schema itself, the schemas that it refers to, and its alternatives.
    fn alternatives(&self, schema: &'s Value) -> Vec<&'s Value> {
        let mut open = vec![schema];
        let mut found = Vec::new();
        while let Some(schema) = open.pop() {
            if found.len() > MAX_REFERENCES {
                break;
            }
            found.push(schema);
            let reference = schema
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|reference| reference.strip_prefix('#'));
            open.extend(reference.and_then(|pointer| self.root.pointer(pointer)));
            let lists = ["anyOf", "oneOf", "allOf"]
                .into_iter()
                .filter_map(|key| schema.get(key).and_then(Value::as_array));
            open.extend(lists.flatten());
        }
        found
    }
}

fn accepted(schemas: &[&Value]) -> Accepted {
    let mut accepted = Accepted::default();
    let mut says_type = false;
    let mut add = |word: &Value| {
        says_type = true;
        match word.as_str() {
            Some("null") => accepted.null = true,
            Some("string") => accepted.text = true,
            Some("object") => accepted.object = true,
            Some("array") => accepted.list = true,
            Some(_) | None => {}
        }
    };
    for schema in schemas {
        match schema.get("type") {
            Some(Value::Array(words)) => words.iter().for_each(&mut add),
            Some(word) => add(word),
            None => {}
        }
        for value in schema
            .get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .chain(schema.get("const"))
        {
            add(&Value::from(match value {
                Value::Null => "null",
                Value::String(_) => "string",
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => "other",
            }));
        }
    }
    if says_type {
        accepted
    } else {
        Accepted {
            null: true,
            text: true,
            object: true,
            list: true,
        }
    }
}
