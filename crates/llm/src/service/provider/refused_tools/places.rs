//! The places of tools in the text of a refusal: `tools[3].function`, `tools.3.custom`, `#/toolConfig/tools/1`,
//! `tools[0].function_declarations[5]`, `body -> tools -> 0`, `('body', 'tools', 0)`.

use std::collections::BTreeSet;

use super::{Layout, Sent};

const LIST: &str = "tools";
const DECLARATIONS: [&str; 2] = ["function_declarations", "functiondeclarations"];
/// Parts of a path that make its `tools` a part of the conversation.
const CONVERSATION: [&str; 5] = ["messages", "contents", "choices", "history", "input["];
/// The longest number: no request has more tools.
const MAX_DIGITS: usize = 4;

/// The tools that a text names by their places, without places that the request does not have.
pub(super) fn named(text: &str, sent: Sent<'_>) -> BTreeSet<usize> {
    let text = text.to_ascii_lowercase();
    let of_list = text
        .match_indices(LIST)
        .filter_map(|(at, _)| of_list(&text, at, sent.layout));
    let of_declarations = DECLARATIONS
        .iter()
        .flat_map(|word| text.match_indices(word))
        .filter(|(at, _)| begins_path(&text, *at) && !head(&text, *at).contains(LIST))
        .filter_map(|(at, word)| Some(number(text.get(at + word.len()..)?)?.0));
    of_list
        .chain(of_declarations)
        .filter(|place| *place < sent.names.len())
        .collect()
}

/// The place in the list of `tools` whose name begins at `at`.
fn of_list(text: &str, at: usize, layout: Layout) -> Option<usize> {
    let is_conversation = CONVERSATION
        .iter()
        .any(|word| head(text, at).contains(word));
    if is_conversation || !begins_path(text, at) {
        return None;
    }
    let (place, rest) = number(text.get(at + LIST.len()..)?)?;
    let inner = rest.trim_start_matches([']', '.', '/']);
    if let Some(rest) = DECLARATIONS
        .iter()
        .find_map(|word| inner.strip_prefix(word))
    {
        // Where each function is a separate item, only the first item has the same number in both ways of counting.
        let is_certain = layout == Layout::Declarations || place == 0;
        let (place, _) = number(rest)?;
        return is_certain.then_some(place);
    }
    match layout {
        Layout::Declarations => None,
        // Lists of AWS are counted from 1 in this notation.
        Layout::List if rest.starts_with(".member") => place.checked_sub(1),
        Layout::List => Some(place),
    }
}

/// Whether a word is not the end of a longer one.
fn begins_path(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    before.is_none_or(|letter| !letter.is_alphanumeric() && letter != '_')
}

/// The part of a path before `at`.
fn head(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    let other = before.trim_end_matches(|letter: char| {
        letter.is_ascii_alphanumeric() || "_.[]/#$".contains(letter)
    });
    before.strip_prefix(other).unwrap_or_default()
}

/// The number after the name of a list, and the text after it. A number at the end of the text may be cut.
fn number(text: &str) -> Option<(usize, &str)> {
    let digits = after_separator(text)?;
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 || length > MAX_DIGITS {
        return None;
    }
    let (digits, rest) = digits.split_at_checked(length)?;
    let is_whole = rest
        .chars()
        .next()
        .is_some_and(|letter| !letter.is_alphanumeric() && letter != '_' && letter != '…');
    let number = digits.parse().ok()?;
    is_whole.then_some((number, rest))
}

/// The text after `.`, `/`, `[`, ` -> `, or after a quotation mark and a comma.
fn after_separator(text: &str) -> Option<&str> {
    let trimmed = text.trim_start();
    let unquoted = text.trim_start_matches(['\\', '\'', '"']);
    if let Some(rest) = text.strip_prefix(['.', '/', '[']) {
        Some(rest)
    } else if let Some(rest) = trimmed.strip_prefix("->") {
        Some(rest.trim_start())
    } else if unquoted.len() < text.len() {
        unquoted.strip_prefix(',').map(str::trim_start)
    } else {
        None
    }
}
