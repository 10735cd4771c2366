//! `sessions show --report`: an investigation as Markdown, laid out on a terminal.

use chrono::{DateTime, Utc};

use super::markdown as terminal;
use super::style::{Prose, Style};
use tarsy_reports::AlertReport;

pub use tarsy_reports::document::report;

/// The document on a terminal, laid out; elsewhere as [`report`] returns it.
pub fn shown(alert: &AlertReport, now: DateTime<Utc>, style: &Style) -> Vec<String> {
    let lines = report(alert, now);
    match style.prose {
        Prose::Raw => lines,
        Prose::Rendered => terminal::render(&lines.join("\n"), style.width, style),
    }
}
