//! Pairs whose name alone is not secret: `private key: …`, `root:…`, a line of `.pgpass`, the default of a variable
//! with a secret name.

use super::word::{Word, WordSet};
use crate::bytes::{
    CharCounts, all, back, begins, byte, is_blank, is_opaque, is_quote, is_word, near_line_end,
    part, rest, skip, skip_near,
};
use crate::names::{Secrecy, secrecy};
use crate::spans::SecretSpan;
use crate::values::{Reach, is_harmless, is_name_or_uuid, secret_at, secret_word};

/// Users whose name is often before a password: `root:…`.
pub(super) static USERS: WordSet<22> = WordSet::new([
    "root",
    "admin",
    "administrator",
    "postgres",
    "mysql",
    "elastic",
    "kibana",
    "user",
    "username",
    "guest",
    "ubuntu",
    "oracle",
    "redis",
    "mongo",
    "grafana",
    "jenkins",
    "rabbitmq",
    "nats",
    "deploy",
    "deployer",
    "service",
    "backup",
]);
/// The words before `key` that make it a secret: `private key`.
const KEYS: [&str; 16] = [
    "private",
    "preshared",
    "shared",
    "secret",
    "access",
    "api",
    "unseal",
    "recovery",
    "encryption",
    "decryption",
    "signing",
    "master",
    "license",
    "auth",
    "deploy",
    "session",
];
/// The distance in bytes within which the head of a block is looked for.
const MAX_BLOCK: usize = 384;

/// The length of an arrow between a name and its value.
pub(super) fn arrow(text: &str, at: usize) -> Option<usize> {
    let arrow = rest(text, at).chars().next()?;
    matches!(arrow, '→' | '⇒' | '➜' | '➔' | '⟶' | '—' | '–' | '：').then(|| arrow.len_utf8())
}

/// The secret value of a name that is not secret by itself.
pub(super) fn pair(word: Word<'_>, value: usize) -> Option<SecretSpan> {
    let name = word.name();
    if name.eq_ignore_ascii_case("key") || name.eq_ignore_ascii_case("keys") {
        return key(word, value);
    }
    if name == "default" || name == "result" {
        return in_block(word, value);
    }
    pgpass(word, value).or_else(|| user(word, value))
}

/// `private key: …`, `Unseal Key 1: …`.
fn key(word: Word<'_>, value: usize) -> Option<SecretSpan> {
    let before = word.before().trim_end();
    let previous = before
        .rsplit(|c: char| !c.is_ascii_alphanumeric())
        .next()
        .unwrap_or_default();
    let is_secret = before.len() < word.before().len()
        && KEYS.iter().any(|key| previous.eq_ignore_ascii_case(key));
    is_secret.then(|| secret_at(word.text, value, Reach::Word, Secrecy::Weak))?
}

/// `variable "db_password" {` with `default = "…"` below, `# random_password.db` with `result = "…"`.
fn in_block(word: Word<'_>, value: usize) -> Option<SecretSpan> {
    let text = word.text;
    let from = text.ceil_char_boundary(word.start.saturating_sub(MAX_BLOCK));
    let mut lines = part(text, from, word.start).rsplit('\n');
    // The line of the word itself.
    lines.next();
    let head = lines.take(12).find(|line| {
        let line = line.trim();
        line.ends_with(['{', '}']) || line.starts_with('#') || line.contains("random_password")
    })?;
    let mut words = head.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-'));
    let is_secret =
        !head.trim().ends_with('}') && words.any(|word| secrecy(word) == Secrecy::Strong);
    let is_text = is_quote(byte(text, value));
    if is_secret && is_text {
        secret_word(text, value)
    } else {
        None
    }
}

/// `root:…`: a likely password directly after the colon.
fn user(word: Word<'_>, value: usize) -> Option<SecretSpan> {
    let text = word.text;
    if value != word.end + 1
        || USERS.find(word.name()).is_none()
        || matches!(byte(text, word.start.wrapping_sub(1)), b'/' | b':' | b'@')
    {
        return None;
    }
    let end = skip_near(text, value, 256, |b| {
        b.is_ascii_graphic() && !is_quote(b) && !matches!(b, b',' | b';' | b')')
    });
    let secret = part(text, value, end);
    let is_likely = is_opaque(secret, 8)
        && CharCounts::count(secret).digits > 0
        && !secret.contains([':', '/', '@', '.', '=']);
    (is_likely && !is_name_or_uuid(secret)).then(|| SecretSpan::new(value, end))
}

/// The password of a line of `.pgpass`: `host:port:database:user:password`, with `*` for any of the first four.
fn pgpass(word: Word<'_>, value: usize) -> Option<SecretSpan> {
    let text = word.text;
    if value != word.end + 1 || byte(text, word.end) != b':' {
        return None;
    }
    let in_run = |b: u8| b.is_ascii_graphic() && b != b'"';
    // A host has no sign of equality; the value of a query or of a variable begins after one.
    let start = back(text, word.start.saturating_sub(128), word.start, |b| {
        in_run(b) && b != b'='
    });
    let end = skip_near(text, value, 512, in_run);
    let mut fields = part(text, start, text.floor_char_boundary(end)).splitn(5, ':');
    let mut field = || fields.next();
    let host = field()?;
    let port = field()?;
    let _ = field()?;
    let user = field()?;
    let password = field()?;

    let is_port = port == "*" || port.len() > 1 && all(port, |b| b.is_ascii_digit());
    let is_named = user.starts_with(|c: char| c.is_ascii_alphabetic() || c == '*')
        && (host == "*" || host.contains(|c: char| c.is_ascii_alphabetic()));
    let likely = !password.contains(':') && is_opaque(password, 6);
    (is_port && is_named && likely).then(|| SecretSpan::new(end - password.len(), end))
}

/// The value that an old one becomes, in the plan of Terraform: `= "…" -> "…"`.
pub(super) fn changed_to(text: &str, end: usize) -> Option<SecretSpan> {
    let close = end + usize::from(is_quote(byte(text, end)));
    let arrow = skip(text, close, is_blank);
    let value = skip(text, arrow + 2, is_blank);
    let is_changed =
        close > end && part(text, arrow, arrow + 2) == "->" && is_quote(byte(text, value));
    is_changed.then(|| secret_word(text, value))?
}

/// `echo … | docker login --password-stdin`.
pub(super) fn piped(word: Word<'_>) -> Option<SecretSpan> {
    let line = word.start - word.before().len();
    let (before, _) = word.before().rsplit_once('|')?;
    let echo = before
        .rfind("echo ")
        .map(|at| at + "echo ".len())
        .or_else(|| Some(before.rfind("<<<")? + 3))?;
    let value = skip_near(word.text, line + echo, 8, is_blank);
    let value = if begins(rest(word.text, value), "-n ") {
        value + 3
    } else {
        value
    };
    secret_word(word.text, value)
}

/// `login with bob / …`: the user and the password after the word.
pub(super) fn login(text: &str, end: usize) -> Option<SecretSpan> {
    let line = part(text, end, near_line_end(text, end, 128));
    let (user, secret) = line.split_once('/')?;
    let named = user.split_whitespace().count() <= 4
        && all(user, |b| is_word(b) || is_blank(b) || b == b':');
    let start = end + user.len() + 1 + (secret.len() - secret.trim_start().len());
    let last = skip_near(text, start, 128, |b| {
        b.is_ascii_graphic() && !matches!(b, b',' | b'"' | b'\'')
    });
    let secret = part(text, start, last).trim_end_matches(['.', ')']);
    let kinds = CharCounts::count(secret);
    let is_mixed = kinds.digits > 0 && kinds.upper > 0 && kinds.lower > 0;
    let is_likely = secret.len() >= 8 && is_mixed && !secret.contains(['/', '.']);
    (named && is_likely && !is_harmless(secret, Secrecy::Strong))
        .then(|| SecretSpan::new(start, start + secret.len()))
}
