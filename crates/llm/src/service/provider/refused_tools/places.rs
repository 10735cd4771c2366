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
    let alone = DECLARATIONS
        .iter()
        .flat_map(|word| text.match_indices(word));
    let of_declarations = alone.filter_map(|(at, word)| {
        let is_alone = begins_path(&text, at) && !head(&text, at).contains(LIST);
        if is_alone {
            number(text.get(at + word.len()..)?).map(|(place, _)| place)
        } else {
            None
        }
    });
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
        // Where each function is an item of its own, only the first item says the same in both ways of counting.
        let is_certain = layout == Layout::Declarations || place == 0;
        return if is_certain {
            number(rest).map(|(place, _)| place)
        } else {
            None
        };
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
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_.[]/#$".contains(letter);
    before
        .get(before.trim_end_matches(is_part).len()..)
        .unwrap_or_default()
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
    if is_whole {
        digits.parse().ok().map(|number| (number, rest))
    } else {
        None
    }
}

/// The text after `.`, `/`, `[`, ` -> `, or after a quotation mark and a comma.
fn after_separator(text: &str) -> Option<&str> {
    let plain = ['.', '/', '[']
        .iter()
        .find_map(|separator| text.strip_prefix(*separator));
    if plain.is_some() {
        return plain;
    }
    let arrow = text.trim_start().strip_prefix("->").map(str::trim_start);
    let comma = || {
        let unquoted = text.trim_start_matches(['\\', '\'', '"']);
        let is_quoted = unquoted.len() < text.len();
        unquoted
            .strip_prefix(',')
            .filter(|_| is_quoted)
            .map(str::trim_start)
    };
    arrow.or_else(comma)
}
