//! The arguments of a call as a model writes them: JSON, something like it, lines of keys and values, or any text.
//!
//! Tried in this order. Text that is none of these becomes `{"input": text}`; so does a value that is no mapping.

mod block;
mod flow;
mod scalar;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

/// Arguments that were understood.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Arguments {
    /// By name.
    pub(super) values: Map<String, Value>,
    /// The same as a JSON object: the model's own text where it is one.
    pub(super) text: String,
    /// For people: lines that were not understood.
    pub(super) left_out: Option<String>,
}

/// The arguments in an action input.
pub(super) fn of(input: &str) -> Arguments {
    let input = unfenced(input.trim());
    if let Ok(values) = serde_json::from_str::<Map<String, Value>>(input) {
        return Arguments { values, text: input.to_owned(), left_out: None };
    }
    let (value, left_out) = understood(input);
    let values = match value {
        Value::Object(values) => values,
        value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Map::from_iter([("input".to_owned(), value)])
        }
    };
    Arguments { text: Value::Object(values.clone()).to_string(), values, left_out }
}

fn understood(input: &str) -> (Value, Option<String>) {
    if input.is_empty() {
        return (Value::Object(Map::new()), None);
    }
    if let Some(value) = json(input).or_else(|| flow::value(input)) {
        return (value, None);
    }
    let block = block::read(input);
    let left_out = (!block.left_out.is_empty()).then(|| format!("not understood: {}", block.left_out.join(" / ")));
    match block.value {
        Some(value) => (value, left_out),
        None => (scalar::value(input), None),
    }
}

/// A JSON value. What a model says behind a mapping is not part of it.
fn json(input: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(input) {
        return Some(value);
    }
    let first = serde_json::Deserializer::from_str(input).into_iter::<Value>().next();
    first.filter(|_| input.starts_with('{'))?.ok()
}

/// The text inside of backticks: three, with or without the name of a language, or one.
fn unfenced(text: &str) -> &str {
    let Some(inside) = text.strip_prefix("```") else {
        let single = text.strip_prefix('`').and_then(|text| text.strip_suffix('`'));
        return single.filter(|inside| !inside.contains('`')).unwrap_or(text);
    };
    let is_language = |line: &str| line.chars().all(|c| c.is_alphanumeric());
    match inside.split_once('\n') {
        // A fence ends at the beginning of a line: in the middle of one it may be data.
        Some((first, rest)) if is_language(first.trim()) => {
            let rest = rest.split_once("\n```").map_or(rest, |(inside, _)| inside).trim_end();
            rest.strip_suffix("```").unwrap_or(rest)
        }
        Some(_) | None => {
            let inside = inside.rsplit_once("```").map_or(inside, |(inside, _)| inside);
            let inside = inside.strip_prefix("json").or_else(|| inside.strip_prefix("yaml")).unwrap_or(inside);
            inside.trim()
        }
    }
}
