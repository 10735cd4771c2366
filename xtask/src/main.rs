//! `cargo run --package xtask -- <program>`, as `dev.d/build.sh` calls it in the root of the repository.

use std::fs;
use std::io::{ErrorKind, Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use xtask::{commits, drills, times};

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (lines, code) = match words.as_slice() {
        ["drills"] => (drills::list(Path::new("examples/drills"))?, 0),
        ["times", results, processors] => (times::report(&read(results)?, &read(processors)?)?, 0),
        ["commits"] => {
            let outcome = commits::check(Path::new("."))?;
            let code = u8::from(matches!(outcome, commits::Outcome::Refused(_)));
            (outcome.lines(), code)
        }
        _ => bail!("usage: xtask drills | times <results> <processors> | commits"),
    };
    match print(&lines) {
        // The reader of a pipe may end before the last line.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::from(code)),
    }
}

fn print(lines: &[String]) -> std::io::Result<()> {
    let mut out = stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()
}

fn read(path: &str) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {path}"))
}
