//! Reads how long a provider asks to wait: `try again in 27.5s`, `retry in 8m2.3s`, `retry after 20 seconds`,
//! `"retryDelay": "12s"`.

use std::time::Duration;

use serde_json::Value;

/// The words before a delay, in small letters.
const ANCHORS: [&str; 13] = [
    "try again in",
    "try again after",
    "retry in",
    "retry after",
    "retry again in",
    "retrydelay",
    "retry-after",
    "retry_after",
    "retryafter",
    "please wait",
    "wait for",
    "available in",
    "resets in",
];
/// The words between an anchor and its number.
const FILLERS: [&str; 8] = [
    "about",
    "approximately",
    "another",
    "at",
    "least",
    "for",
    "seconds",
    "ms",
];
/// The fields that are a delay, as their small letters.
const FIELDS: [(&str, f64); 5] = [
    ("retrydelay", 1.0),
    ("retryafter", 1.0),
    ("retryafterseconds", 1.0),
    ("retryafterms", 0.001),
    ("estimatedtime", 1.0),
];
/// The greatest depth of a field.
const MAX_DEPTH: usize = 6;

/// The delay that a text asks for.
pub(crate) fn in_text(text: &str) -> Option<Duration> {
    let text = text.to_lowercase();
    ANCHORS.iter().find_map(|anchor| {
        let mut rest = text.as_str();
        while let Some((_, after)) = rest.split_once(anchor) {
            if let Some(delay) = after_anchor(after) {
                return Some(delay);
            }
            rest = after;
        }
        None
    })
}

/// The delay that a field of an error asks for.
pub(crate) fn in_value(value: &Value) -> Option<Duration> {
    search(value, MAX_DEPTH)
}

fn search(value: &Value, depth: usize) -> Option<Duration> {
    match value {
        Value::Object(map) => map.iter().find_map(|(name, value)| {
            let name = super::letters(name);
            let field = FIELDS.iter().find(|(field, _)| *field == name);
            field
                .and_then(|(_, scale)| of_field(value, *scale))
                .or_else(|| inner(value, depth))
        }),
        Value::Array(list) => list.iter().find_map(|value| inner(value, depth)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn inner(value: &Value, depth: usize) -> Option<Duration> {
    depth.checked_sub(1).and_then(|depth| search(value, depth))
}

fn of_field(value: &Value, scale: f64) -> Option<Duration> {
    let number = value
        .as_f64()
        .or_else(|| value.as_str()?.trim().parse().ok());
    match number {
        Some(number) => Duration::try_from_secs_f64(number * scale).ok(),
        None => after_anchor(&value.as_str()?.to_lowercase()),
    }
}

/// A duration at the beginning of a text: `2.500s`, `850ms`, `1h2m3.5s`, `20 seconds`, `1 minute and 5 seconds`.
fn after_anchor(text: &str) -> Option<Duration> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let end = rest
            .find(|letter: char| !letter.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at_checked(end)?;
        if word.is_empty() {
            break;
        }
        if !FILLERS.contains(&word) {
            return None;
        }
        rest = after;
    }
    let mut seconds: Option<f64> = None;
    while let Some((number, after)) = leading_number(rest) {
        let after = after.trim_start();
        let end = after
            .find(|letter: char| !letter.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at_checked(end)?;
        let Some(scale) = scale(unit) else {
            // A number without a unit is one of seconds, unless something came before it.
            seconds = seconds.or(Some(number));
            break;
        };
        seconds = Some(seconds.unwrap_or_default() + number * scale);
        rest = next
            .trim_start_matches([' ', ','])
            .trim_start_matches("and ");
    }
    Duration::try_from_secs_f64(seconds?).ok()
}

fn leading_number(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((digits.trim_end_matches('.').parse().ok()?, rest))
}

fn scale(unit: &str) -> Option<f64> {
    match unit {
        "ms" | "millisecond" | "milliseconds" | "msec" => Some(0.001),
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1.0),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(60.0),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some(3_600.0),
        "d" | "day" | "days" => Some(86_400.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_delay_is_read_in_every_form() {
        for (text, seconds) in [
            ("Please try again in 27.5s. Visit x", 27.5),
            ("please retry in 8m2.3s.", 482.3),
            ("Please try again in 1h2m3.5s", 3_723.5),
            ("Please retry in 850ms", 0.85),
            ("retry after 20 seconds.", 20.0),
            ("Please retry after 1 minute and 5 seconds", 65.0),
            ("Try again in about 3 minutes.", 180.0),
            ("\"retryDelay\": \"12s\"", 12.0),
            ("{\\\"retryDelay\\\":\\\"12.5s\\\"}", 12.5),
            ("Retry-After: 30", 30.0),
            ("Please wait 12 seconds and try again", 12.0),
            ("please try again in some minutes; retry after 7s", 7.0),
        ] {
            assert_eq!(
                in_text(text),
                Duration::try_from_secs_f64(seconds).ok(),
                "{text}"
            );
        }
        for text in [
            "",
            "try again later",
            "try again in some minutes",
            "retry in",
            "wait for it",
            "in 5s",
        ] {
            assert_eq!(in_text(text), None, "{text}");
        }
    }

    #[test]
    fn a_field_with_a_delay_counts_wherever_it_stands() {
        for (value, seconds) in [
            (
                json!({"error":{"details":[{"@type":"x"},{"retryDelay":"2.500s"}]}}),
                2.5,
            ),
            (json!([{"error":{"retry_after": 7}}]), 7.0),
            (json!({"retry_after_ms": 350}), 0.35),
            (
                json!({"error":{"metadata":{"headers":{"Retry-After":"9"}}}}),
                9.0,
            ),
        ] {
            assert_eq!(
                in_value(&value),
                Duration::try_from_secs_f64(seconds).ok(),
                "{value}"
            );
        }
        assert_eq!(
            in_value(&json!({"retryDelay": null, "retry_after": "soon"})),
            None
        );
    }

    #[test]
    fn a_delay_that_was_written_is_read_again() {
        for millis in (0..4_000_000_u64).step_by(7_919) {
            let minutes = millis / 60_000;
            let rest = millis % 60_000;
            let seconds = rest / 1_000;
            let part = rest % 1_000;
            let read = in_text(&format!(
                "limit reached, try again in {minutes}m{seconds}.{part:03}s, please"
            ));
            let read = read.map(|read| (read.as_secs_f64() * 1_000.0).round());
            assert_eq!(read, Some(f64::from(u32::try_from(millis).unwrap())));
        }
    }
}
