//! Times in texts of tools: timestamps, and numbers that count since 1970.

use chrono::{DateTime, NaiveDate, NaiveDateTime, TimeDelta, Utc};

/// A timestamp within a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Its length in the text, in bytes.
    pub(super) length: usize,
    /// `None` for a time without a date or a time zone.
    pub(super) at: Option<DateTime<Utc>>,
}

/// A place in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineTime {
    /// Of the first byte of the time, within the line.
    pub(super) start: usize,
    pub(super) stamp: Stamp,
}

/// The names of the times of a record.
const NAMES: [&str; 6] = [
    "time",
    "ts",
    "timestamp",
    "@timestamp",
    "timestamps",
    "startTime",
];

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The bytes of a line in which a time with a name is searched.
const SEARCHED_BYTES: usize = 400;

/// Whether a value of this name is a time.
pub(super) fn is_time_name(name: &str) -> bool {
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The time with which a line begins, or which has a name there: a field of a JSON object, or a pair `ts=…`.
pub(super) fn of_line(line: &str) -> Option<LineTime> {
    let start = line
        .bytes()
        .take_while(|byte| matches!(byte, b'[' | b'(' | b'"'))
        .count();
    let begins = line.get(start..)?;
    if let Some(stamp) = stamp(begins) {
        return Some(LineTime { start, stamp });
    }
    let is_object = line.starts_with('{') && line.trim_end().ends_with('}');
    named(line, if is_object { &[":", ": "] } else { &["="] })
}

/// The first time with a name, behind one of `separators`.
fn named(line: &str, separators: &[&str]) -> Option<LineTime> {
    let searched = line.get(..line.floor_char_boundary(SEARCHED_BYTES))?;
    let is_object = separators.len() > 1;
    let mark = if is_object { "\":" } else { "=" };
    for (at, _) in searched.match_indices(mark) {
        let before = searched.get(..at)?;
        let name_start = before
            .rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '@'))
            .map_or(0, |found| found + 1);
        if !is_time_name(before.get(name_start..)?) {
            continue;
        }
        let behind = at + mark.len();
        let value = line.get(behind..)?;
        let skipped = value
            .bytes()
            .take_while(|byte| matches!(byte, b' ' | b'"'))
            .count();
        let value = value.get(skipped..)?;
        if let Some(stamp) = stamp(value).or_else(|| epoch_prefix(value)) {
            return Some(LineTime {
                start: behind + skipped,
                stamp,
            });
        }
    }
    None
}

fn epoch_prefix(text: &str) -> Option<Stamp> {
    let length = text
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b'.')
        .count();
    let at = epoch(text.get(..length)?)?;
    Some(Stamp {
        length,
        at: Some(at),
    })
}

/// The time of a number of seconds, milliseconds, microseconds or nanoseconds between the years 2001 and 2100.
pub(super) fn epoch(number: &str) -> Option<DateTime<Utc>> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let count: i64 = whole.parse().ok()?;
    let nanos_of_one = match whole.len() {
        10 => 1_000_000_000,
        13 => 1_000_000,
        16 => 1_000,
        19 => 1,
        _ => return None,
    };
    let per_second = 1_000_000_000 / nanos_of_one;
    let seconds = count / per_second;
    if seconds > 4_102_444_800 {
        return None;
    }
    let nanos = u32::try_from(count % per_second * nanos_of_one).ok()?;
    let fraction = if whole.len() == 10 {
        nanos_of_fraction(fraction)
    } else {
        0
    };
    DateTime::from_timestamp(seconds, nanos + fraction)
}

fn nanos_of_fraction(digits: &str) -> u32 {
    digits
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(9)
        .fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'))
}

/// The timestamp with which a text begins: that of ISO 8601 with a date and a time of day, of syslog or of klog.
pub(super) fn stamp(text: &str) -> Option<Stamp> {
    let mut cursor = Cursor {
        rest: text.as_bytes(),
    };
    let first = *cursor.rest.first()?;
    let at = if first.is_ascii_digit() {
        let local = cursor.date_and_time()?;
        cursor
            .zone()
            .and_then(|zone| local.checked_sub_signed(zone))
            .map(|at| at.and_utc())
    } else if matches!(first, b'I' | b'W' | b'E' | b'F')
        && text.as_bytes().get(1).is_some_and(u8::is_ascii_digit)
    {
        cursor.skip(1);
        cursor.number(4)?;
        cursor.eat(b" ")?;
        cursor.time_of_day()?;
        None
    } else {
        cursor.month()?;
        cursor.time_of_day()?;
        None
    };
    let length = text.len() - cursor.rest.len();
    Some(Stamp { length, at })
}

/// The rest of a text that is parsed.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl Cursor<'_> {
    fn skip(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
    }

    fn eat(&mut self, expected: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    fn eat_one(&mut self, accepted: &[u8]) -> Option<u8> {
        let first = *self.rest.first()?;
        if !accepted.contains(&first) {
            return None;
        }
        self.skip(1);
        Some(first)
    }

    /// A number of exactly so many digits.
    fn number(&mut self, digits: usize) -> Option<u32> {
        let text = std::str::from_utf8(self.rest.get(..digits)?).ok()?;
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        self.skip(digits);
        text.parse().ok()
    }

    fn date_and_time(&mut self) -> Option<NaiveDateTime> {
        let year = i32::try_from(self.number(4)?).ok()?;
        let separator = self.eat_one(b"-/")?;
        let month = self.number(2)?;
        self.eat(&[separator])?;
        let day = self.number(2)?;
        self.eat_one(b"T ")?;
        let date = NaiveDate::from_ymd_opt(year, month, day)?;
        let TimeOfDay {
            hour,
            minute,
            second,
            nanos,
        } = self.time_of_day()?;
        date.and_hms_nano_opt(hour, minute, second, nanos)
    }

    fn time_of_day(&mut self) -> Option<TimeOfDay> {
        let hour = self.number(2)?;
        self.eat(b":")?;
        let minute = self.number(2)?;
        self.eat(b":")?;
        let second = self.number(2)?;
        let digits_behind = self.rest.get(1).is_some_and(u8::is_ascii_digit);
        let mut nanos = 0;
        if digits_behind && self.eat_one(b".,").is_some() {
            let digits = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
            let fraction = std::str::from_utf8(self.rest.get(..digits)?).ok()?;
            nanos = nanos_of_fraction(fraction);
            self.skip(digits);
        }
        let is_end = !self.rest.first().is_some_and(u8::is_ascii_digit);
        (hour < 24 && minute < 60 && second <= 60 && is_end).then_some(TimeOfDay {
            hour,
            minute,
            second: second.min(59),
            nanos,
        })
    }

    fn month(&mut self) -> Option<()> {
        let name = std::str::from_utf8(self.rest.get(..3)?).ok()?;
        MONTHS.contains(&name).then_some(())?;
        self.skip(3);
        self.eat(b" ")?;
        if self.eat(b" ").is_some() {
            self.number(1)?;
        } else {
            self.number(2)?;
        }
        self.eat(b" ")
    }

    /// The offset of a time zone from UTC.
    fn zone(&mut self) -> Option<TimeDelta> {
        for utc in [&b"Z"[..], b" UTC", b" GMT"] {
            if self.eat(utc).is_some() {
                return Some(TimeDelta::zero());
            }
        }
        let mut ahead = Cursor { rest: self.rest };
        ahead.eat_one(b" ");
        let sign = ahead.eat_one(b"+-")?;
        let hours = ahead.number(2)?;
        ahead.eat(b":");
        let minutes = ahead.number(2)?;
        let is_end = !ahead.rest.first().is_some_and(u8::is_ascii_digit);
        if hours > 14 || minutes > 59 || !is_end {
            return None;
        }
        self.rest = ahead.rest;
        let offset = TimeDelta::minutes(i64::from(hours * 60 + minutes));
        Some(if sign == b'-' { -offset } else { offset })
    }
}

struct TimeOfDay {
    hour: u32,
    minute: u32,
    second: u32,
    nanos: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_at_the_beginning_of_lines_are_read_with_their_zones() {
        for (line, expected) in [
            (
                "2026-11-27T02:56:45Z INFO",
                Some((0, 20, Some("2026-11-27T02:56:45+00:00"))),
            ),
            (
                "2026-11-27 03:33:15 UTC:@:[391]",
                Some((0, 23, Some("2026-11-27T03:33:15+00:00"))),
            ),
            (
                "[2026-11-27T02:56:45.25+01:00] x",
                Some((1, 28, Some("2026-11-27T01:56:45.250+00:00"))),
            ),
            ("2026/11/27 02:56:45 [error]", Some((0, 19, None))),
            ("Nov  7 02:56:45 host sshd", Some((0, 15, None))),
            ("E1127 02:56:45.123456       1 x.go", Some((0, 21, None))),
            (
                r#"{"level":30,"time":1795738251195,"pid":1}"#,
                Some((19, 13, Some("2026-11-27T00:10:51.195+00:00"))),
            ),
            (
                "level=info ts=2026-11-27T02:56:45Z caller=x",
                Some((14, 20, Some("2026-11-27T02:56:45+00:00"))),
            ),
            ("time=12 x", None),
            ("2026-13-27T02:56:45Z", None),
            ("12 pods are ready", None),
            ("", None),
        ] {
            let found = of_line(line);
            let seen = found.map(|time| {
                (
                    time.start,
                    time.stamp.length,
                    time.stamp.at.map(|at| at.to_rfc3339()),
                )
            });
            let expected =
                expected.map(|(start, length, at)| (start, length, at.map(str::to_owned)));
            assert_eq!(seen, expected, "{line}");
        }
    }
}
