//! The list of `tarsy destinations list`.

use serde::Serialize;

use super::table::{Cell, Column, table};
use crate::cli::render::style::{Paint, Style};

/// A destination, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedDestination {
    pub name: String,
    /// `built in`, not configured, or `tarsy.yaml`.
    pub from: &'static str,
    /// The moments of its notes; empty for one that is not configured.
    pub when: Vec<&'static str>,
    /// The references of an alert without which it gets no note.
    pub needs: Vec<String>,
    /// The means that keeps a note from being doubled after a lost answer: `found again`, `the vendor`, or `a remark`.
    pub repetition: &'static str,
}

/// One line for each destination.
pub fn list(destinations: &[ListedDestination], style: &Style) -> Vec<String> {
    let columns = [
        Column::Left("destination"),
        Column::Left("from"),
        Column::Left("when"),
        Column::Left("repetition"),
        Column::Rest("needs"),
    ];
    let rows = destinations.iter().map(|destination| {
        [
            Cell::new(&destination.name, style).painted(Paint::Bold),
            Cell::new(destination.from, style),
            Cell::new(&destination.when.join(", "), style),
            Cell::new(destination.repetition, style),
            Cell::new(&destination.needs.join(", "), style),
        ]
    });
    table(columns, &["repetition"], rows, style)
}
