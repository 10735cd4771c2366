//! The lines of a result and its records: lines that begin with a time, each with the lines below it.

use chrono::{DateTime, Utc};

use super::times::{LineTime, of_line};

/// A longer text is not divided into records: it is cut to a small part in any case.
const MAX_BYTES: usize = 4 << 20;

/// A record, up to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Of its first byte.
    pub(super) start: usize,
    /// Its first line, from 1.
    pub(super) line: u32,
    /// `None` for the lines before the first time.
    pub(super) time: Option<LineTime>,
}

/// The lines and times of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    pub(super) lines: u32,
    /// The first and last time of the lines; `None` when fewer than two lines have a time, or one has no time zone.
    pub(super) range: Option<Range>,
    /// Empty for a text that is too long.
    pub(super) records: Vec<Record>,
    /// Lines that have a time.
    pub(super) timed: u32,
}

/// The earliest and the latest of several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) from: DateTime<Utc>,
    pub(super) to: DateTime<Utc>,
}

impl Range {
    pub(super) fn with(range: Option<Self>, at: DateTime<Utc>) -> Self {
        range.map_or(Self { from: at, to: at }, |range| Self {
            from: range.from.min(at),
            to: range.to.max(at),
        })
    }
}

pub(super) fn scan(text: &str) -> Scan {
    let keeps_records = text.len() <= MAX_BYTES;
    let mut scan = Scan::default();
    let mut range = None;
    let mut all_have_zones = true;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        scan.lines = scan.lines.saturating_add(1);
        let time = of_line(line.trim_end_matches(['\n', '\r']));
        if let Some(time) = time {
            scan.timed = scan.timed.saturating_add(1);
            match time.stamp.at {
                Some(at) => range = Some(Range::with(range, at)),
                None => all_have_zones = false,
            }
        }
        if keeps_records && (time.is_some() || start == 0) {
            scan.records.push(Record {
                start,
                line: scan.lines,
                time,
            });
        }
        start += line.len();
    }
    if scan.timed >= 2 && all_have_zones {
        scan.range = range;
    }
    scan
}
