//! The one regular expression of a source. The crate `regex` is linear in its input, and the input is bounded.

use regex::{Regex, RegexBuilder};

use super::expression::Expression;
use super::view::View;
use crate::readable::text::beginning;

/// The limit of the compiled expression, in bytes.
const MAX_REGEX_BYTES: usize = 256 * 1024;
/// The limit of the text that it searches, in bytes.
const MAX_INPUT_BYTES: usize = 4 * 1024;

/// A regular expression whose named groups are texts for expressions.
#[derive(Clone, Debug)]
pub struct Capture {
    from: Expression,
    regex: Regex,
}

/// The reason why a regular expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureFault {
    #[error("no regular expression: {0}")]
    Syntax(String),
    #[error("no group has a name; accepted: (?<name>…)")]
    Unnamed,
}

impl PartialEq for Capture {
    fn eq(&self, other: &Self) -> bool {
        self.from == other.from && self.regex.as_str() == other.regex.as_str()
    }
}

impl Capture {
    /// Compiles the expression.
    ///
    /// # Errors
    /// When it is invalid, needs more than 256 KiB, or has no named group.
    pub fn new(from: Expression, regex: &str) -> Result<Self, CaptureFault> {
        let compiled = RegexBuilder::new(regex).size_limit(MAX_REGEX_BYTES).build();
        let regex =
            compiled.map_err(|error| CaptureFault::Syntax(last_line(&error.to_string())))?;
        let capture = Self { from, regex };
        if capture.names().next().is_none() {
            Err(CaptureFault::Unnamed)
        } else {
            Ok(capture)
        }
    }

    pub fn from(&self) -> &Expression {
        &self.from
    }

    /// The names of its groups.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.regex.capture_names().flatten()
    }

    /// The named groups that took part in the match.
    pub(super) fn find(&self, view: &View<'_>) -> Vec<(String, String)> {
        let Some(found) = self.from.find(view) else {
            return Vec::new();
        };
        let text = beginning(&found.text, MAX_INPUT_BYTES);
        let Some(groups) = self.regex.captures(text) else {
            return Vec::new();
        };
        self.names()
            .filter_map(|name: &str| {
                Some((name.to_owned(), groups.name(name)?.as_str().to_owned()))
            })
            .collect()
    }
}

/// The crate draws the expression on several lines; its last line is the reason.
fn last_line(error: &str) -> String {
    let reason = error.lines().next_back().unwrap_or_default().trim();
    reason.strip_prefix("error: ").unwrap_or(reason).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn capture(regex: &str) -> Result<Capture, CaptureFault> {
        Capture::new(Expression::parse("/t").unwrap(), regex)
    }

    #[test]
    fn named_groups_are_captured_from_the_beginning_of_a_text() {
        let found = |regex: &str, text: &str| {
            capture(regex)
                .unwrap()
                .find(&View::new(&json!({"t": text}), None))
        };
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let regex = r"^\[(?<state>[^\]]+)\] (?<name>.*?)( on (?<host>.*))?$";
        assert_eq!(
            found(regex, "[Up] disk on db-1"),
            [
                pair("state", "Up"),
                pair("name", "disk"),
                pair("host", "db-1")
            ]
        );
        assert_eq!(
            found(regex, "[Up] disk"),
            [pair("state", "Up"), pair("name", "disk")]
        );
        assert_eq!(found(regex, "disk"), []);
        assert_eq!(
            found("(?<end>é+)$", &"é".repeat(4_000)),
            [pair("end", &"é".repeat(2_048))]
        );
    }

    #[test]
    fn an_expression_without_a_name_or_of_a_great_size_is_refused() {
        assert_eq!(capture("^x$").unwrap_err(), CaptureFault::Unnamed);
        assert_eq!(
            capture("(?<a>").unwrap_err(),
            CaptureFault::Syntax("unclosed group".to_owned())
        );
        assert!(matches!(
            capture(r"(?<a>\w{1000})"),
            Err(CaptureFault::Syntax(_))
        ));
    }
}
