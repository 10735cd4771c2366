//! Masking: takes secrets out of texts that come from outside before anything else sees them.
//!
//! Several finders, each linear in the text, mark what looks like a secret; the marked spans are replaced. What is in
//! doubt is masked, except where the value plainly is none (`null`, `true`, `<set to the key …>`): an investigation
//! needs to see that a password is missing.

#[cfg(test)]
mod corpus;
mod each;
mod stream;
mod words;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde_json::Value;

pub use stream::StreamMask;

/// What stands in place of a secret.
pub const MASKED: &str = "[masked]";
/// What stands in place of a whole text when the search for secrets in it failed.
pub const HIDDEN: &str = "[hidden: the text could not be searched for secrets]";

/// Literal values shorter than this are not masked: they would blot out ordinary words.
const SHORTEST_LITERAL: usize = 6;

type Span = Range<usize>;

/// Knows what to mask.
#[derive(Clone, Default)]
pub struct Mask {
    literals: Vec<String>,
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mask").field("literals", &self.literals.len()).finish()
    }
}

impl Mask {
    /// The built-in patterns and these values. Values of less than six bytes are left out.
    pub fn new(literals: impl IntoIterator<Item = String>) -> Self {
        let mut literals: Vec<String> =
            literals.into_iter().map(|value| value.trim().to_owned()).filter(|v| v.len() >= SHORTEST_LITERAL).collect();
        literals.sort();
        literals.dedup();
        Self { literals }
    }

    /// The text without its secrets. Masking a masked text changes nothing.
    pub fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut spans = Vec::new();
        for literal in &self.literals {
            spans.extend(text.match_indices(literal.as_str()).map(|(at, found)| at..at + found.len()));
        }
        private_keys(text, &mut spans);
        url_passwords(text, &mut spans);
        words::find(text, &mut spans);
        replace(text, spans)
    }

    /// The value without its secrets, in the same shape; a masked number becomes the text `[masked]`. The text
    /// [`HIDDEN`] when the search fails.
    pub fn json(&self, value: &Value) -> Value {
        match self.apply(&value.to_string()) {
            Cow::Borrowed(_) => value.clone(),
            Cow::Owned(masked) => serde_json::from_str(&masked).unwrap_or_else(|_| HIDDEN.into()),
        }
    }
}

fn replace(text: &str, mut spans: Vec<Span>) -> Cow<'_, str> {
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    spans.sort_by_key(|span| span.start);
    let mut masked = String::with_capacity(text.len());
    let mut done = 0;
    for span in spans {
        if span.start >= done {
            masked.push_str(text.get(done..span.start).unwrap_or_default());
            masked.push_str(MASKED);
        }
        done = done.max(span.end);
    }
    masked.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(masked)
}

/// PEM private keys, up to the end of the text when the end mark is missing.
fn private_keys(text: &str, spans: &mut Vec<Span>) {
    const BEGIN: &str = "-----BEGIN ";
    const KEY: &str = "PRIVATE KEY-----";
    let mut at = 0;
    while let Some(begin) = find(text, BEGIN, at) {
        at = begin + BEGIN.len();
        let label_end = find(text, "-----", at).unwrap_or(text.len());
        if !text.get(at..label_end).unwrap_or_default().ends_with("PRIVATE KEY") {
            continue;
        }
        let end = find(text, KEY, label_end + 5).map_or(text.len(), |end| end + KEY.len());
        spans.push(begin..end);
        at = end;
    }
}

/// The password of `scheme://user:password@host`.
fn url_passwords(text: &str, spans: &mut Vec<Span>) {
    for (at, mark) in text.match_indices("://") {
        let start = at + mark.len();
        let rest = text.get(start..).unwrap_or_default();
        let authority = rest.split(|c: char| c.is_whitespace() || "/?#\"'`<>\\".contains(c)).next().unwrap_or_default();
        let Some((user_info, _)) = authority.rsplit_once('@') else { continue };
        let Some((user, password)) = user_info.split_once(':') else { continue };
        if !password.is_empty() && password != MASKED {
            let from = start + user.len() + 1;
            spans.push(from..from + password.len());
        }
    }
}

fn find(text: &str, what: &str, from: usize) -> Option<usize> {
    Some(from + text.get(from..)?.find(what)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn masked(text: &str) -> String {
        Mask::default().apply(text).into_owned()
    }

    #[test]
    fn values_of_keys_that_name_a_secret_are_masked() {
        for (text, expected) in [
            ("password=hunter2 user=bob", "password=[masked] user=bob"),
            ("DB_PASSWORD:          hunter2\nDB_USER: bob", "DB_PASSWORD:          [masked]\nDB_USER: bob"),
            (r#"{"password":"a\"b,c","x":1}"#, r#"{"password":"[masked]","x":1}"#),
            (r#"{"api_key": 123456,"x":1}"#, r#"{"api_key": [masked],"x":1}"#),
            (r#""{\"clientSecret\":\"s3cr3t\",\"x\":1}""#, r#""{\"clientSecret\":\"[masked]\",\"x\":1}""#),
            ("https://h/?access_token=abc&page=2", "https://h/?access_token=[masked]&page=2"),
            ("mysql --password hunter2 -h db", "mysql --password [masked] -h db"),
            ("spring.datasource.password => 'x y'", "spring.datasource.password => '[masked]'"),
            ("- name: DB_PASSWORD\n  value: hunter2\n", "- name: DB_PASSWORD\n  value: [masked]\n"),
            (r#"{"name":"API_TOKEN","value":"t0k"}"#, r#"{"name":"API_TOKEN","value":"[masked]"}"#),
            ("(token: abc)", "(token: [masked])"),
            (r#"secret: "$2a$10$N9qo""#, r#"secret: "[masked]""#),
            ("cookie: {\"password\": \"x\"}", "cookie: {\"password\": \"[masked]\"}"),
            ("passwort: ä, token: äöü", "passwort: ä, token: [masked]"),
        ] {
            assert_eq!(masked(text), expected);
        }
    }

    #[test]
    fn credentials_in_headers_urls_and_files_are_masked() {
        for (text, expected) in [
            ("Authorization: Basic dXNlcjpwYXNz\nHost: x", "Authorization: [masked]\nHost: x"),
            (r#"-H "Authorization: Bearer a.b.c" url"#, r#"-H "Authorization: [masked]" url"#),
            ("used bearer abc123def now", "used bearer [masked] now"),
            ("postgres://app:p@ss:w@db:5432/x", "postgres://app:[masked]@db:5432/x"),
            ("key AKIAIOSFODNN7EXAMPLE used", "key [masked] used"),
            ("a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b", "a [masked] b"),
            ("-----BEGIN PRIVATE KEY-----\nMIIE", "[masked]"),
            ("pushed with ghp_0123456789abcdefghij01", "pushed with [masked]"),
        ] {
            assert_eq!(masked(text), expected);
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "DB_PASSWORD:  <set to the key 'password' in secret 'db'>  Optional: false",
            "automountServiceAccountToken: true",
            "password: null, token: \"\"",
            "secret:\n  secretName: db",
            "max_tokens: 5, tokens=7, nextPageToken: abc",
            "the bearer authentication failed: token expired",
            r#"{"password":{"type":"string"}}"#,
            "PASSWORD=${DB_PASSWORD}, token: {}, secret: []",
            "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
            "see https://example.com:8080/a@b?c=d",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn configured_values_are_masked_wherever_they_stand() {
        let mask = Mask::new(["s3same-open".to_owned(), "abc".to_owned()]);
        assert_eq!(mask.apply("xs3same-openx abc s3same-open"), "x[masked]x abc [masked]");
        assert_eq!(format!("{mask:?}"), "Mask { literals: 1 }");
    }

    #[test]
    fn a_masked_json_value_keeps_its_shape() {
        let value = serde_json::json!({"password": "hunter2", "nested": {"note": "used token=abc123", "n": 1}});
        let expected = serde_json::json!({"password": "[masked]", "nested": {"note": "used token=[masked]", "n": 1}});
        assert_eq!(Mask::default().json(&value), expected);
    }

    #[test]
    fn a_long_text_of_quotes_and_keys_takes_no_more_than_its_length() {
        let begun = std::time::Instant::now();
        for part in [
            "password=\"",
            "-----BEGIN ",
            "token ",
            "cookie:{",
            "password=${",
            "password='<a",
            "bearer+",
            "a://b:",
            "eyJ.",
        ] {
            let text = part.repeat(50_000);
            assert!(masked(&text).len() <= text.len() + MASKED.len());
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(20));
    }

    proptest! {
        #[test]
        fn masking_twice_is_masking_once(text in r#"((password|token|Authorization|bearer|x)[=: ]{1,2}|["'\\]|[a-z0-9äß]{1,9}|[ ,;&\n\[\]{}@/]|://){0,40}"#) {
            let once = masked(&text);
            prop_assert_eq!(masked(&once), once);
        }

        #[test]
        fn a_value_without_delimiters_never_survives(value in "[A-Za-z0-9+/!#%*]{8,40}", key in "(PASSWORD|db_password|apiKey|client-secret)", mark in "(=|: |\": \"|=')") {
            let text = format!("before {key}{mark}{value} after");
            prop_assert!(!masked(&text).contains(&value), "{}", masked(&text));
        }
    }
}
