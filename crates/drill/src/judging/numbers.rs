//! Finds numbers in a report that appear in no cited result.
//!
//! A number is supported if a source has it, also with another unit, as a percentage or rounded, or if it follows from
//! two supported numbers of the same line. Names with digits, dates, durations and counts below ten are not checked:
//! people and models calculate and count them. `docs/drills.md` has the rules.

use chrono::DateTime;

/// Smaller whole numbers are counts.
const SMALLEST_CHECKED: f64 = 10.0;
/// Two numbers of a source have to be at least so large for their difference to count: it hits no number by chance.
const SMALLEST_MINUEND: f64 = 1_000_000.0;
/// Two numbers that could be times are counters if they differ by more: a day of seconds.
const SMALLEST_COUNTER: f64 = 86_400.0;
/// Seconds since 1970 in a source: from 2001 to 2096.
const EPOCH_SECONDS: std::ops::Range<f64> = 1.0e9..4.0e9;
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

/// A number or a time of day in a line of a report.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    /// The quantity as the report has it.
    pub(super) text: String,
    kind: Quantity,
}

#[derive(Clone, Debug, PartialEq)]
enum Quantity {
    /// `HH:MM`, or `HH:MM:SS`.
    Time(String),
    Number(Number),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Number {
    value: f64,
    /// The size of one unit of the last digit.
    unit: f64,
    is_exact: bool,
    scale: Scale,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    One,
    Percent,
    /// A power of a thousand or of 1024; 1 is kilo.
    Power(i32),
}

/// The texts in which numbers are searched.
#[derive(Debug, Default)]
pub(super) struct SearchedTexts {
    texts: Vec<String>,
    /// The numbers of each text, as written.
    written: Vec<Vec<f64>>,
    /// All numbers, also with their units applied.
    all: Vec<f64>,
}

impl SearchedTexts {
    pub(super) fn new<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        let numbers: Vec<Vec<(f64, String)>> = texts.iter().map(|text| numbers_of(text)).collect();
        let all = numbers
            .iter()
            .flatten()
            .flat_map(|(value, unit): &(f64, String)| match scale(unit) {
                Some(Scale::Power(power)) => vec![
                    *value,
                    value * 1000_f64.powi(power),
                    value * 1024_f64.powi(power),
                ],
                Some(Scale::One | Scale::Percent) | None => vec![*value],
            })
            .collect();
        let written = numbers
            .into_iter()
            .map(|text| text.into_iter().map(|(value, _)| value).collect())
            .collect();
        Self {
            texts,
            written,
            all,
        }
    }

    /// The figures of a line that no source supports.
    pub(super) fn unsupported(&self, line: &str) -> Vec<Figure> {
        let (known, open): (Vec<_>, Vec<_>) = figures(line)
            .into_iter()
            .partition(|figure| self.has(figure));
        let numbers: Vec<f64> = known.iter().filter_map(Figure::value).collect();
        open.into_iter()
            .filter(|figure| !follows(figure, &numbers))
            .collect()
    }

    fn has(&self, figure: &Figure) -> bool {
        match &figure.kind {
            Quantity::Time(time) => {
                self.texts.iter().any(|text| text.contains(time.as_str())) || self.has_epoch(time)
            }
            Quantity::Number(number) => {
                self.all.iter().any(|source| number.matches(*source))
                    || self
                        .written
                        .iter()
                        .any(|numbers| number.is_difference(numbers))
            }
        }
    }

    /// Whether a source has the time as seconds since 1970.
    fn has_epoch(&self, time: &str) -> bool {
        let seconds = self
            .written
            .iter()
            .flatten()
            .filter(|number| EPOCH_SECONDS.contains(number));
        let mut shown = seconds.filter_map(|number| {
            // The range has no number that the cast would cut.
            #[expect(clippy::cast_possible_truncation, reason = "EPOCH_SECONDS fit")]
            let time = DateTime::from_timestamp(number.trunc() as i64, 0)?;
            Some(time.format("%H:%M:%S").to_string())
        });
        shown.any(|shown| shown.starts_with(time))
    }
}

impl Figure {
    fn value(&self) -> Option<f64> {
        match &self.kind {
            Quantity::Time(_) => None,
            Quantity::Number(number) => Some(number.value),
        }
    }
}

impl Number {
    /// Whether a number of a source is this one, in another unit or rounded.
    fn matches(self, source: f64) -> bool {
        let is_converted = match self.scale {
            Scale::One => false,
            Scale::Percent => source.abs() <= 1.0 && self.is_close(source * 100.0),
            Scale::Power(power) => [1000_f64, 1024_f64]
                .iter()
                .any(|thousand| self.is_close(source / thousand.powi(power))),
        };
        // Two whole numbers of the same unit are equal or not; any other number may be rounded.
        let is_whole = source.fract() == 0.0 && self.unit >= 1.0 && self.is_exact;
        is_converted
            || if is_whole {
                (self.value - source.abs()).abs() < 0.5
            } else {
                self.is_close(source)
            }
    }

    /// Whether the number is the source's with fewer digits.
    fn is_close(self, source: f64) -> bool {
        let allowed = if self.is_exact {
            self.unit * 1.001
        } else {
            (self.value * 0.05).max(self.unit)
        };
        (self.value - source.abs()).abs() < allowed
    }

    /// Whether the number is the difference of two large numbers of one source.
    fn is_difference(self, numbers: &[f64]) -> bool {
        let large: Vec<f64> = numbers
            .iter()
            .copied()
            .filter(|number| *number >= SMALLEST_MINUEND)
            .collect();
        large.iter().enumerate().any(|(at, first)| {
            large.iter().skip(at + 1).any(|second| {
                let difference = (first - second).abs();
                let is_time = EPOCH_SECONDS.contains(first) && difference < SMALLEST_COUNTER;
                difference > 0.0 && !is_time && self.matches(difference)
            })
        })
    }
}

/// Whether a figure is the sum, difference, product or quotient of two numbers.
fn follows(figure: &Figure, numbers: &[f64]) -> bool {
    let Quantity::Number(number) = &figure.kind else {
        return false;
    };
    numbers.iter().any(|a| {
        numbers.iter().any(|b| {
            let quotient = if *b == 0.0 { f64::NAN } else { a / b };
            [a + b, a - b, a * b, quotient]
                .into_iter()
                .any(|result| result != 0.0 && number.matches(result))
        })
    })
}

/// The figures of a line that are checked.
fn figures(line: &str) -> Vec<Figure> {
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
    Some(Figure {
        text: word.to_owned(),
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

fn scale(suffix: &str) -> Option<Scale> {
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
fn numbers_of(text: &str) -> Vec<(f64, String)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn open(line: &str, sources: &[&str]) -> Vec<String> {
        SearchedTexts::new(sources.iter().copied())
            .unsupported(line)
            .into_iter()
            .map(|figure| figure.text)
            .collect()
    }

    #[test]
    fn a_number_of_a_source_is_supported_in_every_spelling() {
        for (line, source) in [
            ("1,284.00 EUR too much", "drift 1284"),
            ("18 % of the requests", "0.1797"),
            ("31% fail", "\"0.3088\""),
            ("99.9 percent", "0.9994"),
            ("511Mi of 512Mi", "535822336 bytes, limit 536870912"),
            ("1.91 billion", "1912604118"),
            ("124 million ids", "1788140902 then 1912604118"),
            ("213 GB retained", "213 GB"),
            ("214G of 275G", "214G x\n275G y"),
            ("heap 480m", "-Xmx480m"),
            ("at 13:25", "[1795181100, \"0.3088\"]"),
            ("at 9:12 and 09:12:31", "2026-11-19T09:12:31Z"),
            ("about 400 connections", "397"),
            ("14 × 40 = 560", "6 -> 14 pods, DB_POOL_SIZE 40"),
            ("238 to 397 connections, 159 more", "238 397"),
            ("revision 43", "revision 43"),
        ] {
            assert_eq!(open(line, &[source]), Vec::<String>::new(), "{line}");
        }
    }

    #[test]
    fn a_number_that_no_source_has_is_found() {
        for (line, source, invented) in [
            ("83 connections", "238 connections", vec!["83"]),
            ("37 % of the requests", "0.1797", vec!["37"]),
            ("limit 640Mi, used 511Mi", "512Mi 511Mi", vec!["640Mi"]),
            ("at 13:40 [7]", "13:04 [1795181100]", vec!["13:40"]),
            ("revision 44 [42]", "revision 43, 42", vec!["44"]),
            ("**1,300.00** EUR", "1,284.00", vec!["1,300.00"]),
        ] {
            assert_eq!(open(line, &[source]), invented, "{line}");
        }
    }

    #[test]
    fn names_dates_durations_and_small_counts_are_not_checked() {
        let line = "pod checkout-7d9f8b6c5-x2x9p, 5.8.0, gateway-3, 5xx, 3 pods, 18 November, Nov 18, 2026-11-18, \
                    44.7 hours, 29 h, 40 min, 20 minutes, 500ms, `-Xmx640m` PAY-318-20 [12, 99]";
        assert_eq!(open(line, &[""]), Vec::<String>::new());
    }
}
