//! Facts of a result beside its text: its length, the range of its times, and how its text differs from it.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

/// Facts of a result. They are a part of its entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Lines of the whole result; 0 if its heading states nothing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lines: u32,
    /// The first time in it; `None` also for times without a time zone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub from: Option<DateTime<Utc>>,
    /// The last time in it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub to: Option<DateTime<Utc>>,
    /// The difference between the text and the whole result.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shown: Vec<Shown>,
    /// The lines of the text that are words of tarsy, counted from 1 and ascending.
    #[serde(default, skip_serializing_if = "is_default")]
    pub own_lines: Vec<u32>,
}

/// A difference between the text of a result and the whole result.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Shown {
    /// The result is empty, and a line says so.
    Nothing,
    /// A mark stands in place of repeated lines.
    Folded,
    /// Parts of the JSON are tables.
    Table,
    /// The JSON has no white space.
    Compact,
    /// The middle is left out.
    Cut,
    /// A summary stands in place of the text.
    Summary,
}

crate::words!(pub Shown);

/// A result with fewer lines states no number of them, unless it has times.
const MIN_LINES: u32 = 20;

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Facts {
    pub fn has(&self, shown: Shown) -> bool {
        self.shown.contains(&shown)
    }

    /// The words of the differences; `None` when the text is the whole result.
    pub fn shown_words(&self) -> Option<Vec<&'static str>> {
        let words: Vec<_> = self.shown.iter().map(|shown| shown.as_str()).collect();
        (!words.is_empty()).then_some(words)
    }

    /// The end of the heading: ` · 1,081 lines · 00:33:10Z to 03:28:59Z`. The times have their dates, unless all of
    /// them are of `day`.
    pub fn in_heading(&self, day: Option<NaiveDate>) -> String {
        let mut heading = String::new();
        let has_range = self.from.is_some() && self.to.is_some();
        if self.lines >= MIN_LINES || (has_range && self.lines > 1) {
            heading = format!(" · {} lines", with_commas(self.lines));
        }
        if let (Some(from), Some(to)) = (self.from, self.to) {
            let first_day = from.date_naive();
            let last_day = to.date_naive();
            let begin = if day == Some(first_day) && first_day == last_day {
                clock(from)
            } else {
                dated(from)
            };
            let end = if first_day == last_day {
                clock(to)
            } else {
                dated(to)
            };
            heading.push_str(&format!(" · {begin} to {end}"));
        }
        heading
    }

    /// The facts of a text whose middle is left out.
    #[must_use]
    pub(super) fn cut(mut self, own_lines: Vec<u32>) -> Self {
        self.own_lines = own_lines;
        self.shown.push(Shown::Cut);
        self
    }

    /// The facts when a text with one line of tarsy at its beginning replaces that of the result.
    #[must_use]
    pub fn summarised(mut self) -> Self {
        self.own_lines = vec![1];
        self.shown.push(Shown::Summary);
        self
    }
}

pub(super) fn clock(at: DateTime<Utc>) -> String {
    at.format("%H:%M:%SZ").to_string()
}

fn dated(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

fn with_commas(number: u32) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_states_lines_and_times_as_far_as_they_are_known() {
        let at = |text: &str| Some(text.parse::<DateTime<Utc>>().unwrap());
        let facts = |lines, from, to| Facts {
            lines,
            from,
            to,
            ..Facts::default()
        };
        let from = at("2026-11-27T00:33:10Z");
        let to = at("2026-11-27T03:28:59.9Z");
        let day = from.map(|from| from.date_naive());
        let heading = |facts: Facts| facts.in_heading(day);
        assert_eq!(
            heading(facts(1_081, from, to)),
            " · 1,081 lines · 00:33:10Z to 03:28:59Z"
        );
        assert_eq!(heading(facts(1, from, to)), " · 00:33:10Z to 03:28:59Z");
        assert_eq!(heading(facts(19, None, None)), "");
        assert_eq!(heading(facts(20, None, None)), " · 20 lines");
        assert_eq!(
            heading(facts(9, at("2026-11-26T23:00:00Z"), to)),
            " · 9 lines · 2026-11-26 23:00:00Z to 2026-11-27 03:28:59Z"
        );
        assert_eq!(
            facts(9, from, to).in_heading(None),
            " · 9 lines · 2026-11-27 00:33:10Z to 03:28:59Z"
        );
    }
}
