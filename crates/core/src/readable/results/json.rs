//! JSON in one line without quotes, and the beginning of JSON that was cut.

use serde_json::Value;

use super::{MAX_LINE_BYTES, MAX_LINE_DEPTH};
use crate::readable::format;

/// A value in one line: `pod: checkout, limits: {memory: 512Mi}`.
pub(super) fn line(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(object) if object.is_empty() => out.push_str("{}"),
        Value::Object(object) => pairs(&mut out, object, 1),
        Value::Array(items) => {
            out.push_str(&format::count(items.len(), "item"));
            if !items.is_empty() {
                out.push_str(": ");
                list(&mut out, items, 1);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            put(&mut out, value, 1)
        }
    }
    shortened(out)
}

/// Parses the beginning of JSON: open strings are dropped, open objects and lists closed.
pub(super) fn begun(text: &str) -> Option<Value> {
    const MAX_DEPTH: usize = 100;
    let mut open = Vec::new();
    let mut in_text = false;
    let mut is_escaped = false;

    // The place up to which the text can be completed, and what is open there.
    let mut complete: Option<(usize, Vec<char>)> = None;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if in_text => is_escaped = true,
            '"' => in_text = !in_text,
            _ if in_text => {}
            '{' | '[' if open.len() >= MAX_DEPTH => break,
            '{' | '[' => {
                open.push(if c == '{' { '}' } else { ']' });
                complete = Some((at + 1, open.clone()));
            }
            '}' | ']' => {
                open.pop();
                complete = Some((at + 1, open.clone()));
            }
            ',' => complete = Some((at, open.clone())),
            _ => {}
        }
    }
    let (end, open) = complete?;
    let closed = text
        .get(..end)?
        .chars()
        .chain(open.into_iter().rev())
        .collect::<String>();
    serde_json::from_str(&closed).ok()
}

/// `text` within the bound of a line.
pub(super) fn shortened(mut text: String) -> String {
    if text.len() > MAX_LINE_BYTES {
        text.truncate(text.floor_char_boundary(MAX_LINE_BYTES));
        text.push('…');
    }
    text
}

fn put(out: &mut String, value: &Value, depth: usize) {
    if out.len() > MAX_LINE_BYTES {
        return;
    }
    match value {
        Value::String(text) => {
            let mut words = text.split_whitespace();
            out.push_str(words.next().unwrap_or_default());
            for word in words {
                if out.len() > MAX_LINE_BYTES {
                    return;
                }
                out.push(' ');
                out.push_str(word);
            }
        }
        Value::Object(object) if object.is_empty() => out.push_str("{}"),
        Value::Array(items) if items.is_empty() => out.push_str("[]"),
        Value::Object(_) if depth > MAX_LINE_DEPTH => out.push_str("{…}"),
        Value::Array(_) if depth > MAX_LINE_DEPTH => out.push_str("[…]"),
        Value::Object(object) => {
            out.push('{');
            pairs(out, object, depth);
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            list(out, items, depth);
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
}

fn pairs(out: &mut String, object: &serde_json::Map<String, Value>, depth: usize) {
    for (index, (name, value)) in object.iter().enumerate() {
        if out.len() > MAX_LINE_BYTES {
            return;
        }
        out.push_str(if index > 0 { ", " } else { "" });
        out.push_str(&name.split_whitespace().collect::<Vec<_>>().join(" "));
        out.push_str(": ");
        put(out, value, depth + 1);
    }
}

fn list(out: &mut String, items: &[Value], depth: usize) {
    for (index, value) in items.iter().enumerate() {
        if out.len() > MAX_LINE_BYTES {
            return;
        }
        out.push_str(if index > 0 { ", " } else { "" });
        put(out, value, depth + 1);
    }
}
