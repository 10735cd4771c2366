//! The checks of `tarsy doctor` and the list of `tarsy tools`.

use super::table::{Cell, Column, table};
use crate::cli::render::style::{Paint, Style};
use crate::cli::render::{format, text};
use crate::mcp::Listed;
use crate::roles::doctor::{Check, Verdict};

/// Columns of a check's name.
const NAME_COLUMNS: usize = 11;

/// One check with its detail wrapped under itself.
pub fn check(check: &Check, style: &Style) -> Vec<String> {
    let (word, paint) = match check.verdict {
        Verdict::Ok => ("ok", Paint::Green),
        Verdict::Warn => ("warn", Paint::Yellow),
        Verdict::Fail => ("FAIL", Paint::Red),
    };
    let name = text::one_line(&check.check, style.charset);
    let stop = if check.detail.ends_with(['.', '?', '!']) { "" } else { "." };
    let fix = check.fix.as_deref().map(|fix| format!("{stop} Fix: {fix}"));
    let detail = text::one_line(&format!("{}{}", check.detail, fix.unwrap_or_default()), style.charset);
    let indent = 6 + NAME_COLUMNS.max(text::width(&name)) + 2;
    let word = format!("{}{}", paint.over(word, style), " ".repeat(6 - word.len()));
    let front = format!("{word}{name}{}", " ".repeat(indent.saturating_sub(6 + text::width(&name))));
    let lines = text::wrap(&detail, style.width.saturating_sub(indent).max(20));
    lines
        .into_iter()
        .enumerate()
        .map(
            |(index, line)| if index == 0 { format!("{front}{line}") } else { format!("{}{line}", " ".repeat(indent)) },
        )
        .collect()
}

/// The last line: how many checks failed or warned.
pub fn sum(checks: &[Check]) -> String {
    let count = |verdict: Verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let of = |number: usize, thing: &str| format::count(u64::try_from(number).unwrap_or(u64::MAX), thing);
    let (failed, warned, all) = (count(Verdict::Fail), count(Verdict::Warn), checks.len());
    match (failed, warned) {
        (0, 0) => format!("{}, nothing is wrong", of(all, "check")),
        (0, _) => format!("{}, {}", of(all, "check"), of(warned, "warning")),
        (_, _) => format!("{failed} of {} failed", of(all, "check")),
    }
}

/// The tools of one server.
pub fn tools(server: &str, tools: &[Listed], style: &Style) -> Vec<String> {
    let offered = tools.iter().filter(|tool| tool.offered).count();
    let head = format!("{}: {} tools, {offered} offered to models", text::one_line(server, style.charset), tools.len());
    let columns = [Column::Left("  tool"), Column::Left("may be called"), Column::Rest("what it does")];
    let row = |tool: &Listed| {
        let (may, paint) = match (tool.offered, tool.read_only) {
            (true, true) => ("yes, read-only", Paint::Plain),
            (true, false) => ("yes, once", Paint::Yellow),
            (false, _) => ("no", Paint::Dim),
        };
        let what = match &tool.withheld {
            Some(why) => format!("{why}. {}", tool.description),
            None => tool.description.clone(),
        };
        vec![
            Cell::indented(&tool.name, style),
            Cell::new(may, style).painted(paint),
            Cell::new(&text::first_sentence(&text::clean(&what, style.charset)), style),
        ]
    };
    let rows: Vec<Vec<Cell>> = tools.iter().map(row).collect();
    let mut lines = vec![head];
    if !rows.is_empty() {
        lines.extend(table(&columns, &rows, style));
    }
    lines
}
