//! Classifies a provider's error: by its error code, then by its message, then by its HTTP status.
//!
//! [`rules`] is the table, in order of precedence: an overflow or a refused text is one with every status, and a
//! failure that passes beats one that does not where a provider says both. `corpus.txt` has the texts of providers that
//! each row is for. Both backends ask here.

mod delay;
mod phrases;
mod places;
mod rules;
#[cfg(test)]
mod tests;
mod words;

use std::time::Duration;

use serde_json::Value;

use self::rules::{RULES, Rule};
pub(crate) use self::words::Words;
use super::error::ErrorCode;

/// The classification of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub code: ErrorCode,
    /// Whether the same request may succeed later.
    pub(crate) is_transient: bool,
}

impl Verdict {
    const fn lasting(code: ErrorCode) -> Self {
        Self {
            code,
            is_transient: false,
        }
    }

    const fn transient(code: ErrorCode) -> Self {
        Self {
            code,
            is_transient: true,
        }
    }
}

/// Classifies a failure. `status` is that of the response; `None` in a stream that began with 200.
pub(crate) fn verdict(status: Option<u16>, words: &Words) -> Verdict {
    let said = Said::of(status, words);
    if let Some(rule) = RULES.iter().find(|rule| said.matches(rule)) {
        return rule.verdict;
    }
    let verdicts: Vec<Verdict> = said
        .statuses
        .iter()
        .map(|status| of_status(*status))
        .collect();
    let passing = verdicts.iter().find(|verdict| verdict.is_transient);
    // A word of an event that no row has is overload, or something new.
    passing
        .or_else(|| verdicts.first())
        .copied()
        .unwrap_or(Verdict::transient(ErrorCode::Unavailable))
}

/// The delay that a text asks for, such as `try again in 8m2.3s`.
pub(crate) fn delay_in_text(text: &str) -> Option<Duration> {
    delay::in_text(text)
}

/// The delay in a field of an error, such as `retryDelay`.
pub(crate) fn delay_in_value(value: &Value) -> Option<Duration> {
    delay::in_value(value)
}

/// The places in the request that the fields of an error name.
pub(crate) fn places_in_value(value: &Value) -> Vec<String> {
    places::in_value(value)
}

/// The parts of an error that rules are compared with.
#[derive(Debug)]
struct Said {
    /// That of the response, and those that stand in its body.
    statuses: Vec<u16>,
    words: Vec<String>,
    text: String,
}

impl Said {
    fn of(status: Option<u16>, words: &Words) -> Self {
        let in_body = words.words.iter().filter_map(|word| word.parse().ok());
        let statuses = status
            .into_iter()
            .chain(in_body.filter(|status| (400..600).contains(status)));
        Self {
            statuses: statuses.collect(),
            words: words.words.iter().map(|word| letters(word)).collect(),
            text: plain(&format!("{} {}", words.message, words.hidden)),
        }
    }

    fn matches(&self, rule: &Rule) -> bool {
        let is_in_range = self
            .statuses
            .first()
            .is_none_or(|status| rule.statuses.contains(status));
        is_in_range
            && (self
                .words
                .iter()
                .any(|word| rule.words.contains(&word.as_str()))
                || rule
                    .phrases
                    .iter()
                    .any(|phrase| has_phrase(&self.text, phrase)))
    }
}

/// Whether the parts of a phrase, which `*` separates, stand in a text in this order.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let mut rest = text;
    phrase.split('*').all(|part| {
        let found = rest.split_once(part).map(|(_, after)| after);
        rest = found.unwrap_or_default();
        found.is_some()
    })
}

/// `Rate_Limit-Error` as `ratelimiterror`: providers spell one word in many ways.
fn letters(word: &str) -> String {
    word.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}

/// A text in lower case, without quotation marks, and with one space between its words.
fn plain(text: &str) -> String {
    let is_kept =
        |letter: &char| !matches!(letter, '`' | '\'' | '"' | '\\' | '’' | '‘' | '“' | '”');
    let text: String = text.to_lowercase().chars().filter(is_kept).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn of_status(status: u16) -> Verdict {
    match status {
        401..=403 => Verdict::lasting(ErrorCode::Credentials),
        404 => Verdict::lasting(ErrorCode::ModelNotFound),
        408 | 409 | 425 => Verdict::transient(ErrorCode::Unavailable),
        413 => Verdict::lasting(ErrorCode::ContextWindowExceeded),
        429 => Verdict::transient(ErrorCode::RateLimited),
        451 => Verdict::lasting(ErrorCode::Blocked),
        499 => Verdict::lasting(ErrorCode::Cancelled),
        400..=498 => Verdict::lasting(ErrorCode::InvalidRequest),
        500.. => Verdict::transient(ErrorCode::Unavailable),
        _ => Verdict::lasting(ErrorCode::Provider),
    }
}
