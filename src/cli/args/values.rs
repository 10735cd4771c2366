//! Parsers for structured argument values.

use std::path::Path;
use std::time::Duration;

use chrono::Utc;

pub(crate) use tarsy_config::read::moment::{ACCEPTED, Edge, parse_moment};
use tarsy_config::read::units::parse_duration;
use tarsy_core::clock::Moment;
use tarsy_drill::BUILTIN;

/// The longest duration of an argument: a hundred years.
const MAX_DURATION: Duration = Duration::from_secs(36_500 * 86_400);

/// A duration such as `500ms`, `30s`, `2m`, `1h` or `90d`.
///
/// # Errors
/// A message for the user when the text is not a duration.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text).filter(|duration| *duration <= MAX_DURATION);
    duration.ok_or_else(|| format!("invalid duration \"{text}\": use 500ms, 30s, 2m, 1h or 90d"))
}

/// The beginning of a period.
///
/// # Errors
/// A message for the user when the text is no moment.
pub(super) fn since(text: &str) -> Result<Moment, String> {
    moment(text, Edge::Begin)
}

/// The end of a period.
///
/// # Errors
/// A message for the user when the text is no moment.
pub(super) fn until(text: &str) -> Result<Moment, String> {
    moment(text, Edge::End)
}

fn moment(text: &str, edge: Edge) -> Result<Moment, String> {
    parse_moment(text, edge, Utc::now())
        .ok_or_else(|| format!("accepted: {ACCEPTED}; days and times are those of UTC"))
}

/// A value for a header: one line of text, not empty.
pub(super) fn header_value(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err("accepted: one line of text".to_owned());
    }
    Ok(text.to_owned())
}

/// The name of a built-in drill, or the path of a folder.
pub(super) fn drill(text: &str) -> Result<String, String> {
    let names = BUILTIN.map(|drill| drill.name);
    if names.contains(&text) || text.contains('/') || Path::new(text).is_dir() {
        return Ok(text.to_owned());
    }
    Err(format!(
        "no drill \"{text}\"; there are: {}, and folders such as ./incident",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        for (text, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("90d", 7_776_000_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)));
        }
        for text in [
            "",
            "30",
            "s",
            "1w",
            "-1s",
            "1.5s",
            "18446744073709551615h",
            "36501d",
        ] {
            assert_eq!(
                duration(text),
                Err(format!(
                    "invalid duration \"{text}\": use 500ms, 30s, 2m, 1h or 90d"
                ))
            );
        }
    }
}
