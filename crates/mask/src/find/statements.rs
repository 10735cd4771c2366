//! Statements and commands that have several secrets, or a secret in the lines below: `INSERT … VALUES`, `vault kv
//! put`, rules of Redis, forms, netrc files, and the output of a command that prints a secret.

use super::named_values::follows_login;
use super::word::Word;
use crate::bytes::{
    back, byte, is_blank, is_opaque, is_quote, near_line_end, part, rest, skip, skip_near,
};
use crate::names::{Secrecy, is_password, secrecy};
use crate::spans::{SecretSpan, Span};
use crate::values::{is_harmless, is_name_or_uuid, secret_word};

/// The longest list of columns, and the longest row, in bytes.
const MAX_COLUMNS: usize = 2_048;
const MAX_ROW: usize = 8_192;
/// The longest command that is read, in bytes.
const MAX_LINE: usize = 512;
/// A shorter word below a command is no secret.
const MIN_PRINTED: usize = 8;

/// Adds the secrets of the statement that this word of a line begins.
pub(super) fn find(word: Word<'_>, line: Span, spans: &mut Vec<SecretSpan>) {
    let is = |known: &str| word.name().eq_ignore_ascii_case(known);
    if is("values") {
        inserted(word, spans);
    } else if is("put") || is("patch") || is("set") {
        assignments(word, spans);
    } else if is("user") || is("setuser") {
        acl_rules(word, spans);
    } else if word.name() == "AUTH" {
        spans.extend(monitored(word));
    } else if secrecy(word.name()) != Secrecy::None {
        spans.extend(
            below(word)
                .or_else(|| form_field(word))
                .or_else(|| printed(word, line)),
        );
    }
}

/// `INSERT INTO users (name, password) VALUES ('bob', '…'), ('ann', '…')`.
fn inserted(word: Word<'_>, spans: &mut Vec<SecretSpan>) {
    let text = word.text;
    let from = text.ceil_char_boundary(word.start.saturating_sub(MAX_COLUMNS));
    let Some(columns) = part(text, from, word.start).trim_end().strip_suffix(')') else {
        return;
    };
    let Some((_, columns)) = columns.rsplit_once('(') else {
        return;
    };
    let named = |column: &str| secrecy(column.trim().trim_matches(['"', '`', '[', ']', '\'']));
    let columns: Vec<Secrecy> = columns.split(',').map(named).collect();
    if columns.iter().all(|named| *named == Secrecy::None) {
        return;
    }
    let mut at = word.end;
    loop {
        at = skip(text, at, |b| b.is_ascii_whitespace() || b == b',');
        if byte(text, at) != b'(' {
            return;
        }
        let mut column = 0;
        while byte(text, at) != b')' {
            let Some(cell) = cell(text, at + 1) else {
                return;
            };
            let named = columns.get(column).copied().unwrap_or(Secrecy::None);
            let value = unquoted(text, cell);
            if named != Secrecy::None && !is_harmless(value.text(text), named) {
                spans.push(value.into());
            }
            column += 1;
            at = cell.end;
        }
        at += 1;
    }
}

/// The cell of a row that begins here, up to its comma or bracket.
fn cell(text: &str, start: usize) -> Option<Span> {
    let mut is_quoted = false;
    let near = rest(text, start).as_bytes().iter().take(MAX_ROW);
    for (length, b) in near.enumerate() {
        match b {
            b'\'' => is_quoted = !is_quoted,
            b',' | b')' if !is_quoted => return Some(Span::new(start, start + length)),
            _ => {}
        }
    }
    None
}

/// A cell without blanks, quotes, and what precedes these: `E'…'`.
fn unquoted(text: &str, cell: Span) -> Span {
    let content = cell.text(text);
    match (content.find('\''), content.rfind('\'')) {
        (Some(open), Some(close)) if open < close => {
            Span::new(cell.start + open + 1, cell.start + close)
        }
        _ => {
            let start = cell.end - content.trim_start().len();
            Span::new(start, start + content.trim().len())
        }
    }
}

/// `vault kv put secret/x a=…`, `fly secrets set A=…`, `heroku config:set A=…`.
fn assignments(word: Word<'_>, spans: &mut Vec<SecretSpan>) {
    const STORES: [&str; 7] = [
        "kv",
        "secret",
        "secrets",
        "config:",
        "env",
        "variable",
        "variables",
    ];
    let before = word.before().trim_end();
    let last = before.rsplit(' ').next().unwrap_or_default();
    if !STORES
        .iter()
        .any(|store| last == *store || *store == "config:" && last.ends_with(store))
    {
        return;
    }
    let end = near_line_end(word.text, word.end, MAX_LINE);
    // The same command once more has assignments of its own.
    let again = part(word.text, word.end, end).find(&format!("{last} {}", word.name()));
    let end = again.map_or(end, |offset| word.end + offset);
    let mut at = word.end;
    while let Some(equals) = part(word.text, at, end).find('=').map(|offset| at + offset) {
        let name = back(word.text, at, equals, |b| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/')
        });
        let value = equals + 1;
        at = value;
        if name == equals || byte(word.text, name) == b'-' || byte(word.text, value) == b'@' {
            continue;
        }
        if let Some(span) = secret_word(word.text, value) {
            at = span.end.max(at);
            spans.push(span);
        }
    }
}

/// `user default on >… ~* +@all`, `ACL SETUSER bob on >…`.
fn acl_rules(word: Word<'_>, spans: &mut Vec<SecretSpan>) {
    let end = near_line_end(word.text, word.end, MAX_LINE);
    let line = part(word.text, word.end, end);
    if !line.contains(" on") && !line.contains(" +@") && !line.contains(" off") {
        return;
    }
    for (at, sign) in line.match_indices(" >").chain(line.match_indices(" #")) {
        let start = word.end + at + sign.len();
        let value = part(
            word.text,
            start,
            skip_near(word.text, start, MAX_LINE, |b| {
                b.is_ascii_graphic() && !is_quote(b)
            }),
        );
        if value.len() >= 4 && (sign == " >" || value.len() == 64) {
            spans.push(SecretSpan::new(start, start + value.len()));
        }
    }
}

/// `"AUTH" "default" "…"`, as `MONITOR` prints it.
fn monitored(word: Word<'_>) -> Option<SecretSpan> {
    let start = word.end + usize::from(byte(word.text, word.end) == b'"');
    let line = part(word.text, start, near_line_end(word.text, start, MAX_LINE)).trim_end();
    let arguments = line
        .strip_suffix('"')
        .filter(|line| line.trim_start().starts_with('"'))?;
    let (before, _) = arguments.rsplit_once('"')?;
    Some(SecretSpan::new(
        start + before.len() + 1,
        start + arguments.len(),
    ))
}

/// The secret in the lines below its name, in netrc files and those of a VPN.
fn below(word: Word<'_>) -> Option<SecretSpan> {
    let end = skip_near(word.text, word.end, 8, is_blank);
    if !matches!(byte(word.text, end), b'\n' | b'\r') {
        return None;
    }
    let next = lone_line(word.text, end)?;
    if word.name() == "auth-user-pass" {
        return lone_line(word.text, next.end).map(SecretSpan::from);
    }
    let is_login = is_password(&word.name().to_ascii_lowercase()) && follows_login(word);
    is_login.then(|| next.into())
}

/// The single word in the line below this offset, which is the end of its line.
fn lone_line(text: &str, at: usize) -> Option<Span> {
    let end = near_line_end(text, at, MAX_LINE);
    if !matches!(byte(text, end), b'\r' | b'\n') || !part(text, at, end).trim().is_empty() {
        return None;
    }
    let next = skip_near(text, end, 3, |b| matches!(b, b'\r' | b'\n'));
    let start = skip_near(text, next, MAX_LINE, is_blank);
    let last = skip_near(text, start, MAX_LINE, |b| b.is_ascii_graphic());
    let is_lone = next > end
        && last > start
        && matches!(
            byte(text, skip_near(text, last, 8, is_blank)),
            0 | b'\r' | b'\n'
        );
    is_lone.then(|| Span::new(start, last))
}

/// `Content-Disposition: form-data; name="password"`, an empty line and the value.
fn form_field(word: Word<'_>) -> Option<SecretSpan> {
    let text = word.text;
    if byte(text, word.end) != b'"' || !word.before().ends_with("name=\"") {
        return None;
    }
    let start = skip_near(text, word.end + 1, 64, |b| b.is_ascii_whitespace());
    let is_separated = part(text, word.end + 1, start).matches('\n').count() == 2;
    let end = near_line_end(text, start, MAX_ROW);
    (is_separated && !is_harmless(part(text, start, end), Secrecy::Strong))
        .then(|| SecretSpan::new(start, end))
}

/// The output of a command that prints a secret: a single word in the line below it.
fn printed(word: Word<'_>, line: Span) -> Option<SecretSpan> {
    const PROMPTS: [&str; 5] = ["$ ", "# ", "% ", "> ", "PS "];
    const COMMANDS: [&str; 9] = [
        "get secret",
        "get-secret-value",
        "kv get",
        "versions access",
        "output -raw",
        "printenv ",
        "op read ",
        "pass show ",
        "echo $",
    ];
    let text = word.text;
    if line.end > line.start + MAX_LINE {
        return None;
    }
    let output = lone_line(text, line.end)?;
    let value = output.text(text);
    let is_likely = is_opaque(value, MIN_PRINTED)
        && !value.contains([':', '[', '<', '/'])
        && !is_name_or_uuid(value);
    let command = line.text(text).trim_start();
    let prints = PROMPTS.iter().any(|prompt| command.starts_with(prompt))
        || COMMANDS.iter().any(|known| command.contains(known));
    (is_likely && prints).then(|| output.into())
}
