//! Calls that a model writes without any markup: as in a program, or as lines with labels.

use super::{offered, spellings};
use crate::plan::ToolSpec;

/// Words that may precede the name of a tool.
const PREFIXES: [&str; 11] = [
    "print(",
    "await ",
    "return ",
    "call:",
    "functions.",
    "default_api.",
    "default_api:",
    "tool_code.",
    "[",
    "(",
    "- ",
];
/// The labels of the name of a tool, and of its arguments.
const NAMES: [&str; 6] = [
    "tool:",
    "tool name:",
    "tool_name:",
    "function:",
    "name:",
    "✿function✿:",
];
const ARGUMENTS: [&str; 6] = [
    "arguments",
    "args",
    "parameters",
    "input",
    "tool_input",
    "✿args✿",
];
const ACTION: &str = "action:";
const ACTION_INPUT: &str = "action input";

/// The offset of a call with which a prose text ends: `server__tool(a=1)`, `server__tool{"a": 1}`.
pub(super) fn at_the_end(prose: &str, tools: &[ToolSpec]) -> Option<usize> {
    let ends = prose.trim_end().ends_with([')', ']', '}', '>']);
    let mut lines = offsets(prose).filter(|(_, line)| begins(line, tools));
    lines.next().map(|(at, _)| at).filter(|_at| ends)
}

/// Whether a text is the beginning of a call, as in a program.
pub(super) fn begins(text: &str, tools: &[ToolSpec]) -> bool {
    let mut name = text.trim_start();
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)) {
        name = rest.trim_start();
    }
    let Some(behind) = offered(name, tools) else {
        return false;
    };
    let behind = behind.strip_prefix(".call").unwrap_or(behind);
    let number = behind.strip_prefix(':').unwrap_or(behind);
    let behind = number.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let line = behind.lines().next().unwrap_or_default().trim_end();
    let opens = line.starts_with(['(', '{']) || line.starts_with("[ARGS]");
    // The end of the line has no words, or the call continues in the next one.
    let is_whole = line.ends_with([')', ']', '}', '>', '(', '{', ',']);
    let is_below = line.is_empty() && behind.trim_start().starts_with(['{', '<']);
    (opens && is_whole) || is_below
}

/// The offset of a line that names a tool under a label, above one with its arguments.
pub(super) fn labelled(prose: &str, tools: &[ToolSpec]) -> Option<usize> {
    pair(prose, tools, &NAMES, &ARGUMENTS)
}

/// The same with the labels of `ReAct`, which stand in no other text.
pub(super) fn action(prose: &str, tools: &[ToolSpec]) -> Option<usize> {
    pair(prose, tools, &[ACTION], &[ACTION_INPUT])
}

fn pair(prose: &str, tools: &[ToolSpec], names: &[&str], arguments: &[&str]) -> Option<usize> {
    offsets(prose).find_map(|(at, text)| {
        let mut lines = text.lines().map(bare).filter(|line| !line.is_empty());
        let first = lines.next()?;
        let name = names
            .iter()
            .find_map(|label| first.strip_prefix(label))?
            .trim_matches(is_mark);
        let mut spellings = tools.iter().flat_map(spellings);
        let is_tool = spellings.any(|one| one.eq_ignore_ascii_case(name));
        let second = lines.next()?;
        (is_tool && arguments.iter().any(|label| second.starts_with(label))).then_some(at)
    })
}

/// A line in small letters, without the marks of Markdown at its beginning.
fn bare(line: &str) -> String {
    line.trim()
        .trim_start_matches(is_mark)
        .replace("**", "")
        .to_lowercase()
}

fn is_mark(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '*' | '#' | '_' | '`')
}

/// The text from each line on that is not blank, with its offset.
fn offsets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let from = starts.filter_map(|at| Some((at, text.get(at..)?)));
    from.filter(|(_, text)| {
        text.lines()
            .next()
            .is_some_and(|line| !line.trim().is_empty())
    })
}
