//! Finds secrets word by word: keys with a secret value, authorization schemes, tokens that are known by their shape.

use super::{MASKED, Span};

/// Goes from word to word: keys whose value is secret, authorization schemes, tokens known by their shape.
pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    let mut end = 0;
    while let Some(word) = next_word(text, end) {
        end = word.end;
        let name = text.get(word.clone()).unwrap_or_default();
        let span = if is_token(name) { Some(word.clone()) } else { after_word(text, &word, name) };
        if let Some(span) = span {
            end = end.max(span.end);
            spans.push(span);
        }
    }
}

fn after_word(text: &str, word: &Span, name: &str) -> Option<Span> {
    if name.eq_ignore_ascii_case("bearer") {
        return bearer(text, word.end);
    }
    match secrecy(name) {
        Secrecy::None => None,
        Secrecy::Line => assignment(text, word.end).and_then(|at| rest_of_line(text, at)),
        Secrecy::Value => {
            let at = assignment(text, word.end)
                .or_else(|| named_value(text, word.end))
                .or_else(|| flag(text, word.end, name))?;
            value(text, at)
        }
    }
}

/// A run of the characters that names and tokens are made of.
fn next_word(text: &str, from: usize) -> Option<Span> {
    let rest = text.get(from..)?;
    let start = from + rest.find(is_word)?;
    let run = text.get(start..)?;
    let end = run.find(|c| !is_word(c)).map_or(text.len(), |length| start + length);
    Some(start..end)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

enum Secrecy {
    None,
    /// The value of the key.
    Value,
    /// Everything up to the end of the line or of the quotes.
    Line,
}

fn secrecy(name: &str) -> Secrecy {
    const VALUE: [&str; 12] = [
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "secret",
        "token",
        "apikey",
        "accesskey",
        "secretkey",
        "privatekey",
        "credential",
        "credentials",
    ];
    const LINE: [&str; 2] = ["authorization", "cookie"];
    /// Marks in long listings: the model needs them to go on.
    const NOT: [&str; 4] = ["pagetoken", "nexttoken", "continuationtoken", "continuetoken"];
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    let ends = |endings: &[&str]| endings.iter().any(|ending| plain.ends_with(ending));
    if ends(&NOT) {
        Secrecy::None
    } else if ends(&VALUE) {
        Secrecy::Value
    } else if ends(&LINE) {
        Secrecy::Line
    } else {
        Secrecy::None
    }
}

/// Tokens that are known by how they begin, with the shortest length of the rest.
fn is_token(word: &str) -> bool {
    const KNOWN: [(&str, usize); 14] = [
        ("AKIA", 16),
        ("ASIA", 16),
        ("AIza", 30),
        ("ghp_", 20),
        ("gho_", 20),
        ("ghs_", 20),
        ("github_pat_", 20),
        ("glpat-", 16),
        ("xoxb-", 16),
        ("xoxp-", 16),
        ("sk-", 20),
        ("hvs.", 20),
        ("npm_", 30),
        ("xapp-", 16),
    ];
    let known = KNOWN.iter().any(|(start, rest)| word.strip_prefix(start).is_some_and(|tail| tail.len() >= *rest));
    let web_token = word.starts_with("eyJ") && word.len() > 40 && word.split('.').count() >= 3;
    known || web_token
}

/// Where the value begins after `key:`, `key=`, `"key" :`, `key=>` and the same inside of an escaped string.
fn assignment(text: &str, from: usize) -> Option<usize> {
    let at = skip(text, from, |c| matches!(c, '\\' | '"' | '\'' | '`'));
    let at = skip(text, at, is_blank);
    let after = skip(text, at, |c| matches!(c, ':' | '='));
    if after == at {
        return None;
    }
    Some(skip(text, skip(text, after, |c| c == '>'), is_blank))
}

/// Where the value begins in `name: KEY, value: …`, as Kubernetes writes environment variables.
fn named_value(text: &str, from: usize) -> Option<usize> {
    let at = skip(text, from, |c| c.is_whitespace() || matches!(c, '\\' | '"' | '\'' | ','));
    let word = text.get(at..)?.strip_prefix("value")?;
    assignment(text, text.len() - word.len())
}

/// Where the value begins in `--password value`.
fn flag(text: &str, from: usize, name: &str) -> Option<usize> {
    let at = skip(text, from, is_blank);
    (name.starts_with("--") && at > from && !text.get(at..)?.starts_with('-')).then_some(at)
}

/// The token after the word `Bearer`.
fn bearer(text: &str, from: usize) -> Option<Span> {
    let start = skip(text, from, is_blank);
    if start == from {
        return None;
    }
    let end = skip(text, start, |c| is_word(c) || matches!(c, '~' | '+' | '/' | '='));
    let token = text.get(start..end)?;
    let likely = token.len() >= 20 || (token.len() >= 6 && token.contains(|c: char| c.is_ascii_digit()));
    likely.then_some(start..end)
}

fn rest_of_line(text: &str, at: usize) -> Option<Span> {
    let start = skip(text, at, |c| matches!(c, '\\' | '"' | '\''));
    if is_reference(text, start, start > at) {
        return None;
    }
    let end = skip(text, start, |c| !matches!(c, '\n' | '\r' | '"' | '\'' | '\\'));
    secret(text, start..end)
}

/// The value that begins at `at`, quoted or not.
fn value(text: &str, at: usize) -> Option<Span> {
    let open = skip(text, at, |c| c == '\\');
    let quote = text.get(open..)?.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
    match quote {
        Some(quote) => quoted(text, open + 1, quote, open > at),
        None => bare(text, at),
    }
}

fn bare(text: &str, at: usize) -> Option<Span> {
    if is_reference(text, at, false) {
        return None;
    }
    let end = skip(text, at, |c| !c.is_whitespace() && !matches!(c, '"' | '\'' | '`' | '\\' | '&'));
    let value = text.get(at..end)?;
    let length = value.trim_end_matches([',', ';', ')', ']', '}']).len();
    let end = if length > 0 { at + length } else { end };
    secret(text, at..end)
}

/// The value between quotes; in an escaped string the quotes themselves are escaped.
fn quoted(text: &str, start: usize, quote: char, escaped: bool) -> Option<Span> {
    if is_reference(text, start, true) {
        return None;
    }
    let mut backslash = false;
    for (offset, c) in text.get(start..)?.char_indices() {
        if c == quote && (escaped || !backslash) {
            let end = start + offset - usize::from(escaped && backslash);
            return secret(text, start..end);
        }
        backslash = c == '\\' && !backslash;
    }
    secret(text, start..text.len())
}

/// Whether what begins here stands for a value, or holds other keys. Looks at the beginning only: a value that is
/// left alone is read again, key by key, and must not be read to its end each time.
fn is_reference(text: &str, at: usize, quoted: bool) -> bool {
    let value = text.get(at..).unwrap_or_default();
    let stands_for = [MASKED, "${", "$(", "{{"].iter().any(|start| value.starts_with(start));
    let remark = value.strip_prefix('<').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
    stands_for || remark || (!quoted && value.starts_with(['{', '[', '|', '>']))
}

/// The span, unless what it holds plainly is no secret.
fn secret(text: &str, span: Span) -> Option<Span> {
    const NONE: [&str; 7] = ["null", "nil", "none", "true", "false", "undefined", "string"];
    let value = text.get(span.clone())?.trim();
    let harmless = value.is_empty() || NONE.iter().any(|none| value.eq_ignore_ascii_case(none));
    (!harmless).then_some(span)
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

fn skip(text: &str, from: usize, skipped: impl Fn(char) -> bool) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.find(|c| !skipped(c)).map_or(text.len(), |length| from + length)
}
