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
const FORM: &str = "x-form";
/// The keyword with the smallest and the largest value of a form, in its own unit.
const RANGE: &str = "x-range";
/// The keyword with the words of what a required key accepts.
const ACCEPTED: &str = "x-accepted";

/// The schema of a type, with the schemas of its parts inside.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let inline = |settings: &mut SchemaSettings| settings.inline_subschemas = true;
    let generator = SchemaSettings::draft07().with(inline).into_generator();
    generator.into_root_schema_for::<T>().to_value()
}

impl Field<'_> {
    /// The value as its type declares it; a faulty part has its default.
    pub(crate) fn declared<T: DeserializeOwned + JsonSchema + Default>(&self) -> T {
        let value = self.along(&schema_of::<T>());
        value.map_or_else(T::default, |value| self.typed(value))
    }

    fn typed<T: DeserializeOwned + Default>(&self, value: Value) -> T {
        serde_json::from_value(value).unwrap_or_else(|error| {
            // A fault of a required key is reported already.
            if self.faults() == 0 {
                self.fault(error.to_string());
            }
            T::default()
        })
    }

    /// The same, with the faults of `check` among the others in the order of the keys.
    pub(crate) fn declared_and_checked<T: DeserializeOwned + JsonSchema + Default>(
        &self,
        check: fn(&T, &Self),
    ) -> T {
        let before = self.faults();
        let value = self.declared();
        check(&value, self);
        let schema = schema_of::<T>();
        let keys = schema["properties"].as_object();
        let keys: Vec<String> = keys.into_iter().flat_map(Object::keys).cloned().collect();
        self.in_order(before, &keys);
        value
    }

    /// The value that a schema accepts, with variables resolved.
    fn along(&self, schema: &Value) -> Option<Value> {
        if let Some(properties) = schema["properties"].as_object() {
            return Some(self.section(|map| object(map, schema, properties).into()));
        }
        if let Some(alternatives) = schema["anyOf"].as_array() {
            // The other alternative is `null`, which counts as an absent key.
            return self.along(alternatives.first()?);
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
            "array" => {
                let items = self.list()?;
                let item = |field: &Self| field.along(&schema["items"]);
                Some(items.iter().filter_map(item).collect())
            }
            _ => self.text().map(Value::from),
        }
    }

    fn of_form(&self, form: &str, schema: &Value) -> Option<Value> {
        let bound = |index: usize| schema[RANGE][index].as_u64();
        let range = bound(0).zip(bound(1)).map(|(from, to)| from..=to);
        match (form, range) {
            ("duration", Some(range)) => self.duration(range).map(forms::duration_value),
            ("bytes", Some(range)) => self.bytes(range).map(Value::from),
            ("tokens", Some(range)) => self.tokens(range).map(Value::from),
            (text, _) => texts::reader(text)?(self).map(Value::from),
        }
    }
}

impl Map<'_> {
    /// The keys of a type that shares its mapping with others.
    pub(crate) fn part<T: DeserializeOwned + JsonSchema + Default>(&mut self) -> T {
        let schema = schema_of::<T>();
        let none = Object::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        let value = object(self, &schema, properties);
        self.field().typed(value.into())
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
        let Some(field) = map.get(key) else {
            if names(&schema["required"], key) {
                map.missing(key, property[ACCEPTED].as_str().unwrap_or_default());
            }
            continue;
        };
        if let Some(value) = field.along(property) {
            read.insert(key.clone(), value);
        }
    }
    if let Some(alternatives) = schema["anyOf"].as_array()
        && !read.values().any(|value| *value != json!([]))
    {
        let first = alternatives[0]["required"][0].as_str().unwrap_or_default();
        map.missing(
            first,
            properties[first][ACCEPTED].as_str().unwrap_or_default(),
        );
    }
    read
}

fn names(required: &Value, key: &str) -> bool {
    required
        .as_array()
        .is_some_and(|keys| keys.iter().any(|name| name == key))
}

/// The words of an enumeration.
fn words(schema: &Value) -> Option<Vec<&str>> {
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
fn kind(schema: &Value) -> &str {
    let kinds = &schema["type"];
    kinds[0].as_str().or(kinds.as_str()).unwrap_or_default()
}

fn range(schema: &Value) -> Option<std::ops::RangeInclusive<u32>> {
    let bound = |key: &str| u32::try_from(schema[key].as_u64()?).ok();
    Some(bound("minimum")?..=bound("maximum").unwrap_or(u32::MAX))
}
