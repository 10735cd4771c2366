//! The list of `tarsy sources list`, and the lines of `tarsy sources test`.

use serde::Serialize;

use super::table::{Cell, Column, table};
use crate::cli::render::style::{Paint, Style};
use crate::cli::render::text;
use tarsy_core::alert::AlertStatus;

/// A source, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedSource {
    pub name: String,
    /// `built in` or `tarsy.yaml`.
    pub from: &'static str,
    /// Whether a body alone leads to it; otherwise only its path and its name do.
    pub recognised: bool,
    pub statuses: Vec<AlertStatus>,
    /// The authentication of its senders.
    pub proof: String,
}

/// One line for each source.
pub fn list(sources: &[ListedSource], style: &Style) -> Vec<String> {
    let columns = [
        Column::Left("source"),
        Column::Left("from"),
        Column::Left("proof"),
        Column::Rest("statuses"),
    ];
    let rows = sources.iter().map(|source| {
        let statuses = source.statuses.iter().map(|status| status.as_str());
        let statuses: Vec<&str> = statuses.collect();
        [
            Cell::new(&source.name, style).painted(Paint::Bold),
            Cell::new(source.from, style),
            Cell::new(&source.proof, style),
            Cell::new(&statuses.join(", "), style),
        ]
    });
    table(columns, &["proof"], rows, style)
}

/// The result of a sample.
#[derive(Clone, Copy, Debug)]
pub struct TestedSample<'t> {
    pub path: &'t str,
    /// Status and title of each alert.
    pub alerts: &'t [String],
    /// Empty: as expected.
    pub problems: &'t [String],
}

/// One line, or one for each problem.
pub fn tested(sample: &TestedSample<'_>, style: &Style) -> Vec<String> {
    let clean = |line: &str| text::one_line(line, style.charset);
    let path = clean(sample.path);
    if sample.problems.is_empty() {
        let ok = Paint::Green.over("ok", style);
        let alerts = clean(&sample.alerts.join("; "));
        return vec![format!("{ok}    {path}  {alerts}")];
    }
    let fail = Paint::Red.over("FAIL", style);
    let problems = sample.problems.iter();
    problems
        .map(|problem| format!("{fail}  {path}  {}", clean(problem)))
        .collect()
}
