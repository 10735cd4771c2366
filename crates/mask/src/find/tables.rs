//! Secret columns of tables: Markdown, psql, CSV, cookie jars, lists of users.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use crate::bytes::{all, back, byte, part, skip_near};
use crate::names::{Secrecy, secrecy};
use crate::spans::SecretSpan;
use crate::values::is_harmless;

/// Further columns are ignored.
const MAX_COLUMNS: usize = 64;

/// The header line of a table with secret columns.
struct TableHeader {
    separator: char,
    cells: usize,
    secret: Vec<(usize, Secrecy)>,
}

/// Finds the cells of columns with a secret name, and the cells beside a secret name.
pub(crate) fn find(text: &str, spans: &mut Vec<SecretSpan>) {
    users(text, spans);
    // Without a branch for each byte, so that the compiler vectorises it.
    let has_cells = text.as_bytes().chunks(4_096).any(|bytes| {
        bytes.iter().fold(false, |any: bool, b: &u8| {
            any | matches!(b, b'|' | b',' | b'\t')
        })
    });
    if !has_cells {
        return;
    }
    let mut header: Option<TableHeader> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let line = line.trim_end();
        if is_rule(line) {
            continue;
        }
        let Some(separator) = ['|', ',', '\t']
            .into_iter()
            .find(|separator| line.contains(*separator))
        else {
            header = None;
            continue;
        };
        spans.extend((separator == '\t').then(|| cookie(start, line)).flatten());
        if let Some(header) = header
            .as_ref()
            .filter(|header| header.separator == separator)
            && column_cells(start, line, header, spans)
        {
            continue;
        }
        header = read_header(line, separator);
        if separator == '|' && header.is_some() {
            row(start, line, spans);
        }
    }
}

/// A line of a cookie jar: host, flag, path, flag, time, name and value.
fn cookie(start: usize, line: &str) -> Option<SecretSpan> {
    let fields: Vec<&str> = line.split('\t').take(8).collect();
    let [_, by_domain, _, by_tls, _, _, value] = fields.as_slice() else {
        return None;
    };
    let is_flag = |field: &str| matches!(field, "TRUE" | "FALSE");
    let is_secret = is_flag(by_domain) && is_flag(by_tls) && !is_harmless(value, Secrecy::Random);
    is_secret.then(|| SecretSpan::new(start + line.len() - value.len(), start + line.len()))
}

/// The separators between the user and the password.
static GAPS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| AhoCorasick::new(["\" \""]).ok());

/// Lines of `userlist.txt` of a pooler: `"user" "password"`, and no more after them.
fn users(text: &str, spans: &mut Vec<SecretSpan>) {
    let Some(gaps) = GAPS.as_ref() else { return };
    for gap in gaps.find_iter(text).map(|gap| gap.start()) {
        let user = back(text, gap.saturating_sub(128), gap, |b| {
            b.is_ascii_graphic() && b != b'"'
        });
        let value = gap + 3;
        let end = skip_near(text, value, 512, |b| b.is_ascii_graphic() && b != b'"');
        let is_user = user < gap && byte(text, user.wrapping_sub(1)) == b'"';
        let is_last = byte(text, end) == b'"' && matches!(byte(text, end + 1), 0 | b'\r' | b'\n');
        if is_user && is_last && !is_harmless(part(text, value, end), Secrecy::Random) {
            spans.push(SecretSpan::new(value, end));
        }
    }
}

/// `|---|:--:|` or `----+----`.
fn is_rule(line: &str) -> bool {
    line.len() > 2 && all(line, |b| b"-+|: =".contains(&b)) && line.contains("--")
}

fn read_header(line: &str, separator: char) -> Option<TableHeader> {
    if line.len() > 2_048 {
        return None;
    }
    let cells: Vec<&str> = line.split(separator).take(MAX_COLUMNS).map(clean).collect();
    let is_name = |cell: &&str| cell.len() < 48 && !cell.contains([' ', '=', ':', '"', '(', '{']);
    let named = separator == '|' || cells.iter().all(is_name);
    let names = cells.iter().enumerate().filter(|(_, cell)| is_name(cell));
    let columns = names.map(|(index, cell)| (index, secrecy(cell)));
    let secret: Vec<_> = columns
        .filter(|(_, named)| *named != Secrecy::None)
        .collect();
    (named && !secret.is_empty() && cells.len() > 1).then_some(TableHeader {
        separator,
        cells: cells.len(),
        secret,
    })
}

fn clean(cell: &str) -> &str {
    cell.trim().trim_matches(['*', '`', '"', '\'', '_'])
}

/// Finds the cells of the secret columns; returns whether the line is a row of this table.
fn column_cells(
    start: usize,
    line: &str,
    header: &TableHeader,
    spans: &mut Vec<SecretSpan>,
) -> bool {
    let cells = line.split(header.separator);
    if header.separator != '|' && cells.clone().count() != header.cells {
        return false;
    }
    let mut at = start;
    for (index, cell) in cells.enumerate() {
        if let Some((_, named)) = header.secret.iter().find(|(column, _)| *column == index) {
            spans.extend(cell_mark(at, cell, *named));
        }
        at += cell.len() + header.separator.len_utf8();
    }
    true
}

fn cell_mark(at: usize, cell: &str, named: Secrecy) -> Option<SecretSpan> {
    let value = clean(cell);
    let start = at + cell.find(value)?;
    (!is_harmless(value, named) && secrecy(value) == Secrecy::None)
        .then(|| SecretSpan::new(start, start + value.len()))
}

/// `| password | … |`.
fn row(start: usize, line: &str, spans: &mut Vec<SecretSpan>) {
    let mut at = start;
    let mut before = Secrecy::None;
    for cell in line.split('|') {
        if before != Secrecy::None {
            spans.extend(cell_mark(at, cell, before));
        }
        before = if clean(cell).contains(' ') {
            Secrecy::None
        } else {
            secrecy(clean(cell))
        };
        at += cell.len() + 1;
    }
}
