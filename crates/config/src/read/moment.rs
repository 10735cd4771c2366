//! Moments as people write them: a date, a time, `yesterday`, or how long ago.

use std::ops::RangeInclusive;
use std::time::Duration;

use chrono::{DateTime, Datelike as _, Days, NaiveDate, NaiveDateTime, NaiveTime, Utc};

use super::units::parse_duration;
use tarsy_core::clock::Moment;

/// The accepted forms, for messages.
pub const ACCEPTED: &str = "3h, 7d, today, yesterday, 2026-11-27 or 2026-11-27T10:00Z";

/// The longest time ago: a hundred years.
const MAX_AGO: Duration = Duration::from_secs(36_500 * 86_400);
/// The years that are understood.
const YEARS: RangeInclusive<i32> = 1970..=9999;

/// The end of a period that a moment marks. A whole day begins a period with its first moment, and ends one with its
/// last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    Begin,
    End,
}

/// Reads a moment; days and times without an offset are those of UTC. `None` for a text that names no moment.
pub fn parse_moment(text: &str, edge: Edge, now: DateTime<Utc>) -> Option<Moment> {
    let word = text.trim().to_ascii_lowercase();
    let today = now.date_naive();
    let day = match word.as_str() {
        "now" => return Some(Moment::Ago(Duration::ZERO)),
        "today" => Some(today),
        "yesterday" => today.pred_opt(),
        _ => NaiveDate::parse_from_str(&word, "%Y-%m-%d").ok(),
    };
    if let Some(day) = day {
        let day = match edge {
            Edge::Begin => day,
            Edge::End => day.checked_add_days(Days::new(1))?,
        };
        let at = Moment::At(day.and_time(NaiveTime::MIN).and_utc());
        return YEARS.contains(&day.year()).then_some(at);
    }
    let ago = word
        .strip_suffix("ago")
        .map_or(word.as_str(), str::trim_end);
    if let Some(ago) = parse_duration(ago) {
        return (ago <= MAX_AGO).then_some(Moment::Ago(ago));
    }
    time(&word)
        .filter(|at| YEARS.contains(&at.year()))
        .map(Moment::At)
}

/// A date with a time: with seconds or without, with an offset or in UTC, with a `T` or a space between them.
fn time(word: &str) -> Option<DateTime<Utc>> {
    let word = if word.contains('t') {
        word.to_owned()
    } else {
        word.replacen(' ', "t", 1)
    };
    // A `+` that was not encoded in an address arrives as a space.
    let word = word.replace(' ', "+").replace('z', "+00:00");
    let with_offset = ["%Y-%m-%dt%H:%M%z", "%Y-%m-%dt%H:%M:%S%.f%z"];
    let in_utc = ["%Y-%m-%dt%H:%M", "%Y-%m-%dt%H:%M:%S%.f"];
    let zoned = with_offset
        .iter()
        .find_map(|form| DateTime::parse_from_str(&word, form).ok());
    if let Some(at) = zoned {
        return Some(at.to_utc());
    }
    let alone = in_utc
        .iter()
        .find_map(|form| NaiveDateTime::parse_from_str(&word, form).ok());
    alone.map(|at| at.and_utc())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).unwrap().to_utc()
    }

    fn now() -> DateTime<Utc> {
        at("2026-11-28T06:30:00Z")
    }

    #[test]
    fn a_moment_is_a_day_a_time_or_how_long_ago() {
        for (text, begin) in [
            ("2026-11-27", "2026-11-27T00:00:00Z"),
            ("yesterday", "2026-11-27T00:00:00Z"),
            (" Today ", "2026-11-28T00:00:00Z"),
            ("2026-11-27T10:00Z", "2026-11-27T10:00:00Z"),
            ("2026-11-27T10:00", "2026-11-27T10:00:00Z"),
            ("2026-11-27 10:00", "2026-11-27T10:00:00Z"),
            ("2026-11-27 10:00:30", "2026-11-27T10:00:30Z"),
            ("2026-11-27T10:00:30.5Z", "2026-11-27T10:00:30.5Z"),
            ("2026-11-27T10:00+01:00", "2026-11-27T09:00:00Z"),
            ("2026-11-27T10:00 01:00", "2026-11-27T09:00:00Z"),
            ("2026-11-27T10:00:00-0530", "2026-11-27T15:30:00Z"),
        ] {
            assert_eq!(
                parse_moment(text, Edge::Begin, now()),
                Some(Moment::At(at(begin))),
                "{text}"
            );
        }
        for (text, seconds) in [
            ("3h", 10_800),
            ("7d", 604_800),
            ("3h ago", 10_800),
            ("90S", 90),
            ("now", 0),
            ("0", 0),
        ] {
            let ago = Some(Moment::Ago(Duration::from_secs(seconds)));
            assert_eq!(parse_moment(text, Edge::Begin, now()), ago, "{text}");
            assert_eq!(parse_moment(text, Edge::End, now()), ago, "{text}");
        }
        for text in [
            "",
            "x",
            "2026-13-01",
            "2026-11-31",
            "27.11.2026",
            "2026-11-27T25:00",
            "1h30m",
            "-3h",
            "36501d",
        ] {
            assert_eq!(parse_moment(text, Edge::Begin, now()), None, "{text}");
        }
        for text in ["0001-01-01", "+99999-01-01", "-0044-03-15T10:00"] {
            assert_eq!(parse_moment(text, Edge::Begin, now()), None, "{text}");
        }
    }

    #[test]
    fn a_whole_day_is_in_the_period_that_ends_with_it() {
        let until = |text: &str| parse_moment(text, Edge::End, now());
        assert_eq!(
            until("2026-11-27"),
            Some(Moment::At(at("2026-11-28T00:00:00Z")))
        );
        assert_eq!(until("yesterday"), until("2026-11-27"));
        assert_eq!(
            until("2026-11-27T10:00Z"),
            Some(Moment::At(at("2026-11-27T10:00:00Z")))
        );
    }

    proptest! {
        #[test]
        fn any_text_is_a_moment_at_both_ends_or_at_none(text in "\\PC{0,40}") {
            let begin = parse_moment(&text, Edge::Begin, now());
            let end = parse_moment(&text, Edge::End, now());
            prop_assert_eq!(begin.is_some(), end.is_some());
        }

        #[test]
        fn every_written_moment_is_read_as_it_is(seconds in 0_i64..250_000_000_000) {
            let at = DateTime::from_timestamp(seconds, 0).unwrap();
            for form in ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S+00:00"] {
                prop_assert_eq!(parse_moment(&at.format(form).to_string(), Edge::End, now()), Some(Moment::At(at)));
            }
        }
    }
}
