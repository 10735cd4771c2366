//! The JSON of a text: strict, several values, one value in a JSON text, and what templates make of it.

use serde_json::Value;

use super::{note, repair};
use crate::sources::Repair;

/// A JSON text in a JSON text, in a JSON text.
const MAX_TEXTS: usize = 3;
/// More values of one body are not looked for.
const MAX_VALUES: usize = 100_000;

/// The value; `None` for a plain text. Several values are a list.
pub(in crate::intake) fn parse(text: &str, repairs: &mut Vec<Repair>) -> Option<Value> {
    let value = one(text, repairs)?;
    let mut inner = value
        .as_str()
        .filter(|text| is_json(text))
        .and_then(|text| one(text, repairs));
    for _ in 1..MAX_TEXTS {
        let Some(text) = inner
            .as_ref()
            .and_then(Value::as_str)
            .filter(|text| is_json(text))
        else {
            break;
        };
        inner = one(text, repairs);
    }
    let Some(inner) = inner.filter(|inner| inner.is_object() || inner.is_array()) else {
        return Some(value);
    };
    note(repairs, Repair::JsonInText);
    Some(inner)
}

fn one(text: &str, repairs: &mut Vec<Repair>) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    if !is_json(text) {
        return None;
    }
    if let Some(value) = sequence(text) {
        if value.is_array() {
            note(repairs, Repair::Lines);
        }
        return Some(value);
    }
    lines(text, repairs)
        .inspect(|_| note(repairs, Repair::Lines))
        .or_else(|| fixed(text, repairs))
}

/// Whether a text begins like an object or a list.
pub(in crate::intake) fn is_json(text: &str) -> bool {
    text.trim_start_matches(is_gap).starts_with(['{', '[', '"'])
}

/// White space, and the separator of JSON text sequences (RFC 7464).
pub(super) fn is_gap(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1e}' | '\u{feff}' | '\u{0}')
}

/// Several objects or lists, one after the other.
fn sequence(text: &str) -> Option<Value> {
    let text = text.trim_matches(is_gap);
    let mut values = Vec::new();
    if text.contains('\u{1e}') {
        for part in text
            .split('\u{1e}')
            .filter(|part| !part.trim_matches(is_gap).is_empty())
        {
            values.push(serde_json::from_str(part.trim_matches(is_gap)).ok()?);
        }
    } else {
        for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            values.push(value.ok()?);
        }
    }
    list(values)
}

/// A list of what is no single value.
fn list(values: Vec<Value>) -> Option<Value> {
    let are_bodies = values
        .iter()
        .all(|value| value.is_object() || value.is_array());
    match <[Value; 1]>::try_from(values) {
        Ok([only]) => Some(only),
        Err(values) => (are_bodies && !values.is_empty() && values.len() <= MAX_VALUES)
            .then_some(Value::Array(values)),
    }
}

/// Lines of which at least two are whole objects. A line with a fault costs only itself: it is repaired, or a text.
fn lines(text: &str, repairs: &mut Vec<Repair>) -> Option<Value> {
    let object = |line: &str| {
        serde_json::from_str::<Value>(line)
            .ok()
            .filter(Value::is_object)
    };
    let lines: Vec<&str> = text
        .lines()
        .map(|line| line.trim_matches(is_gap))
        .filter(|line| has_word(line))
        .collect();
    if lines.len() > MAX_VALUES
        || lines
            .iter()
            .filter(|line| object(line).is_some())
            .take(2)
            .count()
            < 2
    {
        return None;
    }
    let values = lines.iter().map(|line: &&str| {
        // The lines of a list end with commas.
        let line = line.strip_suffix(',').unwrap_or(line);
        object(line)
            .or_else(|| fixed(line, repairs))
            .unwrap_or_else(|| Value::String(line.to_owned()))
    });
    Some(Value::Array(values.collect()))
}

pub(super) fn has_word(line: &str) -> bool {
    line.contains(|c: char| c.is_alphanumeric())
}

pub(super) fn fixed(text: &str, repairs: &mut Vec<Repair>) -> Option<Value> {
    let repaired = repair::repair(text)?;
    let value = serde_json::from_str(&repaired.json).ok()?;
    repaired
        .repairs
        .into_iter()
        .for_each(|repair| note(repairs, repair));
    Some(value)
}
