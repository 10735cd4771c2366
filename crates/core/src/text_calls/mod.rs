//! Tool calls in the text of an answer, where a model's server has left them in the markup of the model.
//!
//! A server without a parser for its model returns `<tool_call>{"name": …}</tool_call>` as text. Such an answer is a
//! call that was not made, and no analysis. What stands in code or in a quotation is text, and so is a markup that an
//! alert or a result has, too: an answer may quote it (`docs/decisions/0010-text-format-react.md`).

mod json;
mod markup;
mod prose;
mod tags;
mod written;

use self::markup::Opener;
use self::tags::TagRole;
use super::code::{ends, fence};
use super::plan::ToolSpec;
use super::readable::text::beginning;
use super::summary::names_cause;
use super::tool_names::function;

/// Bytes after the beginning of a markup that have to hold the name of a tool or the form of a call.
const REACH_BYTES: usize = 300;
/// Bytes of a call that are compared with the texts from outside.
const SNIPPET_BYTES: usize = 64;

/// Bytes of a tag that is shown to people.
const MARKUP_BYTES: usize = 40;

/// The meaning of `ReAct` labels in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// The format of the answer, which its own parser reads.
    Format,
    /// A call that was not made.
    Call,
}

/// The first call in the text that `is_quoted` does not know, from its markup on. A form that may also be the mention
/// of a call counts only in a text that names no cause: a report may end with the call that it recommends.
pub fn first<'t>(
    text: &'t str,
    tools: &[ToolSpec],
    labels: Labels,
    is_quoted: impl Fn(&str) -> bool,
) -> Option<&'t str> {
    let prose = prose::prose(text);
    let mut calls = in_markup(text, &prose, tools);
    let (in_tags, mentions): (Vec<_>, Vec<_>) = tags::found(&prose, tools)
        .into_iter()
        .partition(|(_, reading)| *reading == TagRole::Call);
    calls.extend(in_tags.into_iter().map(|(at, _)| at));
    calls.extend(in_a_fence(text, tools));
    calls.extend(json::at_the_end(text, tools));
    calls.extend(json::is_bare_call(text).then_some(0));
    calls.extend(written::action(&prose, tools).filter(|_at| labels == Labels::Call));
    if !names_cause(text) {
        calls.extend(mentions.into_iter().map(|(at, _)| at));
        calls.extend(written::at_the_end(&prose, tools));
        calls.extend(written::labelled(&prose, tools));
        calls.extend(
            last_fence(text)
                .filter(|(_, code)| begins_call(code, tools))
                .map(|(at, _)| at),
        );
    }
    calls
        .into_iter()
        .filter(|at: &usize| !is_quoted(&snippet(text.get(*at..).unwrap_or_default())))
        .min()
        .and_then(|at| text.get(at..))
}

/// The markup of a call that [`first`] has found, for people: `<tool_call>`, a fence with its language, or JSON.
pub fn markup_of(call: &str) -> &str {
    if let Some(opener) = markup::OPENERS
        .iter()
        .find(|opener| begins(call, opener.word))
    {
        return call.get(..opener.word.len()).unwrap_or_default();
    }
    let line = call.lines().next().unwrap_or_default().trim();
    let tag = line.split_inclusive(['>', ']']).next().unwrap_or_default();
    if tag.starts_with(['<', '[']) && tag.len() <= MARKUP_BYTES {
        return tag;
    }
    if fence(line).is_some() || line.to_ascii_lowercase().starts_with("action") {
        line
    } else {
        "JSON"
    }
}

fn begins(text: &str, word: &str) -> bool {
    text.get(..word.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(word))
}

/// Whether a text from outside has the beginning of this call, as [`first`] gives it.
pub(crate) fn has_snippet(outside: &str, snippet: &str) -> bool {
    !snippet.is_empty() && bare(outside).contains(snippet)
}

/// The beginning of a call, in the form that is compared.
fn snippet(call: &str) -> String {
    bare(beginning(call, SNIPPET_BYTES))
}

/// A text without white space and without the escapes of JSON.
fn bare(text: &str) -> String {
    text.replace("\\n", "")
        .replace("\\t", "")
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '\\')
        .collect()
}

/// The offsets of markups outside of code that begin a call.
fn in_markup(text: &str, prose: &str, tools: &[ToolSpec]) -> Vec<usize> {
    if !markup::may_begin(text) {
        return Vec::new();
    }
    let lower = prose.to_ascii_lowercase();
    let found = markup::OPENERS.iter().flat_map(|opener| {
        lower
            .match_indices(opener.word)
            .map(move |(at, _)| (at, opener))
    });
    found
        .filter(|(at, opener): &(usize, &Opener)| {
            let behind = text.get(at + opener.word.len()..).unwrap_or_default();
            let behind = beginning(behind, REACH_BYTES);
            opener.begins_call(behind) || names_tool(behind, tools)
        })
        .map(|(at, _)| at)
        .collect()
}

/// The text after the name of an offered tool with which it begins, in the spelling of the plan or of a function.
fn offered<'t>(text: &'t str, tools: &[ToolSpec]) -> Option<&'t str> {
    let mut names = tools.iter().flat_map(spellings);
    names.find_map(|name| {
        text.strip_prefix(name.as_str()).filter(|behind: &&str| {
            !behind
                .starts_with(|letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-'))
        })
    })
}

/// The name of a tool, as in the plan and as that of a function.
fn spellings(tool: &ToolSpec) -> [String; 2] {
    [tool.name.clone(), function(&tool.name)]
}

/// Whether code is a call, in a markup or as in a program.
fn begins_call(code: &str, tools: &[ToolSpec]) -> bool {
    let code = code.trim();
    written::begins(code, tools)
        || tags::found(code, tools).iter().any(|(at, _)| *at == 0)
        || in_markup(code, code, tools).contains(&0)
}

/// The fence with which a text ends: its offset and its code.
fn last_fence(text: &str) -> Option<(usize, &str)> {
    let last = fences(text).pop()?;
    (last.behind?.trim().is_empty()).then_some((last.begin, last.code))
}

/// A fence in a text.
struct Fence<'t> {
    begin: usize,
    /// The words of its first line, in small letters.
    info: String,
    code: &'t str,
    /// The text after it; `None` for a fence without an end.
    behind: Option<&'t str>,
}

fn fences(text: &str) -> Vec<Fence<'_>> {
    let mut found: Vec<Fence<'_>> = Vec::new();
    let mut open = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        match open {
            None => {
                if let Some(mark) = fence(line) {
                    let info = line.trim().trim_start_matches(mark.sign).trim();
                    found.push(Fence {
                        begin: at,
                        info: info.to_ascii_lowercase(),
                        code: text.get(end..).unwrap_or_default(),
                        behind: None,
                    });
                    open = Some((mark, end));
                }
            }
            Some((mark, content)) if ends(line.trim_end_matches(['\n', '\r']), mark) => {
                if let Some(last) = found.last_mut() {
                    last.code = text.get(content..at).unwrap_or_default();
                    last.behind = text.get(end..);
                }
                open = None;
            }
            Some(_) => {}
        }
        at = end;
    }
    found
}

/// Whether the text has the name of an offered tool, in the spelling of the plan or of a function.
fn names_tool(text: &str, tools: &[ToolSpec]) -> bool {
    let mut names = tools.iter().flat_map(spellings);
    names.any(|name| text.contains(&name))
}

/// The offset of a fence that Gemini writes around a call, and of one around a JSON call at the end of the answer.
fn in_a_fence(text: &str, tools: &[ToolSpec]) -> impl Iterator<Item = usize> {
    let calls = fences(text).into_iter().filter(|fence: &Fence<'_>| {
        let is_last = fence.behind.is_none_or(|behind| behind.trim().is_empty());
        markup::FENCES.contains(&fence.info.as_str())
            || is_last && json::is_only_calls(fence.code, tools)
    });
    calls.map(|fence| fence.begin)
}

#[cfg(test)]
mod tests;
