//! Calls that a model's server has left in the text of an answer, in the markup of the model.
//!
//! A server without a parser for its model returns `<tool_call>{"name": …}</tool_call>` as text. Such an answer is a
//! call that was not made, and no analysis. What stands in code or in a quotation is text, and so is a markup that an
//! alert or a result has, too: an answer may quote it (`docs/decisions/0033-a-quoted-call-is-text.md`).

mod markup;
mod prose;

use serde_json::Value;

use self::markup::Opener;
use super::code::{ends, fence};
use super::plan::ToolSpec;

/// Bytes behind the beginning of a markup that have to hold the name of a tool or the form of a call.
const REACH_BYTES: usize = 300;
/// Bytes of a call that are compared with the texts from outside.
const SNIPPET_BYTES: usize = 64;

/// The first call in the text that `is_quoted` does not know, from its markup on.
pub fn first<'t>(text: &'t str, tools: &[ToolSpec], is_quoted: impl Fn(&str) -> bool) -> Option<&'t str> {
    let calls = in_markup(text, tools).into_iter().chain(in_a_fence(text, tools)).chain(as_json(text, tools));
    let own = |at: &usize| !is_quoted(&snippet(text.get(*at..).unwrap_or_default()));
    calls.filter(own).min().and_then(|at| text.get(at..))
}

/// The markup of a call that [`first`] has found, for people: `<tool_call>`, a fence with its language, or JSON.
pub fn markup_of(call: &str) -> &str {
    if let Some(opener) = markup::OPENERS.iter().find(|opener| begins(call, opener.word)) {
        return call.get(..opener.word.len()).unwrap_or_default();
    }
    if fence(call.lines().next().unwrap_or_default()).is_some() {
        return call.lines().next().unwrap_or_default().trim();
    }
    "JSON"
}

fn begins(text: &str, word: &str) -> bool {
    text.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word))
}

/// Whether a text from outside has the beginning of this call, as [`first`] gives it.
pub fn has_snippet(outside: &str, snippet: &str) -> bool {
    !snippet.is_empty() && bare(outside).contains(snippet)
}

/// The beginning of a call, in the form that is compared.
fn snippet(call: &str) -> String {
    bare(call.get(..call.floor_char_boundary(SNIPPET_BYTES)).unwrap_or_default())
}

/// A text without white space and without the escapes of JSON.
fn bare(text: &str) -> String {
    text.replace("\\n", "").replace("\\t", "").chars().filter(|c| !c.is_whitespace() && *c != '\\').collect()
}

/// The offsets of markups outside of code that begin a call.
fn in_markup(text: &str, tools: &[ToolSpec]) -> Vec<usize> {
    if !markup::may_begin(text) {
        return Vec::new();
    }
    let prose = prose::prose(text);
    let lower = prose.to_ascii_lowercase();
    let begins = |(at, opener): &(usize, &Opener)| {
        let behind = text.get(at + opener.word.len()..).unwrap_or_default();
        let behind = behind.get(..behind.floor_char_boundary(REACH_BYTES)).unwrap_or_default();
        opener.begins_call(behind) || names_tool(behind, tools)
    };
    let found =
        markup::OPENERS.iter().flat_map(|opener| lower.match_indices(opener.word).map(move |(at, _)| (at, opener)));
    found.filter(begins).map(|(at, _)| at).collect()
}

/// Whether the text has the name of an offered tool, in the spelling of the plan or of a function.
fn names_tool(text: &str, tools: &[ToolSpec]) -> bool {
    tools.iter().any(|tool| text.contains(&tool.name) || text.contains(&tool.name.replacen('.', "__", 1)))
}

/// The offset of a fence that Gemini writes around a call, and of one around a JSON call at the end of the answer.
fn in_a_fence(text: &str, tools: &[ToolSpec]) -> Vec<usize> {
    let (mut found, mut open, mut at) = (Vec::new(), None, 0);
    for line in text.split_inclusive('\n') {
        match open {
            None => {
                if let Some(mark) = fence(line) {
                    let info = line.trim().trim_start_matches(mark.sign).trim().to_ascii_lowercase();
                    open = Some((mark, at, at + line.len(), info));
                }
            }
            Some((mark, begin, content, ref info)) if ends(line.trim_end_matches(['\n', '\r']), mark) => {
                let (code, rest) = (text.get(content..at), text.get(at + line.len()..));
                let is_call = code.is_some_and(|code| is_json_call(code, tools));
                let is_last = rest.is_some_and(|rest| rest.trim().is_empty());
                if markup::FENCES.contains(&info.as_str()) || (is_last && is_call) {
                    found.push(begin);
                }
                open = None;
            }
            Some(_) => {}
        }
        at += line.len();
    }
    if let Some((_, begin, content, info)) = open
        && (markup::FENCES.contains(&info.as_str())
            || text.get(content..).is_some_and(|code| is_json_call(code, tools)))
    {
        found.push(begin);
    }
    found
}

/// A text that is nothing but a call as JSON, or ends with one behind words.
fn as_json(text: &str, tools: &[ToolSpec]) -> Option<usize> {
    let trimmed = text.trim_end();
    let starts = |at: &usize| {
        let before = text.get(..*at).unwrap_or_default();
        before.trim_start().is_empty() || before.ends_with('\n')
    };
    let braces = text.match_indices(['{', '[']).map(|(at, _)| at).filter(starts);
    braces.take(16).find(|at| trimmed.get(*at..).is_some_and(|json| is_json_call(json, tools)))
}

/// Whether a JSON text is a call of an offered tool, or a list of such calls.
fn is_json_call(text: &str, tools: &[ToolSpec]) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(text.trim()) else { return false };
    match value.as_array() {
        Some(calls) => !calls.is_empty() && calls.iter().all(|call| is_call(call, tools)),
        None => is_call(&value, tools),
    }
}

fn is_call(value: &Value, tools: &[ToolSpec]) -> bool {
    let call = value.get("function").filter(|function| function.is_object()).unwrap_or(value);
    let name = ["name", "tool", "tool_name", "function"].iter().find_map(|key| call.get(key)?.as_str());
    let has_arguments =
        ["arguments", "parameters", "args", "input", "tool_input"].iter().any(|key| call.get(key).is_some());
    has_arguments && name.is_some_and(|name| names_tool(name, tools))
}

#[cfg(test)]
mod tests;
