//! The rules that operators add to the built-in ones: texts that match a custom pattern, and e-mail addresses.

use regex::{Match, Regex, RegexBuilder};

use super::bytes::{all, back, byte, is_word, part, skip_near};
use super::spans::SecretSpan;

/// The limit of a compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 256 * 1024;
/// The longest local part and the longest host of an e-mail address (RFC 5321, section 4.5.3.1).
const MAX_LOCAL: usize = 64;
const MAX_HOST: usize = 255;
/// The group whose text is masked instead of the whole match.
const SECRET: &str = "secret";

/// A regular expression of an operator.
#[derive(Clone, Debug)]
pub struct OwnPattern(Regex);

/// The reason why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    #[error("no regular expression: {0}")]
    Syntax(String),
    #[error(
        "it matches the empty text, and so every text; accepted: one that matches at least one character"
    )]
    Empty,
}

impl PartialEq for OwnPattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for OwnPattern {}

impl OwnPattern {
    /// Compiles a pattern. Its group `secret` is masked, if it has one, else all that it matches.
    ///
    /// # Errors
    /// When it is invalid, needs more than 256 KiB, or matches the empty text.
    pub fn new(pattern: &str) -> Result<Self, PatternFault> {
        let compiled = RegexBuilder::new(pattern)
            .size_limit(MAX_PATTERN_BYTES)
            .build();
        let regex = compiled.map_err(|error| {
            let text = error.to_string();
            PatternFault::Syntax(text.lines().last().unwrap_or_default().trim().to_owned())
        })?;
        if regex.is_match("") {
            Err(PatternFault::Empty)
        } else {
            Ok(Self(regex))
        }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    fn find(&self, text: &str, spans: &mut Vec<SecretSpan>) {
        let is_group = self.0.capture_names().flatten().any(|name| name == SECRET);
        let span = |found: Match<'_>| SecretSpan::new(found.start(), found.end());
        if is_group {
            let groups = self.0.captures_iter(text);
            spans.extend(groups.filter_map(|found| found.name(SECRET)).map(span));
        } else {
            spans.extend(self.0.find_iter(text).map(span));
        }
    }
}

/// Whether e-mail addresses are masked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emails {
    #[default]
    Shown,
    Masked,
}

/// The rules of an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnRules {
    pub patterns: Vec<OwnPattern>,
    pub emails: Emails,
}

impl OwnRules {
    pub(super) fn find(&self, text: &str, spans: &mut Vec<SecretSpan>) {
        for pattern in &self.patterns {
            pattern.find(text, spans);
        }
        if self.emails == Emails::Masked {
            addresses(text, spans);
        }
    }
}

/// `ada.l+x@mail.example.com`: a local part, and a host with a dot that ends with a letter.
fn addresses(text: &str, spans: &mut Vec<SecretSpan>) {
    let mut done = 0;
    for (at, _) in text.match_indices('@') {
        let start = back(text, done.max(at.saturating_sub(MAX_LOCAL)), at, |b: u8| {
            is_word(b) || matches!(b, b'+' | b'%' | b'\'' | b'!' | b'#' | b'=')
        });
        let end = skip_near(text, at + 1, MAX_HOST, |b| is_word(b) && b != b'_');
        let host = part(text, at + 1, end).trim_end_matches(['.', '-']);
        let is_host = host.rsplit_once('.').is_some_and(|(name, top)| {
            !name.is_empty() && top.len() >= 2 && all(top, |b| b.is_ascii_alphabetic() || b == b'-')
        });
        // An assignment before the address is no part of it.
        let assigned = part(text, start, at)
            .rfind('=')
            .map_or(start, |equals| start + equals + 1);
        let start = assigned + usize::from(byte(text, assigned) == b'\'');
        if start < at && is_host {
            done = at + 1 + host.len();
            spans.push(SecretSpan::new(start, done));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HIDDEN, Mask};

    fn mask(patterns: &[&str], emails: Emails) -> Mask {
        let patterns = patterns
            .iter()
            .map(|pattern| OwnPattern::new(pattern).unwrap())
            .collect();
        Mask::default().with_rules(OwnRules { patterns, emails })
    }

    #[test]
    fn what_matches_a_pattern_of_an_operator_is_masked() {
        let mask = mask(&["CUST-[0-9]{4}", "badge (?<secret>[a-z]+)"], Emails::Shown);
        for (text, masked) in [
            ("order of CUST-1234 failed", "order of [masked] failed"),
            (
                "badge xyz of a@example.com",
                "badge [masked] of a@example.com",
            ),
            (
                r#"{"CUST-1234":"CUST-12345","n":1}"#,
                r#"{"[masked]":"[masked]5","n":1}"#,
            ),
            (
                r#"{"log":"{\"id\":\"CUST-1234\"}"}"#,
                r#"{"log":"{\"id\":\"[masked]\"}"}"#,
            ),
            ("cust-1234", "cust-1234"),
        ] {
            assert_eq!(mask.apply(text), masked);
            assert_eq!(mask.apply(masked), masked, "twice");
        }
    }

    #[test]
    fn a_pattern_never_breaks_the_json_around_its_matches() {
        for pattern in [
            "\"", ":", "[a-z]+", ".+", "[0-9]", "\\S+", "masked", "\\[", "[^x]", ".",
        ] {
            let mask = mask(&[pattern], Emails::Shown);
            let value = serde_json::json!({"a": "b: \"c\"\n1", "n": 12, "list": ["x", null, true]});
            let masked = mask.apply(&value.to_string()).into_owned();
            assert_ne!(masked, HIDDEN, "{pattern}");
            assert!(
                serde_json::from_str::<serde_json::Value>(&masked).is_ok(),
                "{pattern}: {masked}"
            );
            assert_eq!(mask.apply(&masked), masked, "{pattern} twice");
        }
    }

    #[test]
    fn a_number_that_matches_becomes_a_text() {
        assert_eq!(
            mask(&["4[0-9]{15}"], Emails::Shown).apply(r#"{"card":4000000000000000}"#),
            r#"{"card":"[masked]"}"#
        );
    }

    #[test]
    fn addresses_are_masked_where_operators_ask_for_it() {
        let mask = mask(&[], Emails::Masked);
        for (text, masked) in [
            (
                "from ada.l+x@mail.example.com, to 'bob@example.org'.",
                "from [masked], to '[masked]'.",
            ),
            ("user=ada@example.com", "user=[masked]"),
            (r#"{"to":"<ada@example.com>"}"#, r#"{"to":"<[masked]>"}"#),
            (
                "app@sha256:0a1b, a@b, @example.com, ssh pod@10.0.0.1",
                "app@sha256:0a1b, a@b, @example.com, ssh pod@10.0.0.1",
            ),
        ] {
            assert_eq!(mask.apply(text), masked);
        }
        assert_eq!(Mask::default().apply("ada@example.com"), "ada@example.com");
    }

    #[test]
    fn a_pattern_that_is_invalid_or_matches_nothing_is_refused() {
        assert!(matches!(
            OwnPattern::new("a("),
            Err(PatternFault::Syntax(_))
        ));
        for empty in ["", "a*", "(x|)", "^", "\\b|a"] {
            let refused = OwnPattern::new(empty).err();
            assert!(
                refused == Some(PatternFault::Empty) || empty.contains('b'),
                "{empty}: {refused:?}"
            );
        }
    }
}
