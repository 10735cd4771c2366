//! The tables of `tarsy tools gaps`.

use super::table::{Cell, Column, table};
use crate::cli::render::format;
use crate::cli::render::style::Style;
use tarsy_reports::gaps::{Gaps, ToolGaps, UnknownTool, UnseenGroup};

/// Groups of lines `Not seen` that are shown; `--json` has all of them.
const MAX_GROUPS: usize = 30;

/// The sections that have something in them, below the number of sessions.
pub fn gaps(gaps: &Gaps, style: &Style) -> Vec<String> {
    let sessions = format::count(gaps.sessions, "session");
    let mut lines = vec![format!("{sessions} looked at")];
    if !gaps.not_seen.is_empty() {
        lines.push(String::new());
        lines.extend(not_seen(&gaps.not_seen, style));
    }
    if !gaps.tools.is_empty() {
        lines.push(String::new());
        lines.extend(tools(&gaps.tools, style));
    }
    if !gaps.unknown.is_empty() {
        lines.push(String::new());
        lines.extend(unknown(&gaps.unknown, style));
    }
    if gaps.not_seen.is_empty() && gaps.tools.is_empty() && gaps.unknown.is_empty() {
        lines.push("no gap: no line Not seen, and no call without a result".to_owned());
    }
    lines
}

fn not_seen(groups: &[UnseenGroup], style: &Style) -> Vec<String> {
    let columns = [
        Column::Left("not seen"),
        Column::Right("sessions"),
        Column::Left("newest"),
        Column::Rest("its line"),
    ];
    let rows = groups.iter().take(MAX_GROUPS).map(|group| {
        [
            Cell::new(&group.words.join(" "), style),
            Cell::new(&group.sessions.to_string(), style),
            Cell::new(&group.newest_session.short(), style),
            Cell::new(&group.newest, style),
        ]
    });
    let mut lines = table(columns, &["newest"], rows, style);
    if let Some(more @ 1..) = groups.len().checked_sub(MAX_GROUPS) {
        lines.push(format!("and {more} more; --json has them"));
    }
    lines
}

fn tools(tools: &[ToolGaps], style: &Style) -> Vec<String> {
    let columns = [
        Column::Left("tool"),
        Column::Right("calls"),
        Column::Right("empty"),
        Column::Right("timed out"),
        Column::Right("arguments"),
        Column::Right("no server"),
        Column::Right("failed"),
    ];
    let rows = tools.iter().map(|tool| {
        let counts = [
            tool.calls,
            tool.empty,
            tool.timed_out,
            tool.refused_arguments,
            tool.unavailable,
            tool.failed,
        ];
        let [calls, empty, timed_out, arguments, unavailable, failed] =
            counts.map(|count| Cell::new(&shown(count), style));
        let name = Cell::new(&tool.tool, style);
        [
            name,
            calls,
            empty,
            timed_out,
            arguments,
            unavailable,
            failed,
        ]
    });
    table(columns, &["no server", "arguments"], rows, style)
}

/// A count; nothing is shown as a hyphen, so that the others stand out.
fn shown(count: i64) -> String {
    if count == 0 {
        "-".to_owned()
    } else {
        count.to_string()
    }
}

fn unknown(tools: &[UnknownTool], style: &Style) -> Vec<String> {
    let columns = [
        Column::Rest("no such tool"),
        Column::Right("calls"),
        Column::Right("sessions"),
    ];
    let rows = tools.iter().map(|tool| {
        [
            Cell::new(&tool.name, style),
            Cell::new(&tool.calls.to_string(), style),
            Cell::new(&tool.sessions.to_string(), style),
        ]
    });
    table(columns, &[], rows, style)
}
