//! Parses and formats durations (`30s`, `2m`, `1h`, `90d`), sizes (`512KiB`) and numbers of tokens (`128k`).

use std::time::Duration;

const DURATIONS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];
const SIZES: [(&str, u64); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];
const TOKENS: [(&str, u64); 3] = [("M", 1_000_000), ("k", 1_000), ("", 1)];
/// The word that may follow a number of tokens.
const TOKENS_WORD: &str = "tokens";

/// Parses a whole number with a unit; `0` needs no unit.
pub fn parse_duration(text: &str) -> Option<Duration> {
    parse(text, &DURATIONS).map(Duration::from_millis)
}

/// Formats a duration in the largest unit that gives a whole number.
pub(crate) fn show_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    show(millis, &DURATIONS, "0s")
}

/// Parses a size: a whole number with a unit; a number without a unit counts bytes.
pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    parse(text, &SIZES).or_else(|| text.trim().parse().ok())
}

/// Formats a size in the largest unit that gives a whole number.
pub(crate) fn show_bytes(bytes: u64) -> String {
    show(bytes, &SIZES, "0B")
}

/// Parses a number of tokens: a whole number, of thousands with `k` or of millions with `M`.
pub(super) fn parse_tokens(text: &str) -> Option<u64> {
    let text = text.trim();
    parse(text.strip_suffix(TOKENS_WORD).unwrap_or(text), &TOKENS)
}

/// Formats a number of tokens in the largest unit that gives a whole number.
pub(crate) fn show_tokens(tokens: u64) -> String {
    show(tokens, &TOKENS, "0")
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    if text == "0" {
        return Some(0);
    }
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    number.checked_mul(*factor)
}

fn show(value: u64, units: &[(&str, u64)], zero: &str) -> String {
    let unit = units
        .iter()
        .find(|(_, factor)| value > 0 && value.is_multiple_of(*factor));
    unit.map_or_else(
        || zero.to_owned(),
        |(name, factor)| format!("{}{name}", value / factor),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_parse_as_they_are_shown() {
        for (text, millis) in [
            ("0s", 0),
            ("1ms", 1),
            ("90s", 90_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("90d", 7_776_000_000),
        ] {
            assert_eq!(
                parse_duration(text),
                Some(Duration::from_millis(millis)),
                "{text}"
            );
            assert_eq!(show_duration(Duration::from_millis(millis)), text);
        }
        assert_eq!(parse_duration("0"), Some(Duration::ZERO));
        assert_eq!(parse_duration("5 m"), Some(Duration::from_secs(300)));
        for text in [
            "",
            "30",
            "s",
            "-1s",
            "1.5h",
            "1h30m",
            "30 seconds",
            "99999999999999999h",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_parse_as_they_are_shown() {
        for (text, bytes) in [
            ("0B", 0),
            ("1023B", 1_023),
            ("512KiB", 524_288),
            ("8MiB", 8 << 20),
            ("3GiB", 3 << 30),
        ] {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
            assert_eq!(show_bytes(bytes), text);
        }
        assert_eq!(parse_bytes("4096"), Some(4_096));
        assert_eq!(parse_bytes("512KB"), None);
    }

    #[test]
    fn tokens_parse_as_they_are_shown() {
        for (text, tokens) in [
            ("0", 0),
            ("8192", 8_192),
            ("128k", 128_000),
            ("1M", 1_000_000),
        ] {
            assert_eq!(parse_tokens(text), Some(tokens), "{text}");
            assert_eq!(show_tokens(tokens), text);
        }
        assert_eq!(parse_tokens("128 k"), Some(128_000));
        for text in ["", "k", "128K", "1.5M", "128 thousand"] {
            assert_eq!(parse_tokens(text), None, "{text}");
        }
    }
}
