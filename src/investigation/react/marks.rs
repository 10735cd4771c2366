//! What divides an answer in the middle of a line, and the names of tools.

use super::heading::{is_blank, is_emphasis, without_closing};

/// Before the name of a tool.
pub(super) const ACTION: &str = "Action:";
/// Before its arguments.
pub(super) const ACTION_INPUT: &str = "Action Input:";
/// Before the last answer.
pub(super) const FINAL_ANSWER: &str = "Final Answer:";

/// What models put around a name.
const DRESSING: [char; 10] = ['`', '*', '"', '\'', '[', ']', '<', '>', ',', ';'];

/// Splits a line at a mark that follows the end of a sentence: `I know enough.Final Answer: …`. Before it may stand
/// spaces, asterisks and backticks, which belong to neither side. Source: the tiers 2 and 3 of the models.
pub(super) fn mid_line<'a>(line: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    line.match_indices(mark).find_map(|(at, _)| {
        let (before, after) = line.split_at_checked(at)?;
        let sentence = before.trim_end_matches(|c: char| c == '`' || c == '*' || c.is_whitespace());
        if !sentence.ends_with(['.', '!', '?']) {
            return None;
        }
        Some((sentence, undressed(before, after.strip_prefix(mark)?)))
    })
}

/// Splits a line at a mark, wherever it stands.
pub(super) fn anywhere<'a>(line: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let (before, after) = line.split_once(mark)?;
    Some((before.trim_end_matches(is_emphasis), undressed(before, after)))
}

/// What is behind a mark, without the end of the emphasis that begins before it.
fn undressed<'a>(before: &str, after: &'a str) -> &'a str {
    let plain = before.trim_end_matches(is_emphasis);
    without_closing(before.get(plain.len()..).unwrap_or_default(), after)
}

/// The first line of a text without what models put around a name.
pub(super) fn bare_name(text: &str) -> &str {
    let line = text.trim_matches(is_blank).lines().next().unwrap_or_default();
    let name = line.trim_matches(|c: char| is_blank(c) || DRESSING.contains(&c));
    name.strip_suffix("()").unwrap_or(name)
}

/// The name of a tool, `server.tool`, in the first line of a text.
pub(super) fn tool_name(text: &str) -> Option<&str> {
    let name = bare_name(text);
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    (name.contains('.') && name.split('.').all(is_word)).then_some(name)
}

/// The tool of an answer that has an action input but no line `Action:`, looked for in what stands before it: behind
/// the last `action:` in any case, else behind the last word `action`. Source: the recovery of the models.
pub(super) fn recovered_action(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let end = lower.find("action input:")?;
    let before = lower.get(..end)?;
    let begins = |at: usize| before.get(..at).is_some_and(|head| !head.ends_with(is_word_char));
    let marked = before.rmatch_indices("action:").find(|(at, _)| begins(*at)).map(|(at, word)| at + word.len());
    let bare = || {
        let ends =
            |at: usize| before.get(at..).is_some_and(|tail| tail.is_empty() || tail.starts_with(char::is_whitespace));
        let mut words = before.rmatch_indices("action").map(|(at, word)| (at, at + word.len()));
        words.find(|(at, after)| begins(*at) && ends(*after)).map(|(_, after)| after)
    };
    let candidate = text.get(marked.or_else(bare)?..end)?;
    tool_name(candidate)
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
