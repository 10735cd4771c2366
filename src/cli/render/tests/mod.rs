//! Renderers against snapshots: a whole investigation as a timeline, sessions, dead letters and checks as tables.

mod calls;
mod checks;
mod dead_letters;
mod gaps;
mod models;
mod queue;
mod questions;
mod sessions;
mod terminal;
mod timeline;

use super::style::{Prose, Style};
use tarsy_core::timeline::TimelineEvent;

/// An investigation with parallel calls, a takeover by another worker, a failed call, a cut result and escape codes.
const OOM_KILLED: &str = include_str!("../../../../tests/fixtures/timelines/oom_killed.jsonl");

pub(crate) fn story() -> Vec<TimelineEvent> {
    OOM_KILLED
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A terminal of 80 columns.
fn narrow() -> Style {
    Style {
        width: 80,
        prose: Prose::Rendered,
        ..Style::default()
    }
}

/// The lines as one text; panics when a line is wider than `width` or holds what a terminal would obey.
fn fits(lines: &[String], width: usize) -> String {
    for line in lines {
        assert!(
            unicode_width::UnicodeWidthStr::width(line.as_str()) <= width,
            "{line}"
        );
        assert!(
            !line.contains(['\u{1b}', '\u{202e}']) && !line.contains("owned"),
            "{line:?}"
        );
    }
    lines.join("\n")
}
