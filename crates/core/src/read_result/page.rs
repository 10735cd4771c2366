//! Pages of a result: lines with their numbers, or bytes.
//!
//! Every line has a prefix, so no line of a result begins a line of a page.

use std::fmt::Write as _;

use super::WholeResult;
use super::finder::Lines;
use crate::readable::text::beginning;

/// The smallest part of a line that is worth a page.
const MIN_PART_BYTES: usize = 40;

/// The lines of these numbers, as many as fit.
pub(super) fn lines(source: &WholeResult<'_>, lines: Lines) -> Result<String, String> {
    let Lines { from, count } = lines;
    let total = source.text.lines().count();
    if from > total {
        return Err(format!(
            "there is no line {from}: the result of event {} has {total} lines",
            source.event
        ));
    }
    let mut page = String::new();
    let mut next = from;
    let mut offset = 0;

    let mut note = None;
    for (number, line) in (1..).zip(source.text.split_inclusive('\n')) {
        let begins_at = offset;
        offset += line.len();
        if number < from {
            continue;
        }
        if number - from >= count {
            break;
        }
        let line = line.trim_end_matches(['\n', '\r']);
        let prefix = format!("{}| ", source.label(number));
        let room = source
            .max_bytes
            .saturating_sub(page.len() + prefix.len() + 1);
        if line.len() > room {
            // The rest of a line that is too long for any page is read by its bytes.
            if page.is_empty() {
                let part = beginning(line, room.max(MIN_PART_BYTES));
                writeln!(page, "{prefix}{part}").ok();
                let rest = begins_at + part.len();
                note = Some(format!(
                    "[line {number} has {} bytes; from_byte {rest} shows the rest of it, from_line {} the next line]",
                    line.len(),
                    number + 1
                ));
                next = number + 1;
            }
            break;
        }
        writeln!(page, "{prefix}{line}").ok();
        next = number + 1;
    }
    let shown = format!(
        "lines {from} to {} of {total}; {} bytes in total",
        next - 1,
        source.text.len()
    );
    let note = note
        .or_else(|| (next <= total).then(|| format!("[more: from_line {next}]")))
        .unwrap_or_else(|| "[this is the end of the result]".to_owned());
    Ok(format!("{}{page}{note}", source.heading(&shown)))
}

/// The bytes from offset `from` on, at most `count`, as many as fit. A character is not divided.
pub(super) fn bytes(source: &WholeResult<'_>, from: usize, count: usize) -> Result<String, String> {
    let total = source.text.len();
    if from >= total {
        return Err(format!(
            "there is no byte {from}: the result of event {} has {total} bytes",
            source.event
        ));
    }
    let from = source.text.floor_char_boundary(from);
    let rest = source.text.get(from..).unwrap_or_default();
    let mut page = String::new();
    let mut taken = 0;

    for line in beginning(rest, count.max(4)).split_inclusive('\n') {
        let room = source.max_bytes.saturating_sub(page.len() + 3);
        let least = if page.is_empty() { MIN_PART_BYTES } else { 0 };
        let part = beginning(line, room.max(least));
        if part.is_empty() {
            break;
        }
        writeln!(page, "| {}", part.trim_end_matches(['\n', '\r'])).ok();
        taken += part.len();
        if part.len() < line.len() {
            break;
        }
    }
    let next = from + taken;
    let note = if next < total {
        format!("[more: from_byte {next}]")
    } else {
        "[this is the end of the result]".to_owned()
    };
    Ok(format!(
        "{}{page}{note}",
        source.heading(&format!("bytes {from} to {next} of {total}"))
    ))
}
