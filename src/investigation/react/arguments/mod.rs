//! The arguments of a call as a model writes them: JSON, something like it, lines of keys and values, or any text.
//!
//! Tried in this order, as its models do: JSON → YAML → keys and values → the text. Text that is none of these becomes
//! `{"input": text}`; so does a value that is no mapping. What is understood in part is used, and what was left out named.

mod block;
mod fence;
mod flow;
mod pairs;
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

/// What is longer is JSON or text: nobody writes so much by hand, and patience takes its time.
const LONGEST: usize = 64 * 1024;

/// The arguments in an action input.
pub(super) fn of(input: &str) -> Arguments {
    let input = fence::inside(input.trim());
    let (value, left_out) = match strict(input) {
        Some((Value::Object(values), "")) => return Arguments { values, text: input.to_owned(), left_out: None },
        Some((value, "")) => (value, Vec::new()),
        // What a model says behind an object is not part of it.
        Some((value @ Value::Object(_), behind)) => (value, said(behind)),
        Some(_) | None => understood(input),
    };
    let values = match value {
        Value::Object(values) => values,
        value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Map::from_iter([("input".to_owned(), value)])
        }
    };
    Arguments { text: written(&values), values, left_out: told(&left_out) }
}

fn written(values: &Map<String, Value>) -> String {
    serde_json::to_string(values).unwrap_or_else(|_| "{}".to_owned())
}

/// The JSON that a text begins with, and what is behind it.
fn strict(text: &str) -> Option<(Value, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, text.get(values.byte_offset()..)?))
}

fn understood(input: &str) -> (Value, Vec<&str>) {
    if input.is_empty() {
        return (Value::Object(Map::new()), Vec::new());
    }
    if input.len() > LONGEST {
        return (Value::String(input.to_owned()), vec!["more text than is looked into"]);
    }
    if let Some((value, behind)) = flow::prefix(input)
        && (value.is_object() && ends_there(behind) || behind.trim().is_empty())
    {
        return (value, said(behind));
    }
    let block = block::read(input);
    match block.value {
        Some(value) => (value, block.left_out),
        None => behind_words(input).unwrap_or_else(|| (scalar::value(input), Vec::new())),
    }
}

/// An object that a model announces: `These are the arguments:` and then lines of JSON.
fn behind_words(input: &str) -> Option<(Value, Vec<&str>)> {
    let (at, _) = input.match_indices('\n').find(|(at, _)| {
        let line = input.get(at + 1..).unwrap_or_default();
        line.starts_with('{') || line.starts_with("```")
    })?;
    let (words, object) = input.split_at_checked(at)?;
    let (value, behind) = flow::prefix(fence::inside(object.trim()))?;
    let is_all = value.is_object() && behind.trim().is_empty();
    is_all.then(|| (value, said(words)))
}

/// Whether an object is one in its own right: nothing behind it, or words, and no more of a query: `{a: 1} | json`.
fn ends_there(behind: &str) -> bool {
    let line = behind.lines().next().unwrap_or_default().trim();
    line.is_empty() || line.starts_with("```")
}

/// The lines of a text that say anything.
fn said(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("```")).collect()
}

/// For people: the first of the lines that were left out.
fn told(left_out: &[&str]) -> Option<String> {
    const MOST: usize = 3;
    const LONGEST: usize = 80;
    if left_out.is_empty() {
        return None;
    }
    let cut = |line: &&str| match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => (*line).to_owned(),
    };
    let shown: Vec<String> = left_out.iter().take(MOST).map(cut).collect();
    let more = left_out.len().saturating_sub(MOST);
    let more = if more > 0 { format!(" and {more} more lines") } else { String::new() };
    Some(format!("not understood: {}{more}", shown.join(" / ")))
}
