//! Finds a text in a result, and shows each match with the lines around it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::WholeResult;
use super::request::Search;
use crate::readable::text::beginning;

/// More matches are not counted.
const MAX_MATCHES: usize = 10_000;
/// The limit of a longer line only the surroundings of a match are shown, in bytes.
const MAX_LINE_BYTES: usize = 400;
/// Shown on each side of a match in a long line.
const AROUND_BYTES: usize = 160;

/// A match. A short line counts once, however often it has the text.
struct Match<'a> {
    /// Number of its line, from 1.
    number: usize,
    line: &'a str,
    /// Offset of the line.
    begins_at: usize,
    /// Offset of the match within the line.
    at: usize,
}

/// The matches from `from_match` on, as many as fit.
pub(super) fn search(source: &WholeResult<'_>, search: &Search) -> Result<String, String> {
    let found = matches(source.text, &search.text);
    let total = found.len();
    let from = search.from_match;

    if total == 0 {
        return Err(format!(
            "the result of event {} does not contain {:?}",
            source.event,
            beginning(&search.text, 100)
        ));
    }
    if from > total {
        return Err(format!(
            "there is no match {from}: {:?} occurs {total} times",
            beginning(&search.text, 100)
        ));
    }
    let mut page = String::new();
    let mut shown = BTreeSet::new();
    let mut last = from - 1;
    for found in found.iter().skip(from - 1) {
        let block = block(source.text, found, search, &mut shown);
        if !page.is_empty() && page.len() + block.len() > source.max_bytes {
            break;
        }
        page.push_str(&block);
        last += 1;
    }
    let page = beginning(&page, source.max_bytes.max(MAX_LINE_BYTES));
    let counted = if total == MAX_MATCHES {
        format!("at least {total}")
    } else {
        total.to_string()
    };
    let note = if last < total {
        format!("[more: from_match {}]", last + 1)
    } else {
        "[no more matches]".to_owned()
    };
    Ok(format!(
        "{}{}\n{note}",
        source.heading(&format!("matches {from} to {last} of {counted}")),
        page.trim_end()
    ))
}

fn matches<'a>(text: &'a str, searched: &str) -> Vec<Match<'a>> {
    let searched = searched.to_ascii_lowercase();
    let mut found = Vec::new();
    let mut begins_at = 0;

    for (number, whole) in (1..).zip(text.split_inclusive('\n')) {
        let line = whole.trim_end_matches(['\n', '\r']);
        // The lengths are the same, so the offsets are, too.
        let lower = line.to_ascii_lowercase();
        let per_line = if line.len() <= MAX_LINE_BYTES {
            1
        } else {
            usize::MAX
        };
        for (at, _) in lower
            .match_indices(&searched)
            .take(per_line.min(MAX_MATCHES - found.len()))
        {
            found.push(Match {
                number,
                line,
                begins_at,
                at,
            });
        }
        if found.len() >= MAX_MATCHES {
            break;
        }
        begins_at += whole.len();
    }
    found
}

/// The lines of a match that are not shown yet.
fn block(text: &str, found: &Match<'_>, search: &Search, shown: &mut BTreeSet<usize>) -> String {
    let mut out = String::new();
    let mut put = |number: usize, sign: char, line: &str| {
        if shown.insert(number) {
            writeln!(out, "{number}{sign} {}", shortened(line)).ok();
        }
    };
    let before = text.get(..found.begins_at).unwrap_or_default();
    let above: Vec<&str> = before.lines().rev().take(search.context).collect();
    let first = found.number - above.len();
    for (number, line) in (first..).zip(above.iter().rev()) {
        put(number, '|', line);
    }
    if found.line.len() <= MAX_LINE_BYTES {
        put(found.number, '>', found.line);
    }
    let behind = text
        .get(found.begins_at + found.line.len()..)
        .unwrap_or_default();
    let mut below = String::new();
    // A later match begins its own block.
    let searched = search.text.to_ascii_lowercase();
    for (number, line) in (found.number + 1..).zip(
        behind
            .lines()
            .skip(1)
            .take(search.context)
            .take_while(|line: &&str| !line.to_ascii_lowercase().contains(&searched)),
    ) {
        if shown.insert(number) {
            writeln!(below, "{number}| {}", shortened(line)).ok();
        }
    }
    if found.line.len() > MAX_LINE_BYTES {
        writeln!(
            out,
            "{}> {}",
            found.number,
            excerpt(found, search.text.len())
        )
        .ok();
    }
    out + &below
}

fn shortened(line: &str) -> String {
    if line.len() <= MAX_LINE_BYTES {
        return line.to_owned();
    }
    format!("{}… ({} bytes)", beginning(line, AROUND_BYTES), line.len())
}

/// The surroundings of a match, with the offset at which they begin in the result.
fn excerpt(found: &Match<'_>, length: usize) -> String {
    let from = found
        .line
        .floor_char_boundary(found.at.saturating_sub(AROUND_BYTES));
    let to = found
        .line
        .floor_char_boundary(found.at + length + AROUND_BYTES);
    let part = found.line.get(from..to).unwrap_or_default();
    format!("(from_byte {}) …{part}…", found.begins_at + from)
}
