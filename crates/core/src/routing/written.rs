//! Reads a matcher as Alertmanager writes it: a name, an operator and a value, each with optional quotes.
//!
//! The value follows the classic parser of Alertmanager (`matcher/compat`, `pkg/labels/parse.go`), which decides there
//! as well when both of its parsers accept a text. Names follow the newer one, so any UTF-8 name can be quoted.

use super::matcher::{MatcherFault, Operator};

/// Characters that a name without quotes cannot have.
const RESERVED: [char; 9] = ['{', '}', '!', '=', '~', ',', '"', '\'', '`'];

/// The parts of a matcher, without quotes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) name: String,
    /// `"@type"` is a label of this name, `@type` the type of the alert.
    pub(super) is_quoted: bool,
    pub(super) operator: Operator,
    pub(super) value: String,
}

pub(super) fn parse(text: &str) -> Result<Written, MatcherFault> {
    let text = text.trim();
    let (name, rest, is_quoted) = match text.strip_prefix('"') {
        Some(quoted) => {
            let (name, rest) = quoted_name(quoted)?;
            (name, rest, true)
        }
        None => {
            let end = text
                .find(|c: char| c.is_whitespace() || RESERVED.contains(&c))
                .unwrap_or(text.len());
            let (name, rest) = text.split_at_checked(end).unwrap_or((text, ""));
            (name.to_owned(), rest, false)
        }
    };
    if name.is_empty() {
        return Err(MatcherFault::Syntax);
    }
    let rest = rest.trim_start();
    // The longer operators come first, because `=` begins `=~`.
    let operator = Operator::ALL
        .into_iter()
        .find(|operator| rest.starts_with(operator.as_str()));
    let operator = operator.ok_or(MatcherFault::Syntax)?;
    let value = rest
        .strip_prefix(operator.as_str())
        .unwrap_or_default()
        .trim();
    Ok(Written {
        name,
        is_quoted,
        operator,
        value: unquoted_value(value)?,
    })
}

/// A name up to its closing quote, and what follows.
fn quoted_name(text: &str) -> Result<(String, &str), MatcherFault> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Ok((name, text.get(at + 1..).unwrap_or_default())),
            '\\' => match characters.next() {
                Some((_, 'n')) => name.push('\n'),
                Some((_, escaped @ ('"' | '\\'))) => name.push(escaped),
                Some(_) | None => return Err(MatcherFault::Quote),
            },
            other => name.push(other),
        }
    }
    Err(MatcherFault::Quote)
}

/// The value without its quotes. `\n`, `\"` and `\\` are escapes; a `\` before any other character stays, so that a
/// regular expression needs no second one.
fn unquoted_value(text: &str) -> Result<String, MatcherFault> {
    let (text, mut expects_quote) = match text.strip_prefix('"') {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let mut value = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('\\', Some(&escaped)) => {
                characters.next();
                match escaped {
                    'n' => value.push('\n'),
                    '"' | '\\' => value.push(escaped),
                    other => value.extend(['\\', other]),
                }
            }
            ('"', None) if expects_quote => expects_quote = false,
            ('"', _) => return Err(MatcherFault::Quote),
            (other, _) => value.push(other),
        }
    }
    if expects_quote {
        Err(MatcherFault::Quote)
    } else {
        Ok(value)
    }
}
