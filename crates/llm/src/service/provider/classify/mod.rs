//! Classifies a provider's error: by its error code, then by its message, then by its HTTP status.
//!
//! [`rules`] is the table, in order of precedence: an overflow or a refused text is one with every status, and a
//! failure that passes beats one that does not where a provider reports both. `corpus.txt` has the texts of providers
//! that each row is for. Both backends ask here.

mod delay;
mod places;
mod rules;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use self::delay::{in_text as delay_in_text, in_value as delay_in_value};
pub(crate) use self::places::in_value as places_in_value;
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
    let features = Features::new(status, words);
    if let Some(rule) = RULES.iter().find(|rule| features.matches(rule)) {
        return rule.verdict;
    }
    let verdicts: Vec<Verdict> = features
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

/// The parts of an error that rules are compared with.
#[derive(Debug)]
struct Features {
    /// The status of the response, and those that its body names.
    statuses: Vec<u16>,
    words: Vec<String>,
    text: String,
}

impl Features {
    fn new(status: Option<u16>, words: &Words) -> Self {
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
        let mut words = rule.words.split_whitespace();
        let mut phrases = rule.phrases.lines();
        let status = self.statuses.first();
        status.is_none_or(|status| rule.statuses.contains(status))
            && (words.any(|word| self.words.iter().any(|known| known == word))
                || phrases.any(|phrase| has_phrase(&self.text, phrase)))
    }
}

/// Whether a text has the parts of a phrase, which `*` separates, in this order.
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
    let text: String = text
        .to_lowercase()
        .chars()
        .filter(|letter| !matches!(letter, '`' | '\'' | '"' | '\\' | '’' | '‘' | '“' | '”'))
        .collect();
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
