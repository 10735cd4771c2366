//! The time of a change, in the forms that monitoring systems send.

use chrono::{DateTime, NaiveDateTime, Utc};

/// Forms beside RFC 3339, with an offset.
const WITH_OFFSET: [&str; 4] = [
    "%Y-%m-%dT%H:%M:%S%.f%z",
    "%Y-%m-%d %H:%M:%S%.f%z",
    "%Y-%m-%d %H:%M:%S%.f %z",
    "%a, %d %b %Y %H:%M:%S %z",
];
/// Forms without one: UTC.
const WITHOUT_OFFSET: [&str; 4] = [
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f UTC",
    "%Y.%m.%d %H:%M:%S",
];

/// Parses RFC 3339, its usual variants, and Unix times in seconds, milli-, micro- or nanoseconds; a time before 2000
/// or after 2200 is none.
pub fn parse(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    let time = unix(text)
        .or_else(|| {
            let mut forms = WITH_OFFSET.iter();
            let time = DateTime::parse_from_rfc3339(text).ok();
            time.or_else(|| forms.find_map(|form| DateTime::parse_from_str(text, form).ok()))
                .map(|time| time.to_utc())
        })
        .or_else(|| {
            let mut forms = WITHOUT_OFFSET.iter();
            forms
                .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
                .map(|time| time.and_utc())
        })?;
    let secs = time.timestamp();
    (946_684_800..7_258_118_400).contains(&secs).then_some(time)
}

/// The unit follows from the number of digits: times from 2001 to 2286 have ten in seconds.
fn unix(text: &str) -> Option<DateTime<Utc>> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if ![whole, fraction]
        .iter()
        .all(|part| part.chars().all(|c| c.is_ascii_digit()))
    {
        return None;
    }
    let number: i64 = whole.parse().ok()?;
    match whole.len() {
        9 | 10 => {
            let millis: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
            DateTime::from_timestamp_millis(number.checked_mul(1_000)?.checked_add(millis)?)
        }
        12 | 13 => DateTime::from_timestamp_millis(number),
        15 | 16 => DateTime::from_timestamp_micros(number),
        18 | 19 => Some(DateTime::from_timestamp_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_forms_of_a_time_are_understood() {
        for (text, expected) in [
            ("2026-11-25T10:00:00Z", Some("2026-11-25T10:00:00+00:00")),
            (
                "2026-11-25T10:00:00.123+02:00",
                Some("2026-11-25T08:00:00.123+00:00"),
            ),
            (
                "2026-11-25T10:00:00.000+0000",
                Some("2026-11-25T10:00:00+00:00"),
            ),
            ("2026-11-25 10:00:00", Some("2026-11-25T10:00:00+00:00")),
            ("2026-11-25 10:00:00 UTC", Some("2026-11-25T10:00:00+00:00")),
            ("2026.11.25 10:00:00", Some("2026-11-25T10:00:00+00:00")),
            ("1795600800", Some("2026-11-25T10:00:00+00:00")),
            ("1795600800.5", Some("2026-11-25T10:00:00.500+00:00")),
            ("1795600800123", Some("2026-11-25T10:00:00.123+00:00")),
            ("1795600800000000000", Some("2026-11-25T10:00:00+00:00")),
            ("0001-01-01T00:00:00Z", None),
            ("12", None),
            ("-1795600800", None),
            ("", None),
            ("soon", None),
        ] {
            assert_eq!(
                parse(text).map(|time| time.to_rfc3339()).as_deref(),
                expected,
                "{text}"
            );
        }
    }
}
