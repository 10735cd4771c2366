//! Values that are more than a word or a number.

use std::time::Duration;

use crate::drill::BUILTIN;

/// A duration such as `500ms`, `30s`, `2m`, `1h` or `90d`.
///
/// # Errors
/// When it is none, in words for the person who typed it.
pub fn duration(text: &str) -> Result<Duration, String> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(unit_at).unwrap_or((text, ""));
    let wrong = || format!("\"{text}\" is no duration such as 500ms, 30s, 2m, 1h or 90d");
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let millis = match unit {
        "ms" => Some(number),
        "s" => number.checked_mul(1000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        "d" => number.checked_mul(86_400_000),
        _ => None,
    };
    millis.map(Duration::from_millis).ok_or_else(wrong)
}

/// The name of a recorded incident.
pub(super) fn drill(text: &str) -> Result<String, String> {
    let names = BUILTIN.map(|drill| drill.name);
    if names.contains(&text) {
        return Ok(text.to_owned());
    }
    Err(format!("no drill \"{text}\"; there are: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        for (text, millis) in
            [("500ms", 500), ("30s", 30_000), ("2m", 120_000), ("1h", 3_600_000), ("90d", 7_776_000_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)));
        }
        for text in ["", "30", "s", "1w", "-1s", "1.5s", "18446744073709551615h"] {
            assert_eq!(duration(text), Err(format!("\"{text}\" is no duration such as 500ms, 30s, 2m, 1h or 90d")));
        }
    }
}
