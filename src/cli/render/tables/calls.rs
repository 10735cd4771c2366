//! `sessions show --prompts`: the model calls of a session.

use super::table::{Cell, Column, table};
use crate::cli::render::format;
use crate::cli::render::style::{Paint, Style};
use tarsy_reports::calls::{NumberedCall, purpose};

/// The calls in order, each with its number.
pub fn calls(calls: &[NumberedCall], style: &Style) -> Vec<String> {
    let columns = [
        Column::Right("call"),
        Column::Left("agent"),
        Column::Left("purpose"),
        Column::Left("model"),
        Column::Right("in"),
        Column::Right("cached"),
        Column::Right("out"),
        Column::Right("took"),
        Column::Rest("error"),
    ];
    let rows = calls.iter().map(|each| row(each, style));
    table(columns, &["cached", "took", "agent", "model"], rows, style)
}

fn row(each: &NumberedCall, style: &Style) -> [Cell; 9] {
    let call = &each.call;
    let [input, cached, output] = match call.usage {
        Some(usage) => [usage.input, usage.cached, usage.output].map(format::tokens),
        None => [const { String::new() }; 3],
    };
    [
        Cell::new(&each.number.to_string(), style),
        Cell::new(&call.agent, style),
        Cell::new(&purpose(each), style),
        Cell::new(&format!("{} {}", call.provider, call.model), style),
        Cell::new(&input, style),
        Cell::new(&cached, style),
        Cell::new(&output, style),
        Cell::new(&format::took(call.duration_ms), style),
        Cell::new(call.error.as_deref().unwrap_or_default(), style).painted(Paint::Red),
    ]
}
