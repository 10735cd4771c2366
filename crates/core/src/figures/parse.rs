//! Reads the numbers and times of a line of a report, and every number of a source.

use super::{Figure, Number, Quantity, Scale};

/// Smaller whole numbers are counts.
const SMALLEST_CHECKED: f64 = 10.0;
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
/// Words after which a number is not exact.
const ABOUT: [&str; 14] = [
    "about",
    "around",
    "roughly",
    "approximately",
    "approx",
    "nearly",
    "almost",
    "some",
    "over",
    "under",
    "below",
    "above",
    "than",
    "circa",
];
const DURATIONS: [&str; 20] = [
    "s",
    "sec",
    "secs",
    "second",
    "seconds",
    "ms",
    "millisecond",
    "milliseconds",
    "min",
    "mins",
    "minute",
    "minutes",
    "h",
    "hour",
    "hours",
    "hr",
    "hrs",
    "d",
    "day",
    "days",
];

/// The figures of a line that are checked.
pub(super) fn figures(line: &str) -> Vec<Figure> {
    let line = without_brackets(line);
    let words: Vec<&str> = line
        .split(|c: char| c.is_whitespace() || "()\"'=→×;/–—|".contains(c))
        .map(trimmed)
        .filter(|word| !word.is_empty())
        .collect();
    let at = |at: usize| words.get(at).copied().unwrap_or_default();
    (0..words.len())
        .filter_map(|index| {
            let before = if index == 0 { "" } else { at(index - 1) };
            figure(at(index), before, at(index + 1))
        })
        .collect()
}

/// The whole numbers of a line that are too small to be checked; sources in brackets are none of them.
pub(super) fn small_numbers(line: &str) -> Vec<f64> {
    let line = without_brackets(line);
    let words = line.split(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','));
    words
        .map(trimmed)
        .filter(|word| word.len() == 1)
        .filter_map(|digit| digit.parse().ok())
        .collect()
}

fn trimmed(word: &str) -> &str {
    word.trim_matches([',', '.', ':', '!', '?', '*', '`', '"', '<', '>', '{', '}'])
}

/// The line without what stands in brackets: sources.
fn without_brackets(line: &str) -> String {
    let mut depth = 0_u32;
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '[' => depth += 1,
            ']' => {
                depth = depth.saturating_sub(1);
                out.push(' ');
            }
            other if depth == 0 => out.push(other),
            _ => {}
        }
    }
    out
}

fn figure(word: &str, before: &str, behind: &str) -> Option<Figure> {
    let is_month = |word: &str| {
        MONTHS
            .iter()
            .any(|month| word.to_lowercase().starts_with(month))
    };
    if let Some(time) = time(word) {
        return Some(Figure {
            text: word.to_owned(),
            kind: Quantity::Time(time),
        });
    }
    let approximate = word.starts_with(['~', '≈']);
    let bare = word.trim_start_matches(['~', '≈', '+', '-', '$', '€']);
    let (number, suffix) = split_number(bare);
    let (value, unit) = value(number)?;
    if is_month(before) || is_month(behind) {
        return None;
    }
    let is_own_suffix = !suffix.is_empty();
    let written_behind = behind;
    let behind = behind.to_lowercase();
    let suffix = if suffix.is_empty() {
        behind.as_str()
    } else {
        suffix
    };
    if DURATIONS.contains(&suffix.to_lowercase().as_str()) && !(is_own_suffix && suffix == "m") {
        return None;
    }
    let scale = match scale(suffix) {
        Some(scale) => scale,
        // A letter that is no unit makes the word a name: `5xx`, `12th`.
        None if is_own_suffix => return None,
        None => Scale::One,
    };
    if scale == Scale::One && unit >= 1.0 && value < SMALLEST_CHECKED {
        return None;
    }
    let is_exact = !approximate && !ABOUT.contains(&before.to_lowercase().as_str());
    let text = if is_own_suffix || scale == Scale::One {
        word.to_owned()
    } else {
        format!("{word} {written_behind}")
    };
    Some(Figure {
        text,
        kind: Quantity::Number(Number {
            value,
            unit,
            is_exact,
            scale,
        }),
    })
}

/// The digits and signs of a number at the beginning of a text, and the text after them.
fn split_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, ',' | '.' | '_'));
    text.split_at_checked(end.unwrap_or(text.len()))
        .unwrap_or_default()
}

/// The value, and one unit of its last digit; `None` for versions and addresses.
fn value(text: &str) -> Option<(f64, f64)> {
    let text = text.trim_end_matches([',', '.']);
    let plain: String = text.chars().filter(|c| !matches!(c, ',' | '_')).collect();
    if plain.is_empty() || plain.matches('.').count() > 1 {
        return None;
    }
    let decimals = plain
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len());
    Some((
        plain.parse().ok()?,
        0.1_f64.powi(i32::try_from(decimals).ok()?),
    ))
}

pub(super) fn scale(suffix: &str) -> Option<Scale> {
    let lower = suffix.to_lowercase();
    Some(match lower.as_str() {
        "" => Scale::One,
        "%" | "percent" => Scale::Percent,
        "k" | "ki" | "kb" | "kib" | "thousand" => Scale::Power(1),
        "m" | "mi" | "mb" | "mib" | "million" => Scale::Power(2),
        "g" | "gi" | "gb" | "gib" | "billion" | "bn" => Scale::Power(3),
        "t" | "ti" | "tb" | "tib" | "trillion" => Scale::Power(4),
        _ => return None,
    })
}

/// `9:05` becomes `09:05`; `None` for a text that is no time of day.
fn time(word: &str) -> Option<String> {
    let word = word.trim_start_matches(['~', '≈']).trim_end_matches('Z');
    let parts: Vec<&str> = word.split(':').collect();
    let (hour, rest) = parts.split_first()?;
    let hour: u32 = hour.parse().ok().filter(|hour| *hour < 24)?;
    let is_time = (1..=2).contains(&rest.len())
        && rest
            .iter()
            .all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()));
    is_time.then(|| format!("{hour:02}:{}", rest.join(":")))
}

/// Every number of a source, also inside of names, with the word after it.
pub(super) fn numbers_of(text: &str) -> Vec<(f64, String)> {
    let mut numbers = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (_, tail) = rest.split_at_checked(start).unwrap_or_default();
        let (number, behind) = split_number(tail);
        let unit: String = behind
            .trim_start_matches(' ')
            .chars()
            .take_while(|c| c.is_alphabetic())
            .collect();
        let parts = number
            .split(['.', ',', '_'])
            .filter_map(|part| part.parse().ok());
        let whole = value(number).map(|(value, _)| value);
        let values = whole.into_iter().chain(parts);
        numbers.extend(values.map(|value| (value, unit.clone())));
        rest = behind;
    }
    numbers
}
