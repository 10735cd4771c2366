//! The word of a state in front of a title.

use crate::readable::text::beginning;
use crate::sources::{pieces, status_of};

/// A longer word is no mark of a title.
const MAX_MARK_BYTES: usize = 80;

/// The word of a state before a title, and the title without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StateMark<'t> {
    pub(super) word: &'t str,
    pub(super) rest: &'t str,
}

/// A word in brackets, or one of capital letters before a colon or a dash, that is the word of a state.
pub(super) fn mark(title: &str) -> Option<StateMark<'_>> {
    let title = without_signs(title);
    let bracketed = title
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'));
    let (word, rest) = match bracketed {
        Some((word, rest)) => (word.split(':').next().unwrap_or(word).trim(), rest),
        None => {
            let end = beginning(title, MAX_MARK_BYTES).find([':', '-', '|', '–'])?;
            let (word, rest) = title.split_at_checked(end)?;
            let word = word.trim();
            // `Recovery: …` may be the name of a procedure.
            let is_over = matches!(word, "Resolved" | "Recovered" | "Closed" | "Cleared");
            let is_capital = word.chars().all(|c| !c.is_lowercase()) || is_over;
            (
                Some(word).filter(|word| is_capital && !word.contains(' '))?,
                rest,
            )
        }
    };
    let is_state =
        word.len() <= MAX_MARK_BYTES && pieces(word).len() == 1 && status_of(word).is_some();
    let rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '[');
    is_state.then_some(StateMark { word, rest })
}

/// The title without what a chat shows before it: emoji, `:fire:`, and stars for bold letters.
pub(super) fn without_signs(title: &str) -> &str {
    let title = title.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '[' && c != ':');
    let short_code = title
        .strip_prefix(':')
        .and_then(|rest| rest.split_once(':'));
    match short_code {
        Some((code, rest)) if !code.is_empty() && !code.contains(char::is_whitespace) => {
            without_signs(rest)
        }
        Some(_) | None => title.trim_start_matches(':'),
    }
}
