//! The table of figures.

use std::fmt::Write as _;
use std::time::Duration;

/// A measured value with its unit.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    name: String,
    value: String,
}

impl Figure {
    pub(crate) fn kib(name: &str, kib: u64) -> Self {
        let value = if kib < 10_000 {
            format!("{kib} KiB")
        } else {
            format!("{:.1} MiB", kib as f64 / 1024.0)
        };
        Self {
            name: name.to_owned(),
            value,
        }
    }

    pub(crate) fn time(name: &str, time: Duration) -> Self {
        let micros = time.as_nanos() as f64 / 1_000.0;
        let value = if micros < 1_000.0 {
            format!("{micros:.1} µs")
        } else {
            format!("{:.2} ms", micros / 1_000.0)
        };
        Self {
            name: name.to_owned(),
            value,
        }
    }

    pub(crate) fn rate(name: &str, rate: f64) -> Self {
        Self {
            name: name.to_owned(),
            value: format!("{rate:.0}"),
        }
    }
}

/// A table with a column for each service. All columns have the same figures.
pub(crate) fn rendered(columns: &[(&str, Vec<Figure>)]) -> String {
    let names = columns
        .iter()
        .map(|(name, _)| *name)
        .collect::<Vec<_>>()
        .join(" | ");
    let mut table = format!("| | {names} |\n|---|{}\n", "---:|".repeat(columns.len()));
    for row in 0..columns[0].1.len() {
        let values = columns
            .iter()
            .map(|(_, figures)| figures[row].value.as_str())
            .collect::<Vec<_>>()
            .join(" | ");
        writeln!(table, "| {} | {values} |", columns[0].1[row].name).expect("a line");
    }
    table
}
