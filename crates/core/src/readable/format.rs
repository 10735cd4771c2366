//! Formats times, durations, sizes and counts for people.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// Milliseconds from `begin` to `end`; 0 if `end` is earlier, as with two clocks.
pub fn millis(begin: DateTime<Utc>, end: DateTime<Utc>) -> u64 {
    whole((end - begin).num_milliseconds())
}

/// Time since the start in at most six columns: `+0.9`, `+12m05`, `+1h07m`.
pub fn since_start(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..600 => format!("+{seconds}.{}", ms % 1000 / 100),
        600..6000 => format!("+{}m{:02}", seconds / 60, seconds % 60),
        _ => format!("+{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// A duration in milliseconds, as [`span`] shows it.
pub fn took(ms: impl TryInto<u64>) -> String {
    span(Duration::from_millis(whole(ms)))
}

/// A duration, always with its unit: `162 ms`, `2.0 s`, `34 s`, `1 min 3 s`, `1 h 5 min`.
pub fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.subsec_millis()),
        1..10 => format!("{seconds}.{} s", duration.subsec_millis() / 100),
        10..60 => format!("{seconds} s"),
        60..3600 => two_units([(seconds / 60, "min"), (seconds % 60, "s")]),
        _ => two_units([(seconds / 3600, "h"), (seconds / 60 % 60, "min")]),
    }
}

/// The second unit is left out where it is 0.
fn two_units([(large, large_unit), (small, small_unit)]: [(u64, &str); 2]) -> String {
    let small = if small == 0 {
        String::new()
    } else {
        format!(" {small} {small_unit}")
    };
    format!("{large} {large_unit}{small}")
}

/// A size: `812 B`, `2.1 kB`, `1.4 MB`.
pub fn bytes(bytes: impl TryInto<u64>) -> String {
    let bytes = whole(bytes);
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{}.{} kB", bytes / 1000, bytes % 1000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// Tokens: `42`, `0.6 k`, `2 k`, `1.3 M`.
pub fn tokens(count: impl TryInto<u64>) -> String {
    let count = whole(count);
    match count {
        0..100 => count.to_string(),
        100..999_950 => with_tenth((count + 50) / 100, "k"),
        _ => with_tenth((count + 50_000) / 100_000, "M"),
    }
}

/// `1 call`, `2 calls`.
pub fn count(number: impl TryInto<u64>, thing: &str) -> String {
    let number = whole(number);
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// A stored number is signed, and a length is a `usize`; a negative number counts as 0.
fn whole(number: impl TryInto<u64>) -> u64 {
    number.try_into().unwrap_or_default()
}

fn with_tenth(tenths: u64, unit: &str) -> String {
    match tenths % 10 {
        0 => format!("{} {unit}", tenths / 10),
        tenth => format!("{}.{tenth} {unit}", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fit_their_columns() {
        for (ms, text) in [
            (0, "+0.0"),
            (950, "+0.9"),
            (599_999, "+599.9"),
            (725_000, "+12m05"),
            (4_020_000, "+67m00"),
            (6_120_000, "+1h42m"),
        ] {
            assert_eq!(since_start(ms), text);
        }
    }

    #[test]
    fn sizes_counts_and_durations_are_formatted_for_sentences() {
        for (n, text) in [(999, "999 B"), (2_148, "2.1 kB"), (1_400_000, "1.4 MB")] {
            assert_eq!(bytes(n), text);
        }
        for (n, text) in [
            (42, "42"),
            (612, "0.6 k"),
            (2_000, "2 k"),
            (4_101, "4.1 k"),
            (999_960, "1 M"),
            (1_260_000, "1.3 M"),
        ] {
            assert_eq!(tokens(n), text);
        }
        for (ms, text) in [
            (12, "12 ms"),
            (999, "999 ms"),
            (3_000, "3.0 s"),
            (30_000, "30 s"),
            (63_000, "1 min 3 s"),
            (120_000, "2 min"),
            (3_900_000, "1 h 5 min"),
            (7_200_000, "2 h"),
        ] {
            assert_eq!(span(Duration::from_millis(ms)), text);
            assert_eq!(took(ms), text);
        }
        assert_eq!(count(1, "call"), "1 call");
        assert_eq!(count(0, "call"), "0 calls");
    }
}
