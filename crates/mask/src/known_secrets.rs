//! Secrets that the process knows, such as tokens from its environment: finds them in plain and encoded forms.

use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, Anchored, Input, MatchKind, StartKind};

use super::bytes::{back, in_base64_run, skip};
use super::prefilter::Prefilter;
use super::spans::SecretSpan;

/// Shorter values are ignored: they would match ordinary words.
pub(super) const MIN_BYTES: usize = 6;
/// Shorter encoded forms would match by chance.
const MIN_ENCODED_BYTES: usize = 7;

/// The values, with the automaton that finds all their forms.
pub(super) struct KnownSecrets {
    values: Vec<String>,
    finder: Option<AhoCorasick>,
    prefilter: Option<Prefilter>,
    /// Index of the first base64 form: a base64 run is masked as a whole.
    base64: usize,
}

impl KnownSecrets {
    pub(super) fn new(values: impl Iterator<Item = String>) -> Self {
        let values = distinct(values.map(|value| value.trim().to_owned()), MIN_BYTES);
        let mut forms = distinct(
            values.iter().flat_map(|value| plain_forms(value)),
            MIN_BYTES,
        );
        let base64 = forms.len();
        forms.extend(distinct(
            values.iter().flat_map(|value| base64_forms(value)),
            MIN_ENCODED_BYTES,
        ));
        let builder = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .start_kind(StartKind::Both)
            .build(&forms);
        // Without values, no text is searched.
        let prefilter = (!forms.is_empty())
            .then(|| Prefilter::new(forms.iter().map(String::as_str), MIN_BYTES, 20));
        Self {
            values,
            finder: builder.ok(),
            prefilter,
            base64,
        }
    }

    /// Number of values.
    pub(super) fn count(&self) -> usize {
        self.values.len()
    }

    /// Whether this value is known, as it is.
    pub(super) fn has(&self, value: &str) -> bool {
        self.values
            .binary_search_by(|known| known.as_str().cmp(value))
            .is_ok()
    }

    /// The values in plain form, sorted.
    pub(super) fn iter(&self) -> std::slice::Iter<'_, String> {
        self.values.iter()
    }

    /// Whether the automaton could be built.
    pub(super) fn works(&self) -> bool {
        self.finder.is_some()
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        !self.values.is_empty()
            && self
                .finder
                .as_ref()
                .is_some_and(|finder| finder.is_match(text))
    }

    pub(super) fn find(&self, text: &str, spans: &mut Vec<SecretSpan>) {
        let (Some(finder), Some(prefilter)) = (&self.finder, &self.prefilter) else {
            return;
        };
        let mut done = 0;
        let windows = prefilter
            .windows(text, |at: usize| {
                finder.is_match(Input::new(text).range(at..).anchored(Anchored::Yes))
            })
            .into_iter();
        for found in windows
            .flat_map(|(from, to)| finder.find_overlapping_iter(Input::new(text).span(from..to)))
        {
            let mut span = SecretSpan::new(found.start(), found.end());
            if found.pattern().as_usize() >= self.base64 {
                if found.end() <= done {
                    continue;
                }
                span.start = back(text, done.min(span.start), span.start, in_base64_run);
                span.end = skip(text, span.end, in_base64_run);
                done = span.end;
            }
            spans.push(span);
        }
    }
}

/// The texts of at least `min_bytes`, sorted and without duplicates.
fn distinct(texts: impl Iterator<Item = String>, min_bytes: usize) -> Vec<String> {
    let texts: BTreeSet<String> = texts.filter(|text| text.len() >= min_bytes).collect();
    texts.into_iter().collect()
}

/// The plain value; escaped for JSON, HTML and a shell; URL-encoded; in hexadecimal.
fn plain_forms(value: &str) -> Vec<String> {
    let json = serde_json::to_string(value).unwrap_or_default();
    let json = json
        .strip_prefix('"')
        .and_then(|json| json.strip_suffix('"'))
        .unwrap_or_default()
        .to_owned();
    let ascii: String = json
        .chars()
        .map(|c| {
            if c.is_ascii() {
                c.to_string()
            } else {
                unicode(c)
            }
        })
        .collect();
    let twice = json.replace('\\', "\\\\").replace('"', "\\\"");
    let html = value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;");
    let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![
        value.to_owned(),
        json.replace('/', "\\/"),
        json.replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026"),
        json,
        ascii,
        twice,
        html.replace('\'', "&#39;"),
        html,
        value.replace('\'', "'\\''"),
        value.replace('\'', "''"),
        hex.to_uppercase(),
        hex,
    ];
    for kept in [
        "-_.~",
        "-_.~!*'()",
        "-_.~!*'();:@&=+$,/?#",
        "-_.~!$&'()*+,;=:",
        "-_.~/",
        "-_.",
    ] {
        let encoded = percent(value, kept);
        forms.push(lower_codes(&encoded));
        forms.push(lower_codes(&encoded).replace("%20", "+"));
        forms.push(encoded.replace("%20", "+"));
        forms.push(encoded);
    }
    forms
}

fn unicode(c: char) -> String {
    let mut units = [0; 2];
    c.encode_utf16(&mut units)
        .iter()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect()
}

fn percent(value: &str, kept: &str) -> String {
    value
        .bytes()
        .map(|byte: u8| {
            let c = char::from(byte);
            if byte.is_ascii_alphanumeric() || kept.contains(c) {
                c.to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

fn lower_codes(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (code, tail) = part.split_at_checked(2).unwrap_or((part, ""));
        format!("{text}%{}{tail}", code.to_lowercase())
    })
}

/// The base64 characters that depend only on the value, for each of its three possible offsets within a group.
fn base64_forms(value: &str) -> Vec<String> {
    const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut forms = Vec::new();
    for before in 0..3_usize {
        let bits = std::iter::repeat_n(0, before).chain(value.bytes());
        let bits: Vec<bool> = bits
            .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1))
            .collect();
        let letters = bits
            .chunks_exact(6)
            .skip((before * 8).div_ceil(6))
            .map(|six| {
                let index = six
                    .iter()
                    .fold(0_usize, |index, bit| index << 1 | usize::from(*bit));
                STANDARD.get(index).copied().map_or('A', char::from)
            });
        let form: String = letters.collect();
        forms.push(form.replace('+', "-").replace('/', "_"));
        forms.push(form.replace('/', "\\/"));
        forms.push(percent(&form, "-_.~"));
        forms.push(form);
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_secret_is_found_in_every_encoding() {
        let secrets =
            KnownSecrets::new(["pä\"ss/w+rd & 'x'".to_owned(), "abc".to_owned()].into_iter());
        assert_eq!(secrets.count(), 1);
        for form in [
            "x pä\"ss/w+rd & 'x' y",
            r#"{"a":"pä\"ss/w+rd & 'x'"}"#,
            r#"{"a":"p\u00e4\"ss/w+rd & 'x'"}"#,
            r#"{"a":"pä\"ss\/w+rd & 'x'"}"#,
            r#"{"a":"{\"b\":\"pä\\\"ss/w+rd & 'x'\"}"}"#,
            "p%C3%A4%22ss%2Fw%2Brd%20%26%20%27x%27",
            "p%c3%a4%22ss%2fw%2brd+%26+%27x%27",
            "70c3a42273732f772b7264202620277827",
            "cMOkInNzL3crcmQgJiAneCc=",
            "YXBww6QicGEgcMOkInNzL3crcmQgJiAneCcgYg==",
            "YXAgcMOkInNzL3crcmQgJiAneCcgYg==",
            "pä&quot;ss/w+rd &amp; &#39;x&#39;",
        ] {
            assert!(secrets.is_in(form), "{form}");
        }
        assert!(!secrets.is_in("abc pass word x"));
    }
}
