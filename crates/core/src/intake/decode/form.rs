//! The fields of a form, as `application/x-www-form-urlencoded` has them: `title=Disk+full&host%5Bname%5D=db-3`.
//!
//! The bytes decide and not the `Content-Type`, which `curl -d` sends with any text.

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::{charset, json, note};
use crate::sources::Repair;

/// A text with more fields is no form.
const MAX_FIELDS: usize = 1_024;
const MAX_KEY_BYTES: usize = 128;
const MAX_LEVELS: usize = 4;
/// Fields with the whole message as JSON.
const PAYLOADS: [&str; 6] = ["payload", "json", "data", "body", "event", "message"];

/// The fields as an object, or the JSON that one of them has; `None` for any other text.
pub(super) fn parse(text: &str, repairs: &mut Vec<Repair>) -> Option<Value> {
    let pairs = pairs(text)?;
    for FormField { name, value } in &pairs {
        if (pairs.len() == 1 || PAYLOADS.contains(&name.as_str()))
            && let Some(value @ (Value::Object(_) | Value::Array(_))) = json::parse(value, repairs)
        {
            note(repairs, Repair::Form);
            return Some(value);
        }
    }
    let fields = object(pairs)?;
    note(repairs, Repair::Form);
    Some(fields)
}

/// The JSON text in one of the fields, otherwise the fields as one: a body that is too large for values.
pub(in crate::intake) fn text(text: &str) -> Option<String> {
    let mut pairs = pairs(text)?;
    let is_only = pairs.len() == 1;
    let payload = pairs.iter().position(|field: &FormField| {
        (is_only || PAYLOADS.contains(&field.name.as_str())) && json::is_json(&field.value)
    });
    match payload {
        Some(index) => Some(pairs.swap_remove(index).value),
        None => object(pairs).map(|fields| fields.to_string()),
    }
}

fn pairs(text: &str) -> Option<Vec<FormField>> {
    let text = text.trim();
    if !text.contains('=') || text.contains(['\n', '\r']) {
        return None;
    }
    let pairs: Vec<&str> = text
        .split('&')
        .filter(|pair| !pair.is_empty())
        .take(MAX_FIELDS + 1)
        .collect();
    if pairs.len() > MAX_FIELDS {
        return None;
    }
    pairs.into_iter().map(field).collect()
}

fn object(pairs: Vec<FormField>) -> Option<Value> {
    if pairs.len() < 2 {
        return None;
    }
    let mut fields = Value::Object(Map::new());
    for FormField { name, value } in pairs {
        insert(&mut fields, &name, value);
    }
    Some(fields)
}

struct FormField {
    name: String,
    value: String,
}

/// A pair of the form; `None` if no form has a field of its name.
fn field(pair: &str) -> Option<FormField> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let name = decoded(name);
    let is_named = !name.is_empty()
        && name.len() <= MAX_KEY_BYTES
        && name
            .chars()
            .all(|c: char| c.is_alphanumeric() || "_.-[]:$@".contains(c));
    is_named.then(|| FormField {
        name,
        value: decoded(value),
    })
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    for (index, piece) in text.split('+').enumerate() {
        if index > 0 {
            bytes.push(b' ');
        }
        bytes.extend(percent_decode_str(piece));
    }
    charset::owned_text(bytes, None, &mut Vec::new()).unwrap_or_else(|| text.replace('+', " "))
}

/// `alert[name]` is the field `name` in `alert`; a name that stands twice, and one with `[]`, is a list.
fn insert(fields: &mut Value, name: &str, value: String) {
    let (first, rest) = name.split_once('[').unwrap_or((name, ""));
    let is_nested = rest.ends_with(']') && !first.is_empty();
    let path: Vec<&str> = if is_nested {
        rest.trim_end_matches(']')
            .split("][")
            .take(MAX_LEVELS)
            .collect()
    } else {
        Vec::new()
    };
    let mut place = &mut *fields;
    for key in std::iter::once(if is_nested { first } else { name }).chain(path) {
        if key.is_empty() {
            break;
        }
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Some(object) = place.as_object_mut() else {
            return;
        };
        place = object.entry(key).or_insert(Value::Null);
    }
    *place = match std::mem::take(place) {
        Value::Null if name.ends_with("[]") => Value::Array(vec![value.into()]),
        Value::Null => value.into(),
        Value::Array(mut values) => {
            values.push(value.into());
            values.into()
        }
        known @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            Value::Array(vec![known, value.into()])
        }
    };
}
