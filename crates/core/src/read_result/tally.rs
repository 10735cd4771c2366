//! Sums of the matches of a result: their count or their numbers, as a whole, by group, or by time.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::ops::ControlFlow;

use chrono::DateTime;

use super::WholeResult;
use super::finder::{Finder, Hit, each_hit};
use super::numbers::Numbers;
use super::request::{Period, Show, Split, Tally};
use super::search::{goes_on, split_lines};
use crate::readable::line_time::LineTime;
use crate::readable::text::beginning;

/// The groups that are shown.
const SHOWN_GROUPS: usize = 20;
/// Bytes of a group that are shown.
const MAX_GROUP_BYTES: usize = 160;
/// Bytes that the notes below the rows may take.
const NOTES_BYTES: usize = 500;
/// The lines above a match in which its time is looked for.
const MAX_LINES_ABOVE: usize = 200;

/// The matches of a result, added up.
///
/// # Errors
/// When it is to be divided by time and no match has one; the text says so.
pub(super) fn tally(source: &WholeResult<'_>, tally: &Tally) -> Result<String, String> {
    let mut sums = Sums::default();
    let unread = each_hit(source, &tally.finder, tally.lines, &mut |hit| {
        sums.add(source, &hit, tally);
        ControlFlow::Continue(())
    });
    if let (Split::Period(_), true, true) =
        (tally.split, sums.by_period.is_empty(), sums.matches > 0)
    {
        return Err(format!(
            "the lines of event {} that match have no time: per needs lines that begin with one, or have a key time, \
             ts or timestamp",
            source.event
        ));
    }
    let rows = match tally.split {
        Split::Whole if tally.show == Show::Count => String::new(),
        Split::Whole => format!(
            "| count {}, {}\n",
            sums.all.numbers.count(),
            sums.all.numbers.summed()
        ),
        Split::Group => sums.groups(tally.show),
        Split::Period(_) => sums.periods(tally.show),
    };
    let (shown, left_out) = fitting(&rows, source.max_bytes.saturating_sub(NOTES_BYTES));
    let mut notes = sums.notes(tally.show);
    if left_out > 0 {
        notes.push(format!(
            "{left_out} more rows do not fit: give a longer period, or from_line and lines"
        ));
    }
    notes.extend(unread.map(|line| goes_on(line, tally.lines)));
    let notes: String = notes.iter().map(|note| format!("[{note}]\n")).collect();
    let heading = source.heading(&sums.counted(source, &tally.finder));
    Ok(format!("{heading}{shown}{notes}").trim_end().to_owned())
}

/// The rows that fit, and the number of the others.
fn fitting(rows: &str, max_bytes: usize) -> (&str, usize) {
    let mut end = 0;
    let mut lines = rows.split_inclusive('\n');
    while let Some(line) = lines.next() {
        if end + line.len() > max_bytes {
            return (beginning(rows, end), lines.count() + 1);
        }
        end += line.len();
    }
    (rows, 0)
}

/// The sums of the matches that were seen.
#[derive(Default)]
struct Sums<'a> {
    matches: usize,
    /// The lines that have one.
    lines: usize,
    last_line: usize,
    all: Row<'a>,
    by_group: HashMap<&'a str, Row<'a>>,
    /// By the first second of the period.
    by_period: BTreeMap<i64, Row<'a>>,
    /// Matches before the first time.
    without_time: usize,
    without_zone: usize,
    /// The last time at or above a match.
    time: Option<LineTime>,
    /// The offset up to which times were looked for.
    timed_to: usize,
}

#[derive(Default)]
struct Row<'a> {
    matches: usize,
    numbers: Numbers<'a>,
}

impl<'a> Row<'a> {
    fn add(&mut self, hit: &Hit<'a>, tally: &Tally) {
        self.matches += 1;
        if tally.show == Show::Numbers {
            self.numbers.add(number_text(hit, &tally.finder));
        }
    }

    /// The count, and what the numbers come to.
    fn shown(&mut self, show: Show) -> String {
        match show {
            Show::Count => self.matches.to_string(),
            Show::Numbers => format!("{}, {}", self.numbers.count(), self.numbers.summed()),
        }
    }
}

/// The text in which the number of a match is looked for: its group, or what stands behind it.
fn number_text<'a>(hit: &Hit<'a>, finder: &Finder) -> &'a str {
    if finder.has_group() {
        hit.found.group.unwrap_or_default()
    } else {
        hit.line.get(hit.found.at.end..).unwrap_or_default()
    }
}

impl<'a> Sums<'a> {
    fn add(&mut self, source: &WholeResult<'a>, hit: &Hit<'a>, tally: &Tally) {
        self.matches += 1;
        if self.last_line != hit.number {
            self.last_line = hit.number;
            self.lines += 1;
        }
        match tally.split {
            Split::Whole => self.all.add(hit, tally),
            Split::Group => {
                let group = hit.found.group.unwrap_or_default();
                self.by_group.entry(group).or_default().add(hit, tally);
            }
            Split::Period(period) => {
                if let Some(begins) = self.period(source, hit, period) {
                    self.by_period.entry(begins).or_default().add(hit, tally);
                } else {
                    self.without_time += 1;
                }
            }
        }
    }

    /// The first second of the period of a match: that of its line, or of the last line above it that has a time.
    fn period(&mut self, source: &WholeResult<'a>, hit: &Hit<'a>, period: Period) -> Option<i64> {
        if self.timed_to <= hit.begins_at {
            let above = source.text.get(self.timed_to..hit.begins_at);
            self.timed_to = hit.begins_at + hit.line.len() + 1;
            let time = LineTime::parse(hit.line).or_else(|| {
                above?
                    .lines()
                    .rev()
                    .take(MAX_LINES_ABOVE)
                    .find_map(LineTime::parse)
            });
            self.time = time.or(self.time);
        }
        let time = self.time?;
        self.without_zone += usize::from(!time.has_zone);
        let seconds = time.at.and_utc().timestamp();
        Some(seconds - seconds.rem_euclid(period.seconds()))
    }

    /// The counted matches and lines, for the heading.
    fn counted(&self, source: &WholeResult<'_>, finder: &Finder) -> String {
        let total = source.text.lines().count();
        let lines = self.lines;
        match finder {
            Finder::Line => format!("{lines} of {total} lines"),
            Finder::Text { .. } | Finder::Pattern(_) => {
                let matches = self.matches;
                let noun = if matches == 1 { "match" } else { "matches" };
                let searched = finder.quoted();
                let split = split_lines(source, finder);
                format!("{matches} {noun} of {searched} in {lines} of {total} lines{split}")
            }
        }
    }

    /// The most frequent texts of the group.
    fn groups(&mut self, show: Show) -> String {
        let mut groups: Vec<(&str, &mut Row<'_>)> = self
            .by_group
            .iter_mut()
            .map(|(group, row)| (*group, row))
            .collect();
        groups.sort_unstable_by(|one, other| {
            other.1.matches.cmp(&one.1.matches).then(one.0.cmp(other.0))
        });
        let mut rows = String::new();
        for (group, row) in groups.into_iter().take(SHOWN_GROUPS) {
            let text = beginning(group, MAX_GROUP_BYTES);
            let dots = if text.len() < group.len() { "…" } else { "" };
            writeln!(rows, "{}| {text}{dots}", row.shown(show)).ok();
        }
        rows
    }

    fn periods(&mut self, show: Show) -> String {
        let zone = if self.without_zone == 0 { "Z" } else { "" };
        let mut rows = String::new();
        for (begins, row) in &mut self.by_period {
            let begins = DateTime::from_timestamp(*begins, 0).unwrap_or_default();
            let begins = begins.format("%Y-%m-%dT%H:%M");
            writeln!(rows, "{begins}{zone}| {}", row.shown(show)).ok();
        }
        rows
    }

    fn notes(&self, show: Show) -> Vec<String> {
        let mut notes = Vec::new();
        let others = self.by_group.len().saturating_sub(SHOWN_GROUPS);
        if others > 0 {
            notes.push(format!("{others} other texts of the group are rarer"));
        }
        if self.without_time > 0 {
            notes.push(format!("{} stand before the first time", self.without_time));
        }
        if self.by_period.len() > 1 {
            notes.push("a period without a match has no row".to_owned());
        }
        if self.without_zone > 0 {
            notes.push("the times of the lines name no zone".to_owned());
        }
        if show == Show::Numbers {
            let rows = self.by_group.values().chain(self.by_period.values());
            let numbers = rows.map(|row| &row.numbers).chain([&self.all.numbers]);
            notes.extend(Numbers::faults(numbers));
        }
        notes
    }
}
