//! Prints what a command found: results on standard output, remarks on standard error.

use std::io::Write as _;

use anyhow::Context as _;
use serde::Serialize;

use crate::cli::render::json;

/// Prints lines on standard output.
pub(super) fn print(lines: &[String]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(())
}

/// Prints one object on one line.
pub(super) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&[json::line(value).context("cannot be written as JSON")?])
}

/// Prints a remark on standard error.
pub(super) fn note(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stderr(), "{text}")?;
    Ok(())
}
