//! Finds numbers in a report that appear in no cited result.
//!
//! A number is supported if a source has it, also with another unit, as a percentage or rounded; if it follows from
//! two numbers of the same line; or if it counts the lines of a source that have a word of its line. Names with digits,
//! dates, durations and counts below ten are not checked: people and models calculate and count them. In doubt a number
//! is supported. `docs/investigations.md` has the rules.

mod parse;

use chrono::{DateTime, FixedOffset};

use self::parse::{figures, numbers_of, scale, small_numbers};

/// Two numbers of a source have to be at least so large for their difference to count: it hits no number by chance.
const SMALLEST_MINUEND: f64 = 1_000_000.0;
/// Two numbers that could be times are counters if they differ by more: a day of seconds.
const SMALLEST_COUNTER: f64 = 86_400.0;
/// Seconds since 1970 in a source: from 2001 to 2096.
const EPOCH_SECONDS: std::ops::Range<f64> = 1.0e9..4.0e9;
/// The large numbers of a source whose differences are calculated, so that no source takes quadratic time.
const MAX_MINUENDS: usize = 300;
/// A word of a line is one that may be counted from so many characters on.
const SHORTEST_COUNTED: usize = 4;
/// Two numbers are near if one is at most so many times the other.
const NEAR: f64 = 2.0;

/// A number or a time of day in a line of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The quantity as the report has it.
    pub text: String,
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
pub struct SearchedTexts {
    texts: Vec<String>,
    /// The numbers of each text, as written.
    written: Vec<Vec<f64>>,
    /// All numbers, also with their units applied.
    all: Vec<f64>,
}

impl SearchedTexts {
    pub fn new<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
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
    pub fn unsupported(&self, line: &str) -> Vec<Figure> {
        let (known, open): (Vec<_>, Vec<_>) = figures(line)
            .into_iter()
            .partition(|figure| self.has(figure));
        let known = known.iter().filter_map(Figure::value);
        let operands: Vec<f64> = known.chain(small_numbers(line)).collect();
        open.into_iter()
            .filter(|figure| !follows(figure, &operands) && !self.counts(figure, line))
            .collect()
    }

    /// The number of a source that is most like a figure that no source supports: the same digits with another power of
    /// a thousand, or at most twice or half as much.
    pub fn nearest(&self, figure: &Figure) -> Option<String> {
        let value = figure.absolute()?;
        let sources = || {
            self.written
                .iter()
                .flatten()
                .filter(|source| **source > 0.0)
        };
        let distance = |source: &f64| (value / source).ln().abs();
        let near = sources()
            .filter(|source| distance(source) <= NEAR.ln())
            .min_by(|one, other| distance(one).total_cmp(&distance(other)));
        sources()
            .find(|source| has_same_digits(value / **source))
            .or(near)
            .map(ToString::to_string)
    }

    fn has(&self, figure: &Figure) -> bool {
        match &figure.kind {
            Quantity::Time(time) => {
                self.texts.iter().any(|text| text.contains(time.as_str()))
                    || self.has_epoch(time)
                    || self.has_time_of_a_zone(time)
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

    /// Whether a source has the time as seconds or milliseconds since 1970.
    fn has_epoch(&self, time: &str) -> bool {
        let seconds = self
            .written
            .iter()
            .flatten()
            .flat_map(|number| [*number, number / 1000.0])
            .filter(|number| EPOCH_SECONDS.contains(number));
        let mut shown = seconds.filter_map(|number| {
            // The range has no number that the cast would cut.
            #[expect(clippy::cast_possible_truncation, reason = "EPOCH_SECONDS fit")]
            let time = DateTime::from_timestamp(number.trunc() as i64, 0)?;
            Some(time.format("%H:%M:%S").to_string())
        });
        shown.any(|shown| shown.starts_with(time))
    }

    /// Whether a source has the time in another zone, which it names.
    fn has_time_of_a_zone(&self, time: &str) -> bool {
        let words = self.texts.iter().flat_map(|text| {
            text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '[' | ']' | ','))
        });
        let mut times = words
            .filter(|word| word.len() >= 20 && word.contains(['+', '-']))
            .filter_map(|word| DateTime::<FixedOffset>::parse_from_rfc3339(word).ok());
        times.any(|found| {
            found
                .to_utc()
                .format("%H:%M:%S")
                .to_string()
                .starts_with(time)
        })
    }

    /// Whether a figure is the number of a source's lines that have a word of the figure's line.
    fn counts(&self, figure: &Figure, line: &str) -> bool {
        let Quantity::Number(number) = &figure.kind else {
            return false;
        };
        if number.scale != Scale::One || number.unit < 1.0 {
            return false;
        }
        let line = line.to_lowercase();
        let words = line
            .split(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_' | '.'))
            .map(|word| word.trim_end_matches('s').trim_matches('.'))
            .filter(|word| word.chars().count() >= SHORTEST_COUNTED);
        let words: Vec<&str> = words.collect();
        self.texts.iter().any(|text| {
            let text = text.to_lowercase();
            words.iter().any(|word| {
                let lines = count(text.lines().filter(|line| line.contains(word)));
                let places = count(text.matches(word));
                number.matches(lines) || number.matches(places)
            }) || number.matches(count(text.lines()))
        })
    }
}

impl Figure {
    fn value(&self) -> Option<f64> {
        match &self.kind {
            Quantity::Time(_) => None,
            Quantity::Number(number) => Some(number.value),
        }
    }

    /// The number without its unit.
    fn absolute(&self) -> Option<f64> {
        let Quantity::Number(number) = &self.kind else {
            return None;
        };
        Some(match number.scale {
            Scale::One | Scale::Percent => number.value,
            Scale::Power(power) => number.value * 1000_f64.powi(power),
        })
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
            .take(MAX_MINUENDS)
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

#[expect(clippy::cast_precision_loss, reason = "no text has so many parts")]
fn count<T>(parts: impl Iterator<Item = T>) -> f64 {
    parts.count() as f64
}

/// Whether two numbers of this ratio have the same digits, with another power of a thousand.
fn has_same_digits(ratio: f64) -> bool {
    let power = (ratio.log10() / 3.0).round() * 3.0;
    power != 0.0 && (ratio / 10_f64.powf(power) - 1.0).abs() < 0.01
}

/// Whether a figure is the sum, difference, product or quotient of two numbers.
fn follows(figure: &Figure, numbers: &[f64]) -> bool {
    let Quantity::Number(number) = &figure.kind else {
        return false;
    };
    numbers.iter().any(|a| {
        numbers.iter().any(|b| {
            let quotient = if *b == 0.0 { f64::NAN } else { a / b };
            let growth = if number.scale == Scale::Percent {
                quotient - 1.0
            } else {
                0.0
            };
            [a + b, a - b, a * b, quotient, growth]
                .into_iter()
                .any(|result| result != 0.0 && number.matches(result))
        })
    })
}

#[cfg(test)]
mod tests;
