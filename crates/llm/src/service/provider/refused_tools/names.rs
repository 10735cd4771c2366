//! The names of tools in the text of a refusal: after words as `function` and `tool`, in a text about definitions.
//!
//! A name elsewhere in the text does not lead to the removal of its tool: a property of a schema may have the same
//! name, and errors about messages name tools, too.

use std::collections::BTreeSet;

use crate::service::provider::names::from_wire;

/// The words of a text about the definition of a tool.
const ABOUT_DEFINITIONS: [&str; 9] = [
    "schema",
    "parameters",
    "function_declaration",
    "functiondeclaration",
    "function declaration",
    "tool name",
    "function name",
    "duplicate tool",
    "duplicate function",
];
/// The words of a text about something else that names a tool.
const ABOUT_OTHERS: [&str; 16] = [
    "messages.",
    "messages[",
    "contents[",
    "contents.",
    "input[",
    "tool_choice",
    "toolchoice",
    "tool_call",
    "tool_use",
    "tool_result",
    "toolresult",
    "function_call",
    "function_response",
    "function.arguments",
    "response_format",
    "response_schema",
];
/// A name follows one of these words.
const INTRODUCERS: [&str; 7] = [
    "function",
    "functions",
    "tool",
    "tools",
    "declaration",
    "functiondeclaration",
    "function_declaration",
];
/// Words between an introducer and a name.
const FILLERS: [&str; 9] = [
    "name",
    "names",
    "named",
    "called",
    "found",
    "definition",
    "declaration",
    "schema",
    "with",
];
/// A name may also precede one of these words.
const FOLLOWERS: [&str; 2] = ["functiondeclaration", "function_declaration"];
const MAX_FILLERS: usize = 2;

/// A word of the text.
#[derive(Clone, Copy)]
struct Word<'t> {
    text: &'t str,
    is_quoted: bool,
    /// No character follows it: it may be cut.
    is_last: bool,
}

/// The tools that a text names by their names.
pub(super) fn named(text: &str, tools: &[&str]) -> BTreeSet<usize> {
    let lower = text.to_ascii_lowercase();
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
    if !has(&ABOUT_DEFINITIONS) || has(&ABOUT_OTHERS) {
        return BTreeSet::new();
    }
    let words = words(text);
    let place = |word: &Word<'_>| tools.iter().position(|tool| is_name(*word, tool));
    let mut found = BTreeSet::new();
    for (at, word) in words.iter().enumerate() {
        let before = words.get(..at).unwrap_or_default();
        if let Some(place_of_word) = place(word)
            && (is_introduced(before, |word| place(word).is_some())
                || is_followed(words.get(at + 1)))
        {
            found.insert(place_of_word);
        }
    }
    found
}

/// Whether a word is the name of a tool, here or at the provider. A plain English word counts only in quotation marks.
fn is_name(word: Word<'_>, tool: &str) -> bool {
    let is_same = word.text == tool || word.text == from_wire(tool);
    let is_plain = tool.bytes().all(|byte| byte.is_ascii_lowercase());
    is_same && (word.is_quoted || (!is_plain && !word.is_last))
}

/// Whether the words before a name end with an introducer. Names of other tools may separate them, as in a list.
fn is_introduced(before: &[Word<'_>], is_tool: impl Fn(&Word<'_>) -> bool) -> bool {
    let mut fillers = 0;
    for word in before.iter().rev() {
        let lower = word.text.to_ascii_lowercase();
        if INTRODUCERS.contains(&lower.as_str()) {
            return true;
        }
        if fillers == 0 && (is_tool(word) || lower == "and") {
            continue;
        }
        fillers += 1;
        if fillers > MAX_FILLERS || !FILLERS.contains(&lower.as_str()) {
            return false;
        }
    }
    false
}

fn is_followed(next: Option<&Word<'_>>) -> bool {
    next.is_some_and(|next| FOLLOWERS.contains(&next.text.to_ascii_lowercase().as_str()))
}

fn words(text: &str) -> Vec<Word<'_>> {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '-');
    let is_quote = |letter: char| matches!(letter, '\'' | '"' | '`' | '\\' | '“' | '”' | '‘' | '’');
    let mut words = Vec::new();
    let mut rest = text;
    let mut before = None;
    while let Some(begin) = rest.find(is_part) {
        let gap = rest.get(..begin).unwrap_or_default();
        if begin > 0 {
            before = gap.chars().next_back();
        }
        let from = rest.get(begin..).unwrap_or_default();
        let (word, after) = from
            .split_at_checked(from.find(|letter| !is_part(letter)).unwrap_or(from.len()))
            .unwrap_or_default();
        let next = after.chars().next();
        let is_quoted = before.is_some_and(is_quote) && next.is_some_and(is_quote);
        // A full stop ends a sentence.
        words.push(Word {
            text: word.trim_matches(['.', '-']),
            is_quoted,
            is_last: next.is_none_or(|letter| letter == '…'),
        });
        rest = after;
        before = None;
    }
    words
}
