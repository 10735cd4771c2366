//! Headers in the middle of a line, and the names of tools after them.

use super::header::{closed, is_emphasis};
use crate::code::{CodeSpans, is_blank};

pub(super) const ACTION: &str = "Action";
pub(super) const ACTION_INPUT: &str = "Action Input";
pub(super) const FINAL_ANSWER: &str = "Final Answer";

/// Characters that models put around a name.
const DECORATION: [char; 10] = ['`', '*', '"', '\'', '[', ']', '<', '>', ',', ';'];

/// A line that is split at a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SplitLine<'a> {
    pub(super) before: &'a str,
    pub(super) after: &'a str,
    /// The emphasis that begins before the header and does not end behind it.
    pub(super) unclosed: &'a str,
}

/// Splits a line at a header after the end of a sentence: `I know enough.Final Answer: …`. Spaces, asterisks and
/// backticks before the header belong to neither side. Source: tiers 2 and 3 of the reference implementations.
pub(super) fn split_after_sentence<'a>(line: &'a str, word: &str) -> Option<SplitLine<'a>> {
    all(line, word).find_map(|divided| {
        let before = divided
            .before
            .trim_end_matches(|c: char| c == '`' || c == '*' || c.is_whitespace());
        before
            .ends_with(['.', '!', '?'])
            .then_some(SplitLine { before, ..divided })
    })
}

/// Splits a line at the first occurrence of a header.
pub(super) fn split_at_first<'a>(line: &'a str, word: &str) -> Option<SplitLine<'a>> {
    all(line, word).next()
}

/// All headers of a line outside of code spans. Searches from colon to colon: most lines have none.
fn all<'a>(line: &'a str, word: &str) -> impl Iterator<Item = SplitLine<'a>> {
    let mut code = None;
    line.match_indices(':').filter_map(move |(at, _)| {
        let (before, after) = line.split_at_checked(at)?;
        let before = before.strip_suffix(word)?;
        if code
            .get_or_insert_with(|| CodeSpans::new(line))
            .contain(before.len(), at + 1)
        {
            return None;
        }
        let plain = before.trim_end_matches(is_emphasis);
        let (after, unclosed) = closed(before.get(plain.len()..)?, after.strip_prefix(':')?);
        Some(SplitLine {
            before: plain,
            after,
            unclosed,
        })
    })
}

/// The first line of a text without the characters that models put around a name.
pub(super) fn bare_name(text: &str) -> &str {
    let line = text
        .trim_matches(is_blank)
        .lines()
        .next()
        .unwrap_or_default();
    let name = line.trim_matches(|c: char| is_blank(c) || DECORATION.contains(&c));
    name.strip_suffix("()").unwrap_or(name)
}

/// The name of a tool, `server.tool`, in the first line of a text.
pub(super) fn tool_name(text: &str) -> Option<&str> {
    let name = bare_name(text);
    (name.contains('.')
        && name.split('.').all(|word: &str| {
            !word.is_empty()
                && word
                    .chars()
                    .all(|c| c.is_alphanumeric() || c == '_' || c == '-')
        }))
    .then_some(name)
}

/// Whether an action means that there is no action.
pub(super) fn is_none(action: &str) -> bool {
    ["none", "n/a", "null", "no action", "no action needed"]
        .iter()
        .any(|none| action.eq_ignore_ascii_case(none))
}

/// The tool of an answer that has an action input but no line `Action:`, looked for in what stands before it: after
/// the last `action:` in any case, else after the last word `action`. Source: the recovery of the models.
pub(super) fn recovered_action(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let end = lower.find("action input:")?;
    let before = lower.get(..end)?;
    let begins = |at: usize| {
        before
            .get(..at)
            .is_some_and(|head| !head.ends_with(is_word_char))
    };
    let marked = before
        .rmatch_indices("action:")
        .find(|(at, _)| begins(*at))
        .map(|(at, word)| at + word.len());
    let candidate = text.get(
        marked.or_else(|| {
            let mut words = before
                .rmatch_indices("action")
                .map(|(at, word)| (at, at + word.len()));
            let (_, after) = words.find(|(at, after)| {
                let is_end = before
                    .get(*after..)
                    .is_some_and(|tail| tail.is_empty() || tail.starts_with(char::is_whitespace));
                begins(*at) && is_end
            })?;
            Some(after)
        })?..end,
    )?;
    tool_name(candidate)
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
