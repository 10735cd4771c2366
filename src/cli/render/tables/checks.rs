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
    let stop = if check.detail.ends_with(['.', '?', '!']) {
        ""
    } else {
        "."
    };
    let fix = check.fix.as_deref().map(|fix| format!("{stop} Fix: {fix}"));
    let detail = format!("{}{}", check.detail, fix.unwrap_or_default());
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
        lines.extend(table(
            columns,
            &[],
            tools.iter().map(|tool| {
                let (may, paint) = match (tool.offered, tool.read_only) {
                    (true, true) => ("yes, read-only", Paint::Plain),
                    (true, false) => ("yes, once", Paint::Yellow),
                    (false, _) => ("no", Paint::Dim),
                };
                let why = tool
                    .withheld
                    .as_ref()
                    .or(tool.because.as_ref())
                    .map(String::as_str)
                    .unwrap_or_default();
                let described =
                    text::first_sentence(&text::clean(&tool.description, style.charset));
                [
                    Cell::indented(&tool.name, style),
                    Cell::new(may, style).painted(paint),
                    Cell::new(
                        &text::one_line(&format!("{why}. {described}"), style.charset),
                        style,
                    ),
                ]
            }),
            style,
        ));
    }
    for tool in tools.iter().filter(|tool| {
        tool.name
            .split_once('.')
            .is_none_or(|(_, name)| name != tool.tool)
    }) {
        let own_name = text::one_line(&tool.tool, style.charset);
        lines.push(format!(
            "  {} is {own_name:?} at its server",
            text::one_line(&tool.name, style.charset)
        ));
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
