//! The checks of `tarsy doctor` and the list of `tarsy tools`.

use super::table::{Cell, Column, hanging, table};
use crate::admin::doctor::{Check, Verdict};
use crate::cli::render::style::{Paint, Style};
use crate::cli::render::{format, text};
use tarsy_mcp::Listed;

/// Columns of a check's name.
const NAME_COLUMNS: usize = 11;

/// One check with its detail wrapped under itself.
pub fn check(check: &Check, style: &Style) -> Vec<String> {
    let (word, paint) = match check.verdict {
        Verdict::Ok => ("ok", Paint::Green),
        Verdict::Info => ("info", Paint::Dim),
        Verdict::Warn => ("warn", Paint::Yellow),
        Verdict::Fail => ("FAIL", Paint::Red),
    };
    let name = text::one_line(&check.check, style.charset);
    let detail = &check.detail;
    let detail = match &check.fix {
        Some(fix) if detail.ends_with(['.', '?', '!']) => format!("{detail} Fix: {fix}"),
        Some(fix) => format!("{detail}. Fix: {fix}"),
        None => detail.clone(),
    };
    let name = text::pad(&name, NAME_COLUMNS);
    let front = format!(
        "{}{}{name}  ",
        paint.over(word, style),
        " ".repeat(6 - word.len())
    );
    hanging(&front, 6 + text::width(&name) + 2, &detail, style)
}

/// The last line: how many checks failed or warned.
pub fn sum(checks: &[Check]) -> String {
    let count = |verdict: Verdict| {
        checks
            .iter()
            .filter(|check| check.verdict == verdict)
            .count()
    };
    let all = format::count(checks.len(), "check");
    match (count(Verdict::Fail), count(Verdict::Warn)) {
        (0, 0) => format!("{all}, nothing is wrong"),
        (0, warned) => format!("{all}, {}", format::count(warned, "warning")),
        (failed, _) => format!("{failed} of {all} failed"),
    }
}

/// The tools of one server.
pub fn tools(server: &str, tools: &[Listed], style: &Style) -> Vec<String> {
    let offered = tools.iter().filter(|tool| tool.offered).count();
    let head = format!(
        "{}: {} tools, {offered} offered to models",
        text::one_line(server, style.charset),
        tools.len()
    );
    let columns = [
        Column::Left("  tool"),
        Column::Left("may be called"),
        Column::Rest("why, and what it does"),
    ];
    let mut lines = vec![head];
    if !tools.is_empty() {
        let rows = tools.iter().map(|tool| row(tool, style));
        lines.extend(table(columns, &[], rows, style));
    }
    for tool in tools {
        let name = text::one_line(&tool.name, style.charset);
        let own_name = text::one_line(&tool.tool, style.charset);
        let suffix = tool.name.split_once('.').map(|(_, name)| name);
        if suffix != Some(tool.tool.as_str()) {
            lines.push(format!("  {name} is {own_name:?} at its server"));
        }
    }
    for tool in tools.iter().filter(|tool| !tool.left_out.is_empty()) {
        let name = text::one_line(&tool.name, style.charset);
        let odd = tool.left_out.join(", ");
        lines.push(format!(
            "  {name}: the server declares {odd} in a form that MCP does not have; left out"
        ));
    }
    lines
}

fn row(tool: &Listed, style: &Style) -> [Cell; 3] {
    let (may, paint) = match (tool.offered, tool.read_only) {
        (true, true) => ("yes, read-only", Paint::Plain),
        (true, false) => ("yes, once", Paint::Yellow),
        (false, _) => ("no", Paint::Dim),
    };
    let why = tool.withheld.as_deref().or(tool.because.as_deref());
    let why = why.unwrap_or_default();
    let described = text::first_sentence(&text::clean(&tool.description, style.charset));
    [
        Cell::indented(&tool.name, style),
        Cell::new(may, style).painted(paint),
        Cell::new(&format!("{why}. {described}"), style),
    ]
}
