//! Parses the arguments of a call, as a model writes them: JSON, YAML, lines of keys and values, or any text.
//!
//! The parser tries JSON → YAML → keys and values → text. A text in none of these formats becomes `{"input": text}`,
//! and so does a value that is no mapping. A partially parsed text is used, and the lines that were not understood are
//! listed.

mod block;
mod fence;
mod flow;
mod pairs;
mod scalar;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use crate::react::unknown_tool::cut;

/// Parsed arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Arguments {
    pub(super) values: Map<String, Value>,
    /// The same as a JSON object: the text of the model where it is one.
    pub(super) text: String,
    /// The lines that were not understood, for people.
    pub(super) left_out: Option<String>,
}

/// A longer input is parsed as JSON or taken as text: the lenient parsers would take too long.
const MAX_LENIENT_BYTES: usize = 64 * 1024;

/// The arguments in an action input.
pub(super) fn parse(input: &str) -> Arguments {
    let input = fence::inside(input.trim());
    let (value, left_out) = match strict(input) {
        Some((Value::Object(values), "")) => {
            return Arguments {
                values,
                text: input.to_owned(),
                left_out: None,
            };
        }
        Some((value, "")) => (value, Vec::new()),
        // A remark after an object is not part of it.
        Some((value @ Value::Object(_), behind)) => (value, filled_lines(behind)),
        Some(_) | None => lenient(input),
    };
    let values = match value {
        Value::Object(values) => values,
        value @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)) => Map::from_iter([("input".to_owned(), value)]),
    };
    Arguments {
        text: written(&values),
        values,
        left_out: problem(&left_out),
    }
}

fn written(values: &Map<String, Value>) -> String {
    serde_json::to_string(values).unwrap_or_else(|_| "{}".to_owned())
}

/// The JSON at the beginning of a text, and the text after it.
fn strict(text: &str) -> Option<(Value, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, text.get(values.byte_offset()..)?))
}

fn lenient(input: &str) -> (Value, Vec<&str>) {
    if input.is_empty() {
        return (Value::Object(Map::new()), Vec::new());
    }
    if input.len() > MAX_LENIENT_BYTES {
        return (
            Value::String(input.to_owned()),
            vec!["more text than is looked into"],
        );
    }
    if let Some((value, behind)) = flow::prefix(input)
        && (value.is_object() && ends_there(behind) || behind.trim().is_empty())
    {
        return (value, filled_lines(behind));
    }
    let block = block::parse(input);
    match block.value {
        Some(value) => (value, block.left_out),
        None => behind_words(input).unwrap_or_else(|| (scalar::value(input), Vec::new())),
    }
}

/// An object after an announcement: `These are the arguments:` and then lines of JSON.
fn behind_words(input: &str) -> Option<(Value, Vec<&str>)> {
    let (at, _) = input.match_indices('\n').find(|(at, _)| {
        let line = input.get(at + 1..).unwrap_or_default();
        line.starts_with('{') || line.starts_with("```")
    })?;
    let (words, object) = input.split_at_checked(at)?;
    let (value, behind) = flow::prefix(fence::inside(object.trim()))?;
    let is_all = value.is_object() && behind.trim().is_empty();
    is_all.then(|| (value, filled_lines(words)))
}

/// Whether an object ends here: its line continues with no part of a query, as in `{a: 1} | json`.
fn ends_there(behind: &str) -> bool {
    let line = behind.lines().next().unwrap_or_default().trim();
    line.is_empty() || line.starts_with("```")
}

/// The lines of a text that are not blank.
fn filled_lines(text: &str) -> Vec<&str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("```"))
        .collect()
}

/// The first lines that were not understood, for people.
fn problem(left_out: &[&str]) -> Option<String> {
    const MAX_LINES: usize = 3;
    const MAX_CHARS: usize = 80;
    if left_out.is_empty() {
        return None;
    }
    let shown: Vec<String> = left_out
        .iter()
        .take(MAX_LINES)
        .map(|line| cut(line, MAX_CHARS))
        .collect();
    let more = left_out.len().saturating_sub(MAX_LINES);
    let more = if more > 0 {
        format!(" and {more} more lines")
    } else {
        String::new()
    };
    Some(format!("not understood: {}{more}", shown.join(" / ")))
}
