//! Sections whose types declare their keys: one declaration gives the reader, the writer and a JSON Schema.
//!
//! A declared value is read along the schema of its type, so that every fault of it is reported at once in the usual
//! words. What has no fault becomes the type by serde; the rest has its default. `forms` are values in units of
//! their own and words, `texts` are names, addresses and patterns.

pub(crate) mod forms;
pub(crate) mod texts;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map as Object, Value, json};

use crate::read::reader::{Field, Map};

/// The keyword with the name of a text's form.
pub(crate) const FORM: &str = "x-form";
/// The keyword with the smallest and the largest value of a form, in its own unit.
pub(crate) const RANGE: &str = "x-range";
/// The keyword of a required key, with the words of what it accepts. Empty: the words of the schema, or the names.
pub(crate) const REQUIRED: &str = "x-required";
/// The keyword with the words of what one of several keys accepts.
const ACCEPTED: &str = "x-accepted";

/// The schema of a type, with the schemas of its parts inside.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let generator = settings.into_generator();
    generator.into_root_schema_for::<T>().to_value()
}

/// The keys that a type declares.
pub(crate) fn keys_of<T: JsonSchema>() -> Vec<String> {
    let schema = schema_of::<T>();
    let keys = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter();
    keys.flat_map(Object::keys).cloned().collect()
}

impl Map<'_> {
    /// A value that its type declares; the default for an absent one.
    pub(crate) fn declared<T: DeserializeOwned + JsonSchema + Default>(&mut self, key: &str) -> T {
        let field = self.get(key);
        field.map(|field| field.declared()).unwrap_or_default()
    }
}

impl Field<'_> {
    /// The value as its type declares it; a faulty part has its default.
    pub(crate) fn declared<T: DeserializeOwned + JsonSchema + Default>(&self) -> T {
        self.declared_and_checked(|_, _| ())
    }

    /// The same, with the faults of `check` among the others in the order of the keys.
    pub(crate) fn declared_and_checked<T: DeserializeOwned + JsonSchema + Default>(
        &self,
        check: fn(&mut T, &Self),
    ) -> T {
        let before = self.faults();
        let schema = schema_of::<T>();
        let read = serde_json::from_value(self.along(&schema).unwrap_or_default());
        let mut value = read.unwrap_or_else(|error| {
            // A part without a default has reported its fault already.
            if self.faults() == before {
                self.fault(error.to_string());
            }
            T::default()
        });
        check(&mut value, self);
        self.in_order(before, |path| position(&schema, path));
        value
    }

    /// The value that a schema accepts, with variables resolved.
    fn along(&self, schema: &Value) -> Option<Value> {
        let schema = self.alternative(schema);
        if let Some(properties) = schema["properties"].as_object() {
            let read = self.section(|map| object(map, schema, properties));
            return self.only_one(schema, read).map(Value::from);
        }
        if schema["additionalProperties"].is_object() {
            let entries = self.entries().into_iter().filter_map(|(name, field)| {
                Some((name, field.along(&schema["additionalProperties"])?))
            });
            return Some(Value::Object(entries.collect()));
        }
        if let Some(words) = words(schema) {
            return self.word(&words).map(Value::from);
        }
        if let Some(form) = schema[FORM].as_str() {
            return self.of_form(form, schema);
        }
        match kind(schema) {
            "boolean" => self.flag().map(Value::from),
            "integer" => self.number(range(schema)?).map(Value::from),
            "number" => self.decimal_of(schema).map(Value::from),
            "array" => self.array(schema),
            _ => self.text().map(Value::from),
        }
    }

    /// The alternative for a value of this kind. The alternative `null` counts as an absent key.
    fn alternative<'s>(&self, schema: &'s Value) -> &'s Value {
        let Some(alternatives) = schema["anyOf"].as_array() else {
            return schema;
        };
        if schema["properties"].is_object() {
            return schema;
        }
        let mut fitting = alternatives.iter();
        let fits = fitting.find(|known| is_mapping(known) == self.is_map());
        fits.filter(|known| kind(known) != "null")
            .or_else(|| alternatives.first())
            .unwrap_or(schema)
    }

    /// The keys of a mapping that accepts a single one of them.
    fn only_one(
        &self,
        schema: &Value,
        read: Object<String, Value>,
    ) -> Option<Object<String, Value>> {
        if schema["maxProperties"].is_null() {
            return Some(read);
        }
        let keys: Vec<&str> = read.keys().map(String::as_str).collect();
        if keys.len() > 1 {
            self.fault(format!("{}; accepted: one of them", keys.join(" and ")));
        }
        (keys.len() == 1).then_some(read)
    }

    fn array(&self, schema: &Value) -> Option<Value> {
        let items = self.list()?;
        if items.is_empty() && !schema["minItems"].is_null() {
            let accepted = schema[REQUIRED].as_str().unwrap_or_default();
            self.fault(format!("an empty list; accepted: {accepted}"));
        }
        let read = items.iter().filter_map(|field| {
            let schema = field.alternative(&schema["items"]);
            match name_key(schema) {
                // A plain name is a frequent mistake.
                Some(key) if field.is_text() => {
                    let name = field.text()?;
                    field.wrong_kind(&format!("a mapping, written as \"- {key}: {name}\""));
                    None
                }
                _ => field.along(schema),
            }
        });
        Some(read.collect())
    }

    fn decimal_of(&self, schema: &Value) -> Option<f64> {
        let bound = |key: &str| schema[key].as_f64();
        match (bound("minimum"), bound("maximum")) {
            (Some(from), Some(to)) => self.decimal(from..=to),
            _ => self.amount(),
        }
    }

    fn of_form(&self, form: &str, schema: &Value) -> Option<Value> {
        let range = range_of_form(schema).map(|(from, to)| from..=to);
        match (form, range) {
            ("duration", Some(range)) => self.duration(range).map(forms::duration_value),
            ("bytes", Some(range)) => self.bytes(range).map(Value::from),
            ("tokens", Some(range)) => self.tokens(range).map(Value::from),
            ("mapping", _) => {
                if !self.is_map() {
                    self.wrong_kind("a mapping of names to values");
                }
                Some(self.json()).filter(Value::is_object)
            }
            (text, _) => texts::reader(text)?(self).map(Value::from),
        }
    }

    /// The words of what a required key accepts.
    fn accepted(&self, property: &Value) -> String {
        let text = property[REQUIRED].as_str().unwrap_or_default();
        if !text.is_empty() {
            return text.to_owned();
        }
        words(property).map_or_else(|| self.names().agents.join(", "), |words| words.join(", "))
    }
}

/// The keys that a schema declares, in its order. Reports missing ones.
fn object(
    map: &mut Map<'_>,
    schema: &Value,
    properties: &Object<String, Value>,
) -> Object<String, Value> {
    let mut read = Object::new();
    for (key, property) in properties {
        if let Some(field) = map.get(key) {
            if let Some(value) = field.along(property) {
                read.insert(key.clone(), value);
            }
        } else if !property[REQUIRED].is_null() {
            map.missing(key, &map.field().accepted(property));
        }
    }
    let first = schema
        .pointer("/anyOf/0/required/0")
        .and_then(Value::as_str);
    if let Some(first) = first
        && read.values().all(|value| *value == json!([]))
    {
        let accepted = properties
            .get(first)
            .and_then(|key| key.get(ACCEPTED)?.as_str());
        map.missing(first, accepted.unwrap_or_default());
    }
    read
}

/// The only required key of a mapping, if it is a text.
fn name_key(schema: &Value) -> Option<&str> {
    let properties = schema["properties"].as_object()?;
    let required: Vec<_> = properties
        .iter()
        .filter(|(_, property)| !property[REQUIRED].is_null())
        .collect();
    match required.as_slice() {
        [(key, property)] if kind(property) == "string" => Some(key),
        _ => None,
    }
}

/// The positions of the keys and items of a path; an unknown key is the last one.
fn position(schema: &Value, path: &str) -> Vec<usize> {
    let mut schema = schema;
    let mut positions = Vec::new();
    for part in path.split(['.', '[']).filter(|part| !part.is_empty()) {
        let section = schema["anyOf"].as_array().and_then(|known| known.first());
        if schema["properties"].is_null() {
            schema = section.unwrap_or(schema);
        }
        if let Some(index) = part.strip_suffix(']').and_then(|index| index.parse().ok()) {
            positions.push(index);
            schema = &schema["items"];
            continue;
        }
        let keys = schema["properties"].as_object();
        let known = keys.and_then(|keys| keys.keys().position(|key| key == part));
        positions.push(known.unwrap_or(usize::MAX));
        schema = keys.and_then(|keys| keys.get(part)).unwrap_or(&Value::Null);
    }
    positions
}

/// Whether a schema describes a mapping, with keys of its own or free ones.
fn is_mapping(schema: &Value) -> bool {
    schema["properties"].is_object() || schema["additionalProperties"].is_object()
}

/// The smallest and the largest value of a form.
pub(crate) fn range_of_form(schema: &Value) -> Option<(u64, u64)> {
    serde_json::from_value(schema[RANGE].clone()).ok()
}

/// The words of an enumeration.
pub(crate) fn words(schema: &Value) -> Option<Vec<&str>> {
    if let Some(word) = schema["const"].as_str() {
        return Some(vec![word]);
    }
    if let Some(words) = schema["enum"].as_array() {
        return Some(words.iter().filter_map(Value::as_str).collect());
    }
    let alternatives = schema["oneOf"].as_array()?;
    Some(alternatives.iter().filter_map(words).flatten().collect())
}

/// The kind of a value, apart from `null`.
pub(crate) fn kind(schema: &Value) -> &str {
    let kinds = &schema["type"];
    kinds[0].as_str().or(kinds.as_str()).unwrap_or_default()
}

fn range(schema: &Value) -> Option<std::ops::RangeInclusive<u32>> {
    let bound = |key: &str| u32::try_from(schema[key].as_u64()?).ok();
    Some(bound("minimum")?..=bound("maximum").unwrap_or(u32::MAX))
}
