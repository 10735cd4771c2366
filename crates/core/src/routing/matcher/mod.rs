//! A matcher: one condition of a route.

use std::fmt;

use regex::{Regex, RegexBuilder};

use super::facts::{Facts, OWN_NAMES};
use super::written::{self, Written};
use crate::alert::Severity;

/// The limit of a compiled regular expression, in bytes.
const MAX_REGEX_BYTES: usize = 256 * 1024;
const SEVERITY: &str = "@severity";

/// Compares one fact of an alert with a value. An absent label has the empty value.
#[derive(Clone, Debug)]
pub struct Matcher {
    /// The matcher as the configuration has it.
    text: String,
    name: String,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Is(String),
    IsNot(String),
    /// Anchored, and linear in the length of the value.
    Fits(Regex),
    FitsNot(Regex),
}

/// The operator of a matcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
pub(super) enum Operator {
    #[strum(serialize = "=~")]
    Fits,
    #[strum(serialize = "!~")]
    FitsNot,
    #[strum(serialize = "!=")]
    IsNot,
    #[strum(serialize = "=")]
    Is,
}

crate::words!(pub(super) Operator, pub(super) ALL);

/// The reason why a text is no matcher.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatcherFault {
    #[error("no matcher; accepted: name=\"value\" as in Alertmanager, with =, !=, =~ or !~")]
    Syntax,
    #[error("a quote that is not closed, or not escaped as \\\"")]
    Quote,
    #[error("no regular expression: {0}")]
    Regex(String),
    #[error("{name} is no fact of an alert; accepted: the name of a label, or {}", OWN_NAMES.join(", "))]
    Name { name: String },
    #[error("{0:?} is no severity, so it never matches; accepted: critical, high, normal, low")]
    Severity(String),
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Matcher {}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Matcher {
    /// Reads a matcher as Alertmanager does.
    ///
    /// # Errors
    /// When it has another form, a regular expression is invalid or needs more than 256 KiB, or a name with `@` or a
    /// severity is unknown.
    pub fn parse(text: &str) -> Result<Self, MatcherFault> {
        let Written {
            name,
            is_quoted,
            operator,
            value,
        } = written::parse(text)?;
        if !is_quoted && name.starts_with('@') && !OWN_NAMES.contains(&name.as_str()) {
            return Err(MatcherFault::Name { name });
        }
        let is_known = value.parse::<Severity>().is_ok();
        let test = match operator {
            Operator::Is | Operator::IsNot if name == SEVERITY && !is_known => {
                return Err(MatcherFault::Severity(value));
            }
            Operator::Is => Test::Is(value),
            Operator::IsNot => Test::IsNot(value),
            Operator::Fits => Test::Fits(anchored(&value)?),
            Operator::FitsNot => Test::FitsNot(anchored(&value)?),
        };
        Ok(Self {
            text: text.trim().to_owned(),
            name,
            test,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the alert with these facts meets the condition.
    pub fn matches(&self, facts: &Facts) -> bool {
        self.accepts(facts.get(&self.name))
    }

    fn accepts(&self, value: &str) -> bool {
        match &self.test {
            Test::Is(wanted) => value == wanted,
            Test::IsNot(wanted) => value != wanted,
            Test::Fits(regex) => regex.is_match(value),
            Test::FitsNot(regex) => !regex.is_match(value),
        }
    }

    /// Whether each alert that meets `other` surely meets this condition, too.
    pub fn follows_from(&self, other: &Self) -> bool {
        if self.name != other.name {
            return false;
        }
        match (&self.test, &other.test) {
            (_, Test::Is(value)) => self.accepts(value),
            (Test::IsNot(one), Test::IsNot(value)) => one == value,
            (Test::Fits(one), Test::Fits(regex)) | (Test::FitsNot(one), Test::FitsNot(regex)) => {
                one.as_str() == regex.as_str()
            }
            (Test::Is(_), Test::IsNot(_) | Test::Fits(_) | Test::FitsNot(_))
            | (Test::IsNot(_), Test::Fits(_) | Test::FitsNot(_))
            | (Test::Fits(_), Test::IsNot(_) | Test::FitsNot(_))
            | (Test::FitsNot(_), Test::IsNot(_) | Test::Fits(_)) => false,
        }
    }
}

/// The expression itself is compiled first: `a)|(b` would be one between the anchors.
fn anchored(expression: &str) -> Result<Regex, MatcherFault> {
    let compiled = |text: &str| RegexBuilder::new(text).size_limit(MAX_REGEX_BYTES).build();
    let anchored = compiled(expression).and_then(|_| compiled(&format!("^(?:{expression})$")));
    anchored.map_err(|error| {
        MatcherFault::Regex(
            error
                .to_string()
                .lines()
                .last()
                .unwrap_or_default()
                .trim()
                .to_owned(),
        )
    })
}

#[cfg(test)]
mod tests;
