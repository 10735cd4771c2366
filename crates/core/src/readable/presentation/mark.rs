//! The mark in the place of repetitions: their lines, their number, and the values in which they differ.

use chrono::{DateTime, Utc};

use super::facts::clock;
use super::runs::{Records, Run};
use super::times::{epoch, is_time_name, stamp};
use super::tokens::Value;
use crate::readable::text::beginning;

const MAX_DIFFERENCES: usize = 8;
const MAX_DIFFERENCES_BYTES: usize = 400;
/// Of a value or a name in a mark.
const MAX_TEXT_BYTES: usize = 40;

/// The kinds of differences, in the order of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    RecordTime,
    Number,
    Time,
    Name,
}

struct Difference {
    kind: Kind,
    text: String,
}

/// `[… lines 19 to 176: 158 more like the line above; differ: took 207.3 to 7184.7, median 3497.6 …]`.
pub(super) fn of_run(records: &Records<'_>, run: Run, note: &str) -> String {
    let first = records.line(run.start + run.period);
    let last = records.line(run.start + run.period * (run.repetitions - 1)) - 1;
    let lines_of_one = records.line(run.start + run.period) - records.line(run.start);
    let above = if lines_of_one == 1 {
        "the line above".to_owned()
    } else {
        format!("the {lines_of_one} lines above")
    };
    let lines = if first == last {
        format!("line {first}")
    } else {
        format!("lines {first} to {last}")
    };
    let more = run.repetitions - 2;
    let differ = differences(records, run);
    format!("[… {lines}: {more} more like {above}{differ}{note} …]")
}

fn differences(records: &Records<'_>, run: Run) -> String {
    let mut all: Vec<Difference> = Vec::new();
    for record in run.start..run.start + run.period {
        for (index, first) in records.values(record).iter().enumerate() {
            let hidden = (1..run.repetitions - 1).filter_map(|repetition| {
                records
                    .values(record + repetition * run.period)
                    .get(index)
                    .map(|value| records.value_text(*value))
            });
            let texts: Vec<&str> = hidden.collect();
            if let Some(difference) = difference(records, *first, &texts)
                && all.iter().all(|known| known.text != difference.text)
            {
                all.push(difference);
            }
        }
    }
    all.sort_by_key(|difference| difference.kind);
    let mut written = String::new();
    let mut count = 0;
    for difference in &all {
        let separator = if count == 0 { "; differ: " } else { "; " };
        let length = written.len() + separator.len() + difference.text.len();
        if count == MAX_DIFFERENCES || length > MAX_DIFFERENCES_BYTES {
            break;
        }
        written.push_str(separator);
        written.push_str(&difference.text);
        count += 1;
    }
    match all.len() - count {
        0 => written,
        1 => format!("{written}; 1 other value"),
        others => format!("{written}; {others} other values"),
    }
}

/// The difference of a value over the hidden repetitions; `None` when all are as in the first one.
fn difference(records: &Records<'_>, first: Value, texts: &[&str]) -> Option<Difference> {
    let shown = records.value_text(first);
    if texts.iter().all(|text| *text == shown) {
        return None;
    }
    let name = records
        .text
        .get(first.name_start..first.name_end)
        .unwrap_or_default();
    let label = if first.is_record_time {
        "time".to_owned()
    } else {
        clipped(name)
    };
    if let Some(range) = times(name, first, texts) {
        let kind = if first.is_record_time {
            Kind::RecordTime
        } else {
            Kind::Time
        };
        return Some(named(kind, &label, &range));
    }
    if first.is_record_time {
        let range = format!("{} to {}", texts.first()?, texts.last()?);
        return Some(named(Kind::RecordTime, &label, &range));
    }
    if let Some(range) = numbers(texts) {
        return Some(named(Kind::Number, &label, &range));
    }
    Some(named(Kind::Name, &label, &names(texts)))
}

fn named(kind: Kind, name: &str, range: &str) -> Difference {
    let text = if name.is_empty() {
        range.to_owned()
    } else {
        format!("{name} {range}")
    };
    Difference { kind, text }
}

/// The earliest and the latest time, if all values are times.
fn times(name: &str, first: Value, texts: &[&str]) -> Option<String> {
    let counts_seconds = first.is_record_time || is_time_name(name);
    let mut read: Vec<DateTime<Utc>> = Vec::with_capacity(texts.len());
    for text in texts {
        let whole = stamp(text)
            .filter(|stamp| stamp.length == text.len())
            .and_then(|stamp| stamp.at);
        let at = if counts_seconds {
            whole.or_else(|| epoch(text))
        } else {
            whole
        };
        read.push(at?);
    }
    let from = clock(*read.iter().min()?);
    let to = clock(*read.iter().max()?);
    Some(format!("{from} to {to}"))
}

/// Least, greatest and median, as they stand in the text; `None` if a value is no number.
fn numbers(texts: &[&str]) -> Option<String> {
    let read: Option<Vec<(f64, &str)>> = texts
        .iter()
        .map(|text| number(text).map(|number| (number, *text)))
        .collect();
    let mut read = read?;
    read.sort_by(|a, b| a.0.total_cmp(&b.0));
    let least = read.first()?.1;
    let greatest = read.last()?.1;
    let median = read.get((read.len() - 1) / 2)?.1;
    if least == greatest {
        return Some(least.to_owned());
    }
    Some(format!("{least} to {greatest}, median {median}"))
}

/// The number before a unit.
fn number(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_plain = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !is_plain || digits.len() > MAX_TEXT_BYTES {
        return None;
    }
    digits
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())
}

/// The first two different values, and how many more there are.
fn names(texts: &[&str]) -> String {
    let distinct: std::collections::BTreeSet<&str> = texts.iter().copied().collect();
    let mut shown: Vec<&str> = Vec::new();
    for text in texts {
        if shown.len() < 2 && !shown.contains(text) {
            shown.push(text);
        }
    }
    let listed = shown.iter().map(|text| clipped(text)).collect::<Vec<_>>();
    let listed = listed.join(", ");
    match distinct.len() - shown.len() {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

fn clipped(text: &str) -> String {
    let kept = beginning(text, MAX_TEXT_BYTES);
    if kept.len() < text.len() {
        format!("{kept}…")
    } else {
        kept.to_owned()
    }
}
