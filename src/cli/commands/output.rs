//! Prints the output of a command: results on standard output, remarks on standard error.

use std::io::Write as _;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::Value;

use crate::cli::render::json;
use crate::cli::render::style::Style;
use crate::cli::view::TerminalEnv;

/// The style of tables and lists on standard output.
pub(super) fn style() -> Style {
    TerminalEnv::of_process().style()
}

/// Prints lines on standard output.
pub(super) fn print(lines: &[String]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(())
}

/// A value as JSON on one line.
pub(super) fn json_line(value: &impl Serialize) -> anyhow::Result<String> {
    json::line(value).context("cannot be written as JSON")
}

/// Values as JSON, one on each line.
pub(super) fn json_lines(values: &[impl Serialize]) -> anyhow::Result<Vec<String>> {
    values.iter().map(json_line).collect()
}

/// Adds a field to a JSON object.
pub(super) fn add(json: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(object) = json.as_object_mut() {
        object.insert(field.to_owned(), value.into());
    }
}

/// Prints one object on one line.
pub(super) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&[json_line(value)?])
}

/// Prints a remark on standard error.
pub(super) fn note(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stderr(), "{text}")?;
    Ok(())
}
