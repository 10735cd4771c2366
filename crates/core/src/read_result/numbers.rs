//! Numbers in the lines of a result: the first one of a text, and what a list of them comes to.

use std::collections::BTreeMap;

/// The units that are shown.
const SHOWN_UNITS: usize = 8;
/// The longest unit, in bytes.
const MAX_UNIT_BYTES: usize = 12;

/// A number as it is written.
#[derive(Clone, Copy)]
struct Number<'a> {
    value: f64,
    written: &'a str,
}

/// Numbers of a result.
#[derive(Default)]
pub(super) struct Numbers<'a> {
    numbers: Vec<Number<'a>>,
    /// The letters behind the numbers, and how often.
    units: BTreeMap<&'a str, usize>,
    /// Texts without a number.
    without: usize,
}

impl<'a> Numbers<'a> {
    /// Adds the first number of a text.
    pub(super) fn add(&mut self, text: &'a str) {
        let Some(number) = first(text) else {
            self.without += 1;
            return;
        };
        *self.units.entry(number.unit).or_default() += 1;
        self.numbers.push(number.number);
    }

    /// The least, the median, the 90th percentile and the greatest. All of them occur in the result as written:
    /// a percentile is the least number that so many percent of them do not exceed.
    pub(super) fn summed(&mut self) -> String {
        self.numbers
            .sort_unstable_by(|one, other| one.value.total_cmp(&other.value));
        let count = self.numbers.len();
        let at = |percent: usize| {
            let rank = (count * percent).div_ceil(100).max(1) - 1;
            self.numbers.get(rank).map_or("-", |number| number.written)
        };
        format!(
            "min {}, median {}, p90 {}, max {}",
            at(0),
            at(50),
            at(90),
            at(100)
        )
    }

    pub(super) fn count(&self) -> usize {
        self.numbers.len()
    }

    /// Warnings for a reader of these lists: texts without a number, and units that differ.
    pub(super) fn faults<'n>(lists: impl Iterator<Item = &'n Self>) -> Vec<String>
    where
        'a: 'n,
    {
        let mut faults = Vec::new();
        let mut without = 0;
        let mut units: BTreeMap<&str, usize> = BTreeMap::new();
        for list in lists {
            without += list.without;
            for (unit, count) in &list.units {
                *units.entry(unit).or_default() += count;
            }
        }
        if without > 0 {
            faults.push(format!("no number follows in {without} of the matches"));
        }
        if units.len() > 1 {
            let shown: Vec<String> = units
                .iter()
                .take(SHOWN_UNITS)
                .map(|(unit, count)| {
                    let unit = if unit.is_empty() { "none" } else { unit };
                    format!("{unit} ({count})")
                })
                .collect();
            faults.push(format!(
                "the numbers have different units and were not converted: {}",
                shown.join(", ")
            ));
        }
        faults
    }
}

struct First<'a> {
    number: Number<'a>,
    unit: &'a str,
}

/// The first number of a text, with the letters behind it.
fn first(text: &str) -> Option<First<'_>> {
    let digit = text.find(|c: char| c.is_ascii_digit())?;
    let before = text.get(..digit)?;
    let start = if before.ends_with('.') && !before.ends_with("..") {
        digit - 1
    } else {
        digit
    };
    let is_negative = text.get(..start)?.ends_with('-')
        && !text
            .get(..start - 1)?
            .ends_with(|c: char| c.is_alphanumeric());
    let start = if is_negative { start - 1 } else { start };
    let rest = text.get(start..)?;
    let written = rest.get(..length(rest))?;
    let value: f64 = written.replace(',', "").parse().ok()?;
    let unit = rest.get(written.len()..)?;
    let end = unit
        .find(|c: char| !(c.is_alphabetic() || c == '%'))
        .unwrap_or(unit.len());
    let unit = unit.get(..end).filter(|unit| unit.len() <= MAX_UNIT_BYTES);
    Some(First {
        number: Number { value, written },
        unit: unit.unwrap_or_default(),
    })
}

/// The bytes of the number with which a text begins: sign, digits, thousands between commas, a fraction, an exponent.
fn length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        bytes
            .iter()
            .skip(from)
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let is = |at: usize, wanted: u8| bytes.get(at) == Some(&wanted);

    let mut end = usize::from(is(0, b'-'));
    let leading = digits(end);
    end += leading;
    while (1..=3).contains(&leading) && is(end, b',') && digits(end + 1) == 3 {
        end += 4;
    }
    if is(end, b'.') {
        let fraction = digits(end + 1);
        end += if fraction > 0 { fraction + 1 } else { 0 };
    }
    if is(end, b'e') || is(end, b'E') {
        let sign = usize::from(is(end + 1, b'-') || is(end + 1, b'+'));
        let exponent = digits(end + 1 + sign);
        end += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    end
}
