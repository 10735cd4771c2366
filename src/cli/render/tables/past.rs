//! `sessions past`: the earlier investigations of an alert.

use super::table::{Cell, Column, short_moment, table};
use crate::cli::render::style::{Paint, Style};
use tarsy_reports::SeenBefore;

/// The investigations, the newest first. The words of a model are cleaned as every cell is.
pub fn seen(seen: &SeenBefore, style: &Style) -> Vec<String> {
    let columns = [
        Column::Left("session"),
        Column::Left("when (utc)"),
        Column::Left("chain"),
        Column::Left("sure"),
        Column::Rest("cause"),
    ];
    let rows = seen.sessions.iter().map(|session| {
        let paint = if session.mark.is_some() {
            Paint::Yellow
        } else {
            Paint::Plain
        };
        [
            Cell::new(&session.session_id.short(), style),
            Cell::new(&short_moment(session.finished_at), style),
            Cell::new(&session.chain, style),
            Cell::new(&session.in_words(), style).painted(paint),
            Cell::new(session.cause.as_deref().unwrap_or("(none named)"), style),
        ]
    });
    table(columns, &["chain", "when (utc)"], rows, style)
}
