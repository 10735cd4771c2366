//! The time with which a line of a log begins.

use std::sync::LazyLock;

use chrono::{DateTime, Duration, NaiveDate, NaiveDateTime, Utc};
use regex::{Captures, Regex};

/// The bytes at the beginning of a line in which its time is looked for.
const MAX_BYTES: usize = 1024;

/// A date and a time, a time since 1970, or a key of a log line that has one of both.
static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?x)
        ^(?: [\s\[(\#"]* | (?: .*? ["\s,{] )? @?(?:time|ts|timestamp)"? \s*[:=]\s* "? )
        (?: (?P<year>\d{4}) [-/] (?P<month>\d\d) [-/] (?P<day>\d\d) [T\x20]
            (?P<hour>\d\d) : (?P<minute>\d\d) (?: : (?P<second>\d\d) (?: [.,] (?P<fraction>\d{1,9}) )? )?
            \x20? (?P<zone> Z\b | UTC\b | GMT\b | [+-]\d\d:?\d\d )?
          | (?P<seconds>1\d{9}) (?: [.] \d{1,9} )? (?: [^0-9.] | $ )
          | (?P<millis>1\d{12}) (?: [^0-9.] | $ ) )"#,
    )
    .ok()
});

/// A time with or without its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineTime {
    /// In UTC if the line names its zone, else in the zone of whatever wrote the line.
    pub at: NaiveDateTime,
    /// Whether the line says which zone it is in.
    pub has_zone: bool,
}

impl LineTime {
    /// The time with which a line begins, or that stands behind a key `time`, `ts` or `timestamp` near its beginning:
    /// RFC 3339 and its relatives, seconds or milliseconds since 1970.
    pub fn parse(line: &str) -> Option<Self> {
        let beginning = super::text::beginning(line, MAX_BYTES);
        let parts = TIME.as_ref()?.captures(beginning)?;
        let since_1970 = |name: &str| parts.name(name)?.as_str().parse::<i64>().ok();
        let instant = match (since_1970("seconds"), since_1970("millis")) {
            (Some(seconds), _) => DateTime::<Utc>::from_timestamp(seconds, 0),
            (None, Some(millis)) => DateTime::<Utc>::from_timestamp_millis(millis),
            (None, None) => return written(&parts),
        };
        Some(Self {
            at: instant?.naive_utc(),
            has_zone: true,
        })
    }
}

/// A time that is written as date and clock time.
fn written(parts: &Captures<'_>) -> Option<LineTime> {
    let number = |name: &str| parts.name(name)?.as_str().parse::<u32>().ok();
    let local = NaiveDate::from_ymd_opt(
        i32::try_from(number("year")?).ok()?,
        number("month")?,
        number("day")?,
    )?
    .and_hms_opt(
        number("hour")?,
        number("minute")?,
        number("second").unwrap_or(0).min(59),
    )?;
    let zone = parts.name("zone").map(|zone| zone.as_str());
    let offset = zone.map_or(Some(Duration::zero()), offset)?;
    Some(LineTime {
        at: local.checked_sub_signed(offset)?,
        has_zone: zone.is_some(),
    })
}

/// The offset of a zone from UTC.
fn offset(zone: &str) -> Option<Duration> {
    let (sign, clock) = match zone.split_at_checked(1)? {
        ("-", clock) => (-1, clock),
        ("+", clock) => (1, clock),
        _ => return Some(Duration::zero()),
    };
    let clock = clock.replace(':', "");
    let (hours, minutes) = clock.split_at_checked(2)?;
    let minutes = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
    Some(Duration::minutes(sign * minutes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<(String, bool)> {
        LineTime::parse(line).map(|time| (time.at.to_string(), time.has_zone))
    }

    #[test]
    fn the_time_of_a_line_is_read_in_the_forms_of_logs() {
        let without = |time: &str| Some((time.to_owned(), false));
        let noon = "2026-11-27 12:00:05";
        for line in [
            "2026-11-27T12:00:05Z started",
            "2026-11-27 12:00:05.123 UTC started",
            "[2026-11-27T14:00:05+02:00] started",
            "2026-11-27T06:30:05.5-0530 started",
            r#"{"level":"info","ts":"2026-11-27T12:00:05.001Z","msg":"x"}"#,
            r#"{"time": 1795780805, "msg": "x"}"#,
            r#"{"timestamp":1795780805123,"msg":"x"}"#,
            "1795780805.123 x",
            r#"time="2026-11-27T12:00:05Z" level=error"#,
            "level=error ts=2026-11-27T12:00:05Z",
        ] {
            let at = parsed(line).unwrap_or_else(|| panic!("{line}"));
            assert!(at.0.starts_with(noon) && at.1, "{line}: {at:?}");
        }
        assert_eq!(parsed("2026/11/27 12:00 x"), without("2026-11-27 12:00:00"));
        assert_eq!(parsed("2026-11-27 12:00:05,123 x"), without(noon));
        assert_eq!(
            parsed("2026-11-27T12:00Z"),
            Some(("2026-11-27 12:00:00".to_owned(), true))
        );
        for line in [
            "",
            "started",
            "2026-13-01 12:00:00 x",
            "17957808051 x",
            "pod-1795780805-x",
            "12:00:05 x",
        ] {
            assert_eq!(parsed(line), None, "{line}");
        }
    }
}
