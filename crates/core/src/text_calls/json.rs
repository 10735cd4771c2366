//! Calls as JSON, in the forms of interfaces and frameworks.

use serde_json::{Deserializer, Value};

use super::{names_tool, offered, spellings};
use crate::plan::ToolSpec;

/// The beginnings of JSON that are tried.
const MAX_BEGINNINGS: usize = 16;
/// Calls one after the other, and lists in lists.
const MAX_DEPTH: usize = 8;
const NAMES: [&str; 7] = [
    "name",
    "tool",
    "tool_name",
    "function",
    "function_name",
    "action",
    "recipient_name",
];
const ARGUMENTS: [&str; 8] = [
    "arguments",
    "parameters",
    "args",
    "input",
    "tool_input",
    "tool_args",
    "action_input",
    "params",
];
const LISTS: [&str; 6] = [
    "tool_calls",
    "tool_call",
    "function_call",
    "tool_uses",
    "calls",
    "actions",
];

/// The offset of a call with which the text ends, at the beginning of a line or after one word.
pub(super) fn at_the_end(text: &str, tools: &[ToolSpec]) -> Option<usize> {
    let braces = text
        .match_indices(['{', '['])
        .map(|(at, _)| at)
        .filter(|at: &usize| {
            let before = text.get(..*at).unwrap_or_default();
            let line = before.rsplit('\n').next().unwrap_or_default();
            !line.trim().contains(char::is_whitespace)
        });
    braces.take(MAX_BEGINNINGS).find(|at| {
        text.get(*at..)
            .is_some_and(|json| is_only_calls(json, tools))
    })
}

/// Whether a text is nothing but one call in JSON, of whatever tool: a name, arguments, and no other fields.
pub(super) fn is_bare_call(text: &str) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_str(text.trim()) else {
        return false;
    };
    let has_name = NAMES
        .iter()
        .any(|key| fields.get(*key).is_some_and(Value::is_string));
    let has_arguments = ARGUMENTS
        .iter()
        .any(|key| fields.get(*key).is_some_and(Value::is_object));
    fields.len() == 2 && has_name && has_arguments
}

/// Whether a text is nothing but calls. Brackets and fences after one, and a missing end, make no difference.
pub(super) fn is_only_calls(text: &str, tools: &[ToolSpec]) -> bool {
    let mut rest = text.trim();
    for _ in 0..MAX_DEPTH {
        let mut values = Deserializer::from_str(rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) if is_call(&value, tools, 0) => {}
            Some(Err(error)) if error.is_eof() => return is_begun_call(rest, tools),
            Some(Ok(_) | Err(_)) | None => return false,
        }
        let behind = rest.get(values.byte_offset()..).unwrap_or_default();
        rest = behind.trim_start_matches(|letter: char| {
            letter.is_whitespace() || matches!(letter, '}' | ']' | ';' | ',' | '`')
        });
        if rest.is_empty() {
            return true;
        }
    }
    false
}

/// Whether the beginning of a JSON value has the name of a tool and the key of its arguments.
fn is_begun_call(text: &str, tools: &[ToolSpec]) -> bool {
    let mut names = tools.iter().flat_map(spellings);
    let has = |word: &str| text.contains(&format!("\"{word}\""));
    ARGUMENTS.iter().any(|key| has(key)) && names.any(|name| has(&name))
}

fn is_call(value: &Value, tools: &[ToolSpec], depth: usize) -> bool {
    let inner = |value: &Value| depth < MAX_DEPTH && is_call(value, tools, depth + 1);
    let fields = match value {
        Value::Array(calls) => return !calls.is_empty() && calls.iter().all(inner),
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return false,
    };
    if fields.len() == 1
        && fields
            .iter()
            .any(|(name, value)| value.is_object() && offered(name, tools) == Some(""))
    {
        return true;
    }
    if LISTS.iter().any(|key| fields.get(*key).is_some_and(inner)) {
        return true;
    }
    let call = fields
        .get("function")
        .and_then(Value::as_object)
        .unwrap_or(fields);
    let name = NAMES.iter().find_map(|key| call.get(*key)?.as_str());
    ARGUMENTS.iter().any(|key| call.contains_key(*key))
        && name.is_some_and(|name| names_tool(name, tools))
}
