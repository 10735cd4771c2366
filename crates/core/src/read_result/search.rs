//! Finds a text or a pattern in a result, and shows each match with the lines around it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use super::WholeResult;
use super::finder::{Finder, Hit, Lines, PART_BYTES, Stop, Unread, each_hit};
use super::request::Search;
use crate::readable::text::beginning;

/// More matches are not counted.
const MAX_MATCHES: usize = 10_000;
/// The limit of a longer line only the surroundings of a match are shown, in bytes.
const MAX_LINE_BYTES: usize = 400;
/// Shown on each side of a match in a long line.
const AROUND_BYTES: usize = 160;

/// The matches from `from_match` on, as many as fit.
///
/// # Errors
/// When there is no such match.
pub(super) fn search(source: &WholeResult<'_>, search: &Search) -> Result<String, String> {
    let (found, unread) = matches(source, search);
    let total = found.len();
    let from = search.from_match;
    let searched = search.finder.quoted();

    if total == 0 {
        return Err(match unread {
            None => format!(
                "the result of event {} does not contain {searched}{}",
                source.event,
                split_lines(source, &search.finder)
            ),
            Some(line) => format!(
                "{searched} is not in the lines before {line}; {}",
                goes_on(line, search.lines)
            ),
        });
    }
    if from > total {
        return Err(format!(
            "there is no match {from}: {searched} occurs {total} times"
        ));
    }
    let mut page = String::new();
    let mut shown = BTreeSet::new();
    let mut last = from - 1;
    for found in found.iter().skip(from - 1) {
        let block = block(source, found, search, &mut shown);
        if !page.is_empty() && page.len() + block.len() > source.max_bytes {
            break;
        }
        page.push_str(&block);
        last += 1;
    }
    let page = beginning(&page, source.max_bytes.max(MAX_LINE_BYTES));
    let counted = if total == MAX_MATCHES || unread.is_some() {
        format!("at least {total}")
    } else {
        total.to_string()
    };
    let note = match unread {
        _ if last < total => format!("[more: from_match {}]", last + 1),
        Some(line) => format!("[{}]", goes_on(line, search.lines)),
        None => "[no more matches]".to_owned(),
    };
    Ok(format!(
        "{}{}\n{note}",
        source.heading(&format!("matches {from} to {last} of {counted}")),
        page.trim_end()
    ))
}

/// The words about a reading of these lines that stopped before `line` because its time was used up.
pub(super) fn goes_on(line: usize, lines: Lines) -> String {
    if line == lines.from {
        format!(
            "the time of a call is too short for line {line}: search for a text, or give a pointer into JSON"
        )
    } else {
        format!("the time of a call was used up there: from_line {line} goes on")
    }
}

/// The words about lines that a pattern met in parts only.
pub(super) fn split_lines(source: &WholeResult<'_>, finder: &Finder) -> String {
    let is_split = matches!(finder, Finder::Pattern(_))
        && source.text.len() > PART_BYTES
        && source.text.lines().any(|line| line.len() > PART_BYTES);
    if is_split {
        format!(
            " (a line of more than {PART_BYTES} bytes was matched in parts; pointer divides JSON into lines)"
        )
    } else {
        String::new()
    }
}

/// The matches. A short line counts once, however often it has the text.
fn matches<'a>(source: &WholeResult<'a>, search: &Search) -> (Vec<Hit<'a>>, Unread) {
    let mut found: Vec<Hit<'a>> = Vec::new();
    let unread = each_hit(source, &search.finder, search.lines, &mut |hit| {
        let is_shown = hit.line.len() <= MAX_LINE_BYTES
            && found.last().is_some_and(|last| last.number == hit.number);
        if !is_shown {
            found.push(hit);
        }
        if found.len() >= MAX_MATCHES {
            ControlFlow::Break(Stop::Enough)
        } else {
            ControlFlow::Continue(())
        }
    });
    (found, unread)
}

/// The lines of a match that are not shown yet.
fn block(
    source: &WholeResult<'_>,
    hit: &Hit<'_>,
    search: &Search,
    shown: &mut BTreeSet<usize>,
) -> String {
    let mut out = String::new();
    let mut put = |number: usize, sign: char, line: &str| {
        if shown.insert(number) {
            writeln!(out, "{}{sign} {}", source.label(number), shortened(line)).ok();
        }
    };
    let before = source.text.get(..hit.begins_at).unwrap_or_default();
    let above: Vec<&str> = before.lines().rev().take(search.context).collect();
    let first = hit.number - above.len();
    for (number, line) in (first..).zip(above.iter().rev()) {
        put(number, '|', line);
    }
    if hit.line.len() <= MAX_LINE_BYTES {
        put(hit.number, '>', hit.line);
    }
    let behind = source
        .text
        .get(hit.begins_at + hit.line.len()..)
        .unwrap_or_default();
    let mut below = String::new();
    // A later match begins its own block.
    for (number, line) in (hit.number + 1..).zip(
        behind
            .lines()
            .skip(1)
            .take(search.context)
            .take_while(|line| !search.finder.is_in(line)),
    ) {
        if shown.insert(number) {
            writeln!(below, "{}| {}", source.label(number), shortened(line)).ok();
        }
    }
    if hit.line.len() > MAX_LINE_BYTES {
        writeln!(out, "{}> {}", source.label(hit.number), excerpt(hit)).ok();
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
fn excerpt(hit: &Hit<'_>) -> String {
    let from = hit
        .line
        .floor_char_boundary(hit.found.at.start.saturating_sub(AROUND_BYTES));
    let end = hit.found.at.end.min(hit.found.at.start + MAX_LINE_BYTES);
    let to = hit.line.floor_char_boundary(end + AROUND_BYTES);
    let part = hit.line.get(from..to).unwrap_or_default();
    format!("(from_byte {}) …{part}…", hit.begins_at + from)
}
