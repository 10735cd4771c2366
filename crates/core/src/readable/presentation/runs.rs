//! The records of a text that repeat each other: one to four records, at least four times in a row.

use std::collections::{BTreeMap, BTreeSet};

use super::records::{Record, Scan};
use super::tokens::{self, Value};

const MAX_PERIOD: usize = 4;
const MIN_REPETITIONS: usize = 4;

/// A value with at most so many texts is a word, if it has each of them twice on average.
const FEW_TEXTS: usize = 4;
/// The same for the codes of HTTP and its relatives, 100 to 599.
const FEW_CODES: usize = 16;

/// The records of a text with the values of each.
pub(super) struct Records<'a> {
    pub(super) text: &'a str,
    records: &'a [Record],
    values: Vec<Value>,
    /// The end of the values of each record, within `values`.
    ends: Vec<usize>,
    lines: u32,
}

impl<'a> Records<'a> {
    pub(super) fn new(text: &'a str, scan: &'a Scan) -> Self {
        Self {
            text,
            records: &scan.records,
            values: Vec::new(),
            ends: Vec::new(),
            lines: scan.lines,
        }
    }

    /// The values of a record, in their order.
    pub(super) fn values(&self, record: usize) -> &[Value] {
        let start = record
            .checked_sub(1)
            .and_then(|before| self.ends.get(before))
            .copied()
            .unwrap_or(0);
        let end = self.ends.get(record).copied().unwrap_or(start);
        self.values.get(start..end).unwrap_or_default()
    }

    pub(super) fn value_text(&self, value: Value) -> &'a str {
        self.text.get(value.start..value.end).unwrap_or_default()
    }

    /// The first line of a record, or the one behind the last.
    pub(super) fn line(&self, record: usize) -> u32 {
        self.records
            .get(record)
            .map_or(self.lines + 1, |record| record.line)
    }

    fn start(&self, record: usize) -> usize {
        self.records
            .get(record)
            .map_or(self.text.len(), |record| record.start)
    }

    /// The text of these records, without the end of its last line.
    pub(super) fn between(&self, from: usize, to: usize) -> &'a str {
        let text = self
            .text
            .get(self.start(from)..self.start(to))
            .unwrap_or_default();
        let text = text.strip_suffix('\n').unwrap_or(text);
        text.strip_suffix('\r').unwrap_or(text)
    }
}

/// Repetitions in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The first record.
    pub(super) start: usize,
    /// Records of one repetition.
    pub(super) period: usize,
    pub(super) repetitions: usize,
}

/// The number of the pattern of each record; `None` for the lines before the first time. Equal numbers: repetitions.
fn patterns(records: &mut Records<'_>) -> Vec<Option<usize>> {
    let mut skeletons: BTreeMap<String, usize> = BTreeMap::new();
    let mut skeleton_of = Vec::with_capacity(records.records.len());
    let mut counts: Vec<usize> = Vec::new();
    for (index, record) in records.records.iter().enumerate() {
        let end = records.start(index + 1);
        let range = record.start..end;
        let mut skeleton = tokens::read(records.text, range, record.time, &mut records.values);
        // The last line of a text may have no end.
        let trimmed = skeleton.trim_end_matches(['\n', '\r']).len();
        skeleton.truncate(trimmed);
        records.ends.push(records.values.len());
        let new = skeletons.len();
        let number = *skeletons.entry(skeleton).or_insert(new);
        if number == counts.len() {
            counts.push(0);
        }
        if let Some(count) = counts.get_mut(number) {
            *count += 1;
        }
        skeleton_of.push(number);
    }
    let words = words(records, &skeleton_of, &counts);
    let mut known: BTreeMap<(usize, Vec<&str>), usize> = BTreeMap::new();
    let mut patterns = Vec::with_capacity(skeleton_of.len());
    for (index, skeleton) in skeleton_of.iter().enumerate() {
        if records
            .records
            .get(index)
            .is_some_and(|record| record.time.is_none())
        {
            patterns.push(None);
            continue;
        }
        let are_words = words.get(*skeleton).map(Vec::as_slice).unwrap_or_default();
        let texts = records
            .values(index)
            .iter()
            .zip(are_words)
            .filter(|(_, is_word)| **is_word)
            .map(|(value, _)| records.value_text(*value))
            .collect();
        let new = known.len();
        patterns.push(Some(*known.entry((*skeleton, texts)).or_insert(new)));
    }
    patterns
}

/// Per skeleton and value: whether the value has so few texts that it is a word.
fn words(records: &Records<'_>, skeleton_of: &[usize], counts: &[usize]) -> Vec<Vec<bool>> {
    let mut texts: Vec<Vec<BTreeSet<&str>>> = vec![Vec::new(); counts.len()];
    for (index, skeleton) in skeleton_of.iter().enumerate() {
        let Some(columns) = texts.get_mut(*skeleton) else {
            continue;
        };
        let values = records.values(index);
        columns.resize(values.len().max(columns.len()), BTreeSet::new());
        for (value, column) in values.iter().zip(columns) {
            if column.len() <= FEW_CODES && !value.is_record_time {
                column.insert(records.value_text(*value));
            }
        }
    }
    texts
        .iter()
        .zip(counts)
        .map(|(columns, count)| {
            columns
                .iter()
                .map(|column| is_word(column, *count))
                .collect()
        })
        .collect()
}

fn is_word(texts: &BTreeSet<&str>, records: usize) -> bool {
    let most = if texts.iter().all(|text| is_code(text)) {
        FEW_CODES
    } else {
        FEW_TEXTS
    };
    !texts.is_empty() && texts.len() <= most && texts.len() * 2 <= records
}

fn is_code(text: &str) -> bool {
    text.len() == 3
        && text.starts_with(['1', '2', '3', '4', '5'])
        && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The repetitions, from the first record to the last. They do not overlap.
pub(super) fn runs(records: &mut Records<'_>) -> Vec<Run> {
    let patterns = patterns(records);
    of_patterns(&patterns)
}

fn of_patterns(patterns: &[Option<usize>]) -> Vec<Run> {
    // For each period and record: how many records from here on equal the one that is a period behind them.
    let equal: Vec<Vec<usize>> = (1..=MAX_PERIOD)
        .map(|period| {
            let mut lengths = vec![0; patterns.len()];
            let mut length = 0;
            for index in (0..patterns.len().saturating_sub(period)).rev() {
                let here = patterns.get(index).copied().flatten();
                let there = patterns.get(index + period).copied().flatten();
                length = if here.is_some() && here == there {
                    length + 1
                } else {
                    0
                };
                if let Some(slot) = lengths.get_mut(index) {
                    *slot = length;
                }
            }
            lengths
        })
        .collect();
    let mut runs = Vec::new();
    let mut at = 0;
    while at < patterns.len() {
        let mut best: Option<Run> = None;
        for (period, lengths) in (1..).zip(&equal) {
            let length = lengths.get(at).copied().unwrap_or(0);
            let run = Run {
                start: at,
                period,
                repetitions: length / period + 1,
            };
            let covers_more = best.is_none_or(|best| run.records() > best.records());
            if run.repetitions >= MIN_REPETITIONS && covers_more {
                best = Some(run);
            }
        }
        at = best.map_or(at + 1, |run| run.start + run.records());
        runs.extend(best);
    }
    runs
}

impl Run {
    pub(super) fn records(self) -> usize {
        self.period * self.repetitions
    }
}
