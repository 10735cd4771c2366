//! `sessions search`: the events of a session that contain a text.

use super::table::{Cell, Column, table};
use crate::cli::render::style::Style;
use tarsy_core::timeline::rows::single;
use tarsy_reports::FoundEvent;

/// Characters before a match: a narrow terminal shows the match, too.
const BEFORE: usize = 24;

/// The events in order, each with the text around its first match. All of it is cleaned as every cell is.
pub fn events(events: &[FoundEvent], style: &Style) -> Vec<String> {
    let columns = [
        Column::Right("event"),
        Column::Left("agent"),
        Column::Left("what"),
        Column::Rest("text"),
    ];
    let rows = events.iter().map(|each| {
        [
            Cell::new(&each.found.event.to_string(), style),
            Cell::new(each.event.agent.as_deref().unwrap_or_default(), style),
            Cell::new(&single(&each.event, style.charset).name, style),
            Cell::new(&each.found.text(BEFORE), style),
        ]
    });
    table(columns, &["agent"], rows, style)
}
