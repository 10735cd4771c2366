//! Finds the end of a value, and decides whether a value obviously is no secret.

use super::bytes::{
    all, begins, byte, is_blank, is_opaque, is_quote, is_word, line_end, near_line_end, part, rest,
    skip,
};
use super::names::Secrecy;
use super::prose::is_prose;
use super::spans::SecretSpan;

/// The reach of a value without quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The value ends at the next white space.
    Word,
    /// The value ends at the comma or bracket of a list in a line.
    Flow,
    /// The value ends at the end of the line or at the next pair.
    Line,
}

/// The longest text between quotes, in bytes.
const MAX_QUOTED: usize = 65_536;
/// The bytes after a separator that are read to recognise the next pair.
const MAX_PAIR_LOOKAHEAD: usize = 48;

/// The strong secret that begins at `at` and ends at the next white space.
pub(super) fn secret_word(text: &str, at: usize) -> Option<SecretSpan> {
    secret_at(text, at, Reach::Word, Secrecy::Strong)
}

/// The value that begins at `at`, unless it obviously is no secret.
pub(super) fn secret_at(
    text: &str,
    at: usize,
    reach: Reach,
    secrecy: Secrecy,
) -> Option<SecretSpan> {
    let at = past_type(text, at);
    let begun = at;
    let at = past_tags(text, at);
    if is_reference(rest(text, at)) {
        return None;
    }
    let (start, end) = extent(text, at, reach);
    if start >= end || is_harmless(part(text, start, end), secrecy) {
        return None;
    }
    // A text that looks like a tag may be the beginning of the secret.
    Some(SecretSpan::new(if at > begun { begun } else { start }, end))
}

/// Skips the type before a value that PHP dumps: `string(22) "…"`.
fn past_type(text: &str, at: usize) -> usize {
    let Some(length) = rest(text, at).strip_prefix("string(") else {
        return at;
    };
    let close = at + "string(".len() + skip(length, 0, |b| b.is_ascii_digit());
    let value = close + ") ".len();
    if part(text, close, value) == ") " && is_quote(byte(text, value)) {
        value
    } else {
        at
    }
}

/// Skips YAML tags and anchors: `!!str`, `&anchor`.
fn past_tags(text: &str, at: usize) -> usize {
    let mut at = at;
    while matches!(byte(text, at), b'!' | b'&') {
        let anchor = byte(text, at) == b'&';
        let name = skip(text, at + 1, |b| b == b'!');
        let tag = skip(text, name, |b| {
            b.is_ascii_alphabetic() || anchor && is_word(b)
        });
        let next = skip(text, tag, is_blank);
        if next == tag || tag == at + 1 || matches!(byte(text, next), b'\n' | b'\r' | 0) {
            return at;
        }
        at = next;
    }
    at
}

/// Start and end of a value, without its quotes.
fn extent(text: &str, at: usize, reach: Reach) -> (usize, usize) {
    for three in ["\"\"\"", "'''"] {
        if rest(text, at).starts_with(three) {
            let start = at + 3;
            return (start, find(text, three, start).unwrap_or(text.len()));
        }
    }
    if let Some(marker) = rest(text, at).strip_prefix("<<") {
        return heredoc(text, at, marker);
    }
    for entity in ["&quot;", "&#34;", "&#39;", "&apos;"] {
        if begins(rest(text, at), entity) {
            let start = at + entity.len();
            return (
                start,
                find(text, entity, start).unwrap_or_else(|| line_end(text, start)),
            );
        }
    }
    if byte(text, at) == b'[' {
        let line = part(text, at, near_line_end(text, at, 4_096));
        if let Some(close) = line.find(']')
            && !line.starts_with("[masked]")
        {
            return (at, at + close + 1);
        }
    }
    let open = skip(text, at, |b| b == b'\\');
    if is_quote(byte(text, open)) {
        (open + 1, quoted(text, at, open))
    } else {
        (at, bare(text, at, reach))
    }
}

fn find(text: &str, what: &str, from: usize) -> Option<usize> {
    let near = part(text, from, text.floor_char_boundary(from + MAX_QUOTED));
    Some(from + near.find(what)?)
}

/// `<<EOT`: from the next line to the line of the marker.
fn heredoc(text: &str, at: usize, marker: &str) -> (usize, usize) {
    let marker = marker.trim_start_matches(['-', '~', '\'', '"']);
    let length = skip(marker, 0, |b| b.is_ascii_alphanumeric() || b == b'_');
    let start = line_end(text, at);
    if length == 0 {
        return (at, start);
    }
    let start = skip(text, start, |b| matches!(b, b'\r' | b'\n' | b' ' | b'\t'));
    let end = find(text, part(marker, 0, length), start).unwrap_or_else(|| line_end(text, start));
    (start, start + part(text, start, end).trim_end().len())
}

/// The end of the value between quotes, the first of which is at `open`. A backslash between `at` and `open` means that
/// the quotes themselves are escaped.
fn quoted(text: &str, at: usize, open: usize) -> usize {
    let escaped = open > at;
    let quote = byte(text, open);
    let start = open + 1;
    let mut at = start;
    while at < text.len() && at < start + MAX_QUOTED {
        let b = byte(text, at);
        if b == b'\\' && !(escaped && byte(text, at + 1) == quote) {
            at += 2;
            continue;
        }
        let closes = if escaped { b == b'\\' } else { b == quote };
        if closes && !escaped && quote != b'`' && byte(text, at + 1) == quote && at > start {
            at += 2;
            continue;
        }
        if closes {
            let goes_on = !escaped && byte(text, at + 1).is_ascii_alphanumeric();
            return if goes_on {
                bare(text, at + 1, Reach::Word)
            } else {
                at
            };
        }
        at += 1;
    }
    if at >= text.len() {
        text.len()
    } else {
        line_end(text, start)
    }
}

/// The end of a value without quotes.
fn bare(text: &str, at: usize, reach: Reach) -> usize {
    let mut end = at;
    while end < text.len() && !ends_value(text, at, end, reach) {
        end += 1;
    }
    let value = part(text, at, end).trim_end();
    let value = if value.contains(['(', '[', '{', '<']) {
        value
    } else {
        value.trim_end_matches([')', ']', '}'])
    };
    let trimmed = value.trim_end_matches([',', ';']).len();
    at + if trimmed > 0 { trimmed } else { value.len() }
}

/// Whether a value without quotes, which began at `start`, is over at `at`.
fn ends_value(text: &str, start: usize, at: usize, reach: Reach) -> bool {
    let next = byte(text, at + 1);
    match byte(text, at) {
        b'\n' | b'\r' => true,
        b' ' | b'\t' => match reach {
            Reach::Word => true,
            Reach::Flow => false,
            Reach::Line => next == b'#' || next == b'|' || starts_pair(text, at + 1),
        },
        b'"' | b'\'' | b'`' => {
            reach != Reach::Line
                && at > start
                && (next == 0 || next.is_ascii_whitespace() || b",;)}]>\\|".contains(&next))
        }
        b'\\' => is_quote(next) || matches!(next, b'n' | b'r' | b't' | b'\\'),
        b'&' => {
            let entity = ["&amp;", "&quot;", "&lt;", "&gt;", "&#"]
                .iter()
                .any(|entity| begins(rest(text, at), entity));
            next == b'&' || entity || starts_pair(text, at + 1)
        }
        b',' => {
            reach == Reach::Flow
                || next == 0
                || next.is_ascii_whitespace() && reach == Reach::Word
                || { starts_pair(text, skip(text, at + 1, is_blank)) }
        }
        b';' => next == 0 || next.is_ascii_whitespace() || starts_pair(text, at + 1),
        b'<' => next == b'/' || begins(rest(text, at), "<br"),
        b'}' | b']' => reach == Reach::Flow,
        b => {
            !b.is_ascii()
                && rest(text, at)
                    .chars()
                    .next()
                    .is_some_and(char::is_whitespace)
        }
    }
}

/// Whether `name=` or `name: ` begins here.
fn starts_pair(text: &str, at: usize) -> bool {
    let at = skip(text, at, is_quote);
    let name = rest(text, at).as_bytes().iter().take(MAX_PAIR_LOOKAHEAD);
    let length = name
        .take_while(|b| is_word(**b) || matches!(**b, b'[' | b']' | b'%'))
        .count();
    let after = skip(text, at + length, is_quote);
    let separated =
        byte(text, after) == b'=' || byte(text, after) == b':' && is_blank(byte(text, after + 1));
    let spaced = byte(text, after) == b' '
        && matches!(byte(text, after + 1), b'=')
        && byte(text, after + 2) == b' ';
    length > 0
        && byte(text, at).is_ascii_alphabetic()
        && (separated || spaced || is_connection_pair(text, at))
}

/// `User Id=` and `Initial Catalog=` of connection strings, after a semicolon.
fn is_connection_pair(text: &str, at: usize) -> bool {
    byte(text, at.saturating_sub(1)) == b';' && {
        let name = skip(
            part(text, at, text.len().min(at + MAX_PAIR_LOOKAHEAD)),
            0,
            |b| is_word(b) || b == b' ',
        );
        byte(text, at + name) == b'='
    }
}

/// Whether the value is a placeholder or reference as a whole: `${DB_PASSWORD}`, `{{ .Values.db }}`, `<set to the key
/// …>`.
fn is_reference(value: &str) -> bool {
    if !value.starts_with(['$', '{', '<', '#']) {
        return false;
    }
    let head = part(value, 0, near_line_end(value, 0, 256));
    let inner = |open: &str, close: &str| {
        let tail = head.strip_prefix(open)?;
        let (inner, after) = tail.split_once(close)?;
        after
            .bytes()
            .next()
            .is_none_or(|b| !b.is_ascii_alphanumeric())
            .then_some(inner.trim())
    };
    let named = |inner: &str| {
        !inner.is_empty() && all(inner, |b| is_word(b) || matches!(b, b'/' | b':' | b' '))
    };
    let variable = inner("${{", "}}").is_some_and(named)
        || inner("${", "}").is_some_and(|inner| {
            let name = inner.split_once(':').map_or(inner, |(name, _)| name);
            let from = [
                "file",
                "env",
                "vault",
                "ssm",
                "sm",
                "secretManager",
                "sys",
                "dir",
            ]
            .contains(&name);
            let plain = !inner.contains(':') && is_variable(inner);
            plain || from && named(inner) || inner.contains(":?") && is_variable(name)
        });
    let template = inner("{{", "}}").is_some()
        || inner("<%", "%>").is_some()
        || inner("#{", "}").is_some_and(named);
    let command = inner("$(", ")").is_some_and(|inner| {
        let first = inner.split(' ').next().unwrap_or_default();
        (inner.contains(' ') && !["echo", "printf"].contains(&first))
            || is_variable(inner) && first == first.to_uppercase()
    });
    let remark = inner("<", ">").is_some_and(|inner| {
        inner.starts_with(|c: char| c.is_ascii_alphabetic())
            && all(inner, |b| {
                b.is_ascii_alphabetic() || b" '\"-_.,".contains(&b)
            })
            || inner.starts_with("set to the key")
    });
    variable || template || command || remark
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && all(name, is_word)
}

/// Whether a value obviously is no secret.
pub(super) fn is_harmless(value: &str, secrecy: Secrecy) -> bool {
    const NONE: [&str; 26] = [
        "",
        "null",
        "nil",
        "none",
        "true",
        "false",
        "undefined",
        "string",
        "~",
        "n/a",
        "unset",
        "yes",
        "no",
        "on",
        "off",
        "enabled",
        "disabled",
        "required",
        "optional",
        "redacted",
        "hidden",
        "masked",
        "[]",
        "{}",
        "()",
        "not set",
    ];
    let value = value.trim();
    let inner = value.trim_matches(['[', ']', '<', '>', '(', ')', '*']);
    if NONE
        .iter()
        .any(|none| value.eq_ignore_ascii_case(none) || inner.eq_ignore_ascii_case(none))
    {
        return true;
    }
    let starred = value.len() > 2 && all(value, |b| matches!(b, b'x' | b'X' | b'=' | b'#'));
    let signs = all(value, |b| b"*.-{}[]()<>".contains(&b));
    if starred || signs || is_reference(value) || refers(value) || is_prose(value) {
        return true;
    }
    let digits = all(value, |b| b.is_ascii_digit() || b == b'.');
    match secrecy {
        Secrecy::Random => {
            !is_opaque(value, 16) || value.contains([':', '/']) || is_name_or_uuid(value)
        }
        Secrecy::Weak => {
            digits || value.contains([':', ' ']) || !(is_opaque(value, 7) || is_long_word(value))
        }
        Secrecy::Strong | Secrecy::Header => digits && value.len() <= 3,
        Secrecy::None => true,
    }
}

/// Whether a value is a UUID, or small letters and digits with hyphens, as names of objects have.
pub(super) fn is_name_or_uuid(value: &str) -> bool {
    let is_uuid = value.len() == 36 && all(value, |b| b.is_ascii_hexdigit() || b == b'-');
    is_uuid
        || value.contains('-')
            && value
                .split('-')
                .all(|piece: &str| all(piece, |b| b.is_ascii_lowercase() || b.is_ascii_digit()))
}

fn is_long_word(value: &str) -> bool {
    value.len() > 12 && all(value, |b| b.is_ascii_alphabetic())
}

/// Whether a value refers to the place of a secret.
pub(super) fn refers(value: &str) -> bool {
    const STARTS: [&str; 24] = [
        "arn:",
        "op://",
        "vault:",
        "ref+",
        "file:",
        "env:",
        "ssm:",
        "@Microsoft.KeyVault(",
        "ENC[",
        "{cipher}",
        "$ANSIBLE_VAULT",
        "var.",
        "local.",
        "module.",
        "data.",
        "process.env.",
        "os.environ",
        "os.getenv",
        "System.getenv",
        "secrets.",
        "aws_",
        "random_password.",
        "kms://",
        "gcp-secret:",
    ];
    const ROOTS: [&str; 10] = [
        "etc", "var", "run", "opt", "home", "root", "tmp", "usr", "secrets", "vault",
    ];
    let by_variable = value.strip_prefix('$').is_some_and(|name| {
        is_variable(name)
            && name.len() > 2
            && !name
                .bytes()
                .any(|b| b.is_ascii_lowercase() || b == b'-' || b == b'.')
    });
    let below_a_root = value
        .strip_prefix('/')
        .and_then(|path| path.split_once('/'));
    let path = below_a_root.is_some_and(|(root, _)| ROOTS.contains(&root))
        || value.starts_with("~/")
        || value.starts_with("./");
    let path = path && all(value, |b| is_word(b) || b == b'/' || b == b'~');
    let resource = value.starts_with("projects/") && value.contains("/secrets/");
    by_variable
        || path
        || resource
        || STARTS.iter().any(|start| value.starts_with(start)) && !value.contains(' ')
}

#[cfg(test)]
mod tests;
