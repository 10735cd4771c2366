//! Names of properties that a provider refuses: `$filter` becomes `filter_` and a hash, and comes back in each call.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// The longest name that every provider accepts.
const MAX_NAME_BYTES: usize = 64;
/// Hexadecimal digits of the hash.
const HASH_DIGITS: usize = 8;

/// The names of a tool's properties that were changed: the tool's own name by that of the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Renamed(BTreeMap<String, String>);

impl Renamed {
    /// The schema with names that every provider accepts, here and in each schema within it.
    pub(super) fn rename(&mut self, schema: Map<String, Value>) -> Map<String, Value> {
        let schema = schema.into_iter().map(|(key, value)| {
            let value = match value {
                Value::Object(properties) if key == "properties" => Value::Object(
                    properties
                        .into_iter()
                        .map(|(name, inner)| (self.accepted(name), self.rename_in(inner)))
                        .collect(),
                ),
                Value::Object(schemas)
                    if matches!(key.as_str(), "$defs" | "definitions" | "patternProperties") =>
                {
                    Value::Object(
                        schemas
                            .into_iter()
                            .map(|(name, inner)| (name, self.rename_in(inner)))
                            .collect(),
                    )
                }
                Value::Array(names) if key == "required" => names
                    .into_iter()
                    .map(|name| {
                        if let Value::String(name) = name {
                            self.accepted(name).into()
                        } else {
                            name
                        }
                    })
                    .collect(),
                // Samples of values, and words for readers.
                value
                    if matches!(
                        key.as_str(),
                        "enum" | "const" | "default" | "examples" | "example"
                    ) =>
                {
                    value
                }
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)
                | Value::Object(_) => self.rename_in(value),
            };
            (key, value)
        });
        schema.collect()
    }

    fn rename_in(&mut self, value: Value) -> Value {
        match value {
            Value::Object(schema) => Value::Object(self.rename(schema)),
            Value::Array(items) => items.into_iter().map(|item| self.rename_in(item)).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
        }
    }

    fn accepted(&mut self, name: String) -> String {
        if is_accepted(&name) {
            return name;
        }
        let mut form: String = name
            .chars()
            .filter(|c| is_plain(*c))
            .take(MAX_NAME_BYTES - HASH_DIGITS - 1)
            .collect();
        if !form.is_empty() {
            form.push('_');
        }
        let hash = HEXLOWER.encode(&Sha256::digest(&name));
        form.extend(hash.chars().take(HASH_DIGITS));
        self.0.insert(form.clone(), name);
        form
    }

    /// The sentence for the model; `None` if no name was changed.
    pub(super) fn note(&self) -> Option<String> {
        let names: Vec<String> = self
            .0
            .iter()
            .map(|(form, name)| format!("{form} is {name}"))
            .collect();
        (!names.is_empty()).then(|| format!("Names of arguments: {}.", names.join(", ")))
    }

    /// The arguments of a call with the tool's own names. Everything else keeps its spelling.
    pub(crate) fn restored(&self, arguments: &str) -> String {
        if self.0.is_empty() || serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_err() {
            return arguments.to_owned();
        }
        let mut out = String::with_capacity(arguments.len());
        let mut rest = arguments;
        while let Some(begin) = rest.find('"') {
            let Some(length) = text_length(rest.get(begin + 1..).unwrap_or_default()) else {
                break;
            };
            let end = begin + 1 + length;
            let text = rest.get(begin + 1..end).unwrap_or_default();
            let after = rest.get(end + 1..).unwrap_or_default();
            let is_key = after.trim_start().starts_with(':');
            match self.0.get(text).filter(|_name| is_key) {
                Some(name) => {
                    out.push_str(rest.get(..begin).unwrap_or_default());
                    out.push_str(&Value::from(name.as_str()).to_string());
                }
                None => out.push_str(rest.get(..=end).unwrap_or_default()),
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

/// The bytes before the quotation mark that ends a text of JSON.
fn text_length(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

fn is_accepted(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.chars().all(is_plain)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}
