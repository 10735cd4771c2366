//! Reads the source as text and fails on what the layout forbids: see ARCHITECTURE.md and CONTRIBUTING.md.
//!
//! Text, not syntax: an import is any `crate::<module>` outside comments, so that a path written out counts as well.
//! Each rule is a function from a file to its violations, and has tests that plant violations which it has to find.
#![expect(
    clippy::unwrap_used,
    clippy::string_slice,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod accent;
mod layers;
mod circles;
mod docs;
mod decisions;
mod changed;
mod commands;
mod sentences;
mod style;
mod words;
mod scripts;
mod walks;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tarsy_telemetry::names::all;

/// A file with its path from the root of the package.
struct Source {
    path: String,
    text: String,
}

/// Whether the whole file is compiled for tests only.
fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/") || path.contains("/testing")
}

/// The text before its module of tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or(text)
}

/// Lines with their numbers, without comments.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> Option<Source> {
    let text = fs::read_to_string(root().join(path)).ok()?;
    Some(Source {
        path: path.to_owned(),
        text,
    })
}

fn sources(tree: &str) -> Vec<Source> {
    files_below(tree, |path| path.ends_with(".rs"))
}

/// The code of the program: its package and the crates of the rings.
fn program() -> Vec<Source> {
    program_files(|path| path.ends_with(".rs"))
}

fn program_files(wanted: impl Fn(&str) -> bool + Copy) -> Vec<Source> {
    ["src", "crates", "xtask"]
        .into_iter()
        .flat_map(|tree| files_below(tree, wanted))
        .collect()
}

fn all_sources() -> Vec<Source> {
    program()
        .into_iter()
        .chain(["tests", "benches"].into_iter().flat_map(sources))
        .collect()
}

fn files_below(tree: &str, wanted: impl Fn(&str) -> bool + Copy) -> Vec<Source> {
    let mut found = Vec::new();
    let mut open = vec![root().join(tree)];
    while let Some(directory) = open.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let path = path
                .strip_prefix(root())
                .unwrap()
                .to_string_lossy()
                .into_owned();
            if wanted(&path) {
                found.extend(read(&path));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn documents() -> Vec<Source> {
    let pages = files_below("docs", |path| path.ends_with(".md"));
    pages
        .into_iter()
        .chain(
            ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
                .into_iter()
                .filter_map(read),
        )
        .collect()
}

fn assert_none(files: &[Source], rule: impl Fn(&Source) -> Vec<String>) {
    assert!(!files.is_empty(), "nothing was read: the rule cannot fail");
    let violations: Vec<String> = files
        .iter()
        .flat_map(|file| {
            rule(file)
                .into_iter()
                .map(move |what| format!("{}: {what}", file.path))
        })
        .collect();
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

fn source(path: &str, text: &str) -> Source {
    Source {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}
