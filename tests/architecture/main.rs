//! Reads the source as text and fails on what the layout forbids: see ARCHITECTURE.md.
//!
//! Text, not syntax: an import is any `crate::<module>` outside comments, so that a path written out counts as well.
#![expect(clippy::unwrap_used, clippy::string_slice, reason = "a test fails by panicking")]

mod planted;

use std::fs;
use std::path::{Path, PathBuf};

use tarsy::telemetry::names::all;

/// A file with its path from the root of the package.
struct Source {
    path: String,
    text: String,
}

/// Which of our modules a ring may name, itself aside.
const RINGS: [(&str, &[&str]); 11] = [
    ("listener", &[]),
    ("investigation", &[]),
    ("config", &["investigation"]),
    ("engine", &["investigation", "config"]),
    ("drill", &["config", "investigation"]),
    ("store", ADAPTER),
    ("bus", ADAPTER),
    ("llm", ADAPTER),
    ("mcp", ADAPTER),
    ("telemetry", ADAPTER),
    ("receiver", ADAPTER),
];
const ADAPTER: &[&str] = &["engine", "investigation", "config", "drill", "listener"];
/// May name everything.
const COMPOSITION: [&str; 2] = ["cli", "roles"];
const LONGEST: usize = 400;

#[test]
fn no_ring_names_a_module_outside_of_its_reach() {
    assert_none(&sources("src"), forbidden_imports);
}

#[test]
fn every_module_has_a_ring() {
    let known: Vec<&str> = RINGS.iter().map(|(ring, _)| *ring).chain(COMPOSITION).collect();
    let unknown: Vec<String> = sources("src")
        .into_iter()
        .filter(|source| !["src/lib.rs", "src/main.rs"].contains(&source.path.as_str()))
        .filter(|source| !known.contains(&ring_of(&source.path)))
        .map(|source| source.path)
        .collect();
    assert_eq!(unknown, Vec::<String>::new(), "a new module needs a line in RINGS");
}

#[test]
fn the_core_is_pure() {
    let code = sources("src/investigation").into_iter().filter(|source| !is_test(&source.path));
    assert_none(&code.collect::<Vec<_>>(), impurities);
}

#[test]
fn every_source_file_stays_short() {
    assert_none(&all_sources(), too_long);
}

#[test]
fn every_sleep_says_why() {
    assert_none(&all_sources(), unexplained_sleeps);
}

#[test]
fn no_file_names_a_machine() {
    let mut files = all_sources();
    for tree in ["docs", "examples", "migrations", "proto", "deploy", "tests"] {
        files.extend(files_below(tree, |path| !path.ends_with(".rs")));
    }
    files.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "dev", ".ci/run", "Cargo.toml", "deny.toml"]
            .into_iter()
            .filter_map(read),
    );
    assert_none(&files, machine_paths);
}

#[test]
fn every_metric_that_is_counted_stands_in_the_table() {
    assert_none(&sources("src"), unknown_metrics);
}

#[test]
fn every_metric_of_the_table_is_counted_somewhere() {
    let code = sources("src").into_iter().filter(|source| source.path != "src/telemetry/names.rs");
    let code: String = code.map(|source| without_tests(&source.text).to_owned()).collect();
    let names = all().map(|metric| format!("\"{}\"", metric.name));
    assert_eq!(names.filter(|name| !code.contains(name)).collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn every_test_that_a_document_names_exists() {
    let tests: String = all_sources().into_iter().map(|source| source.text).collect();
    let documents: Vec<Source> = ["README.md", "ARCHITECTURE.md"].into_iter().filter_map(read).collect();
    assert_none(&documents, |document| {
        let words = document.text.split('`').skip(1).step_by(2).filter(|word| word.matches('_').count() > 4);
        words.filter(|word| !tests.contains(&format!("fn {word}("))).map(|word| format!("no test {word}")).collect()
    });
}

#[test]
fn every_migration_can_be_undone() {
    let Ok(migrations) = fs::read_dir(root().join("migrations")) else {
        return;
    };
    let missing: Vec<PathBuf> = migrations
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .filter(|path| !path.join("up.sql").is_file() || !path.join("down.sql").is_file())
        .collect();
    assert_eq!(missing, Vec::<PathBuf>::new(), "up.sql or down.sql is missing");
}

// ---------------------------------------------------------------- rules: a file in, one line a violation out

fn forbidden_imports(source: &Source) -> Vec<String> {
    let ring = ring_of(&source.path);
    let Some((_, allowed)) = RINGS.iter().find(|(name, _)| *name == ring) else {
        return Vec::new();
    };
    named_modules(&source.text)
        .into_iter()
        .filter(|(_, module)| module != ring && !allowed.contains(&module.as_str()))
        .map(|(line, module)| format!("line {line}: {ring} names {module}"))
        .chain(
            code_lines(&source.text)
                .filter(|(_, code)| code.contains("super::super::"))
                .map(|(line, _)| format!("line {line}: super::super:: hides what is named; write crate::")),
        )
        .collect()
}

fn impurities(source: &Source) -> Vec<String> {
    let words = [
        ["async fn", "async move", "async {", ".await", "std::fs", "std::net", "std::env", "std::process"],
        ["tokio", "Utc::now", "Instant::now", "SystemTime", "fastrand", "now_v7", "new_v4", "diesel"],
    ]
    .concat();
    code_lines(without_tests(&source.text))
        .flat_map(|(line, code)| {
            words.iter().filter(move |word| code.contains(**word)).map(move |word| format!("line {line}: {word}"))
        })
        .collect()
}

fn too_long(source: &Source) -> Vec<String> {
    let lines = source.text.lines().count();
    if lines <= LONGEST || source.path.ends_with("/schema.rs") {
        return Vec::new();
    }
    vec![format!("{lines} lines, at most {LONGEST}")]
}

/// A sleep of the program is as long as something with a name says; one in a test has a comment on its line or before.
fn unexplained_sleeps(source: &Source) -> Vec<String> {
    let mut before = "";
    let mut found = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        // These words are looked for, not called.
        let slept = ["thread::sleep(", "time::sleep("].iter().find_map(|call| code.split_once(call));
        let explained = line.contains("// ") || before.trim_start().starts_with("//");
        let named = source.path.starts_with("src/") && slept.is_some_and(|(_, time)| !time.contains("Duration::"));
        if slept.is_some() && !explained && !named {
            found.push(format!("line {}: a sleep without a reason", index + 1));
        }
        before = line;
    }
    found
}

/// A macro with a name written out whose name or labels the table does not have.
fn unknown_metrics(source: &Source) -> Vec<String> {
    code_lines(&source.text)
        .filter_map(|(line, code)| {
            let (_, call) = ["counter!(\"", "gauge!(\"", "histogram!(\""].iter().find_map(|m| code.split_once(m))?;
            let name = call.split('"').next()?;
            let keys = call.match_indices("=>").filter_map(|(at, _)| call[..at].rsplit('"').nth(1));
            let known = all().find(|metric| metric.name == name);
            let Some(metric) = known else { return Some(format!("line {line}: {name} is not in names.rs")) };
            let labels: Vec<_> = metric.keys().collect();
            (!keys.eq(labels.iter().copied())).then(|| format!("line {line}: {name} has the labels {labels:?}"))
        })
        .collect()
}

fn machine_paths(source: &Source) -> Vec<String> {
    // Put together here so that this file does not find itself.
    let places = ["/home", "/root", "/Users", "/mnt"].map(|place| format!("{place}/"));
    let lines = source.text.lines().enumerate();
    lines
        .flat_map(|(index, line)| {
            let found = places.iter().filter(move |place| line.contains(place.as_str()));
            found.map(move |place| format!("line {}: {place}", index + 1))
        })
        .collect()
}

// ---------------------------------------------------------------- reading

/// The first part of the path below `src/`, without `.rs`.
fn ring_of(path: &str) -> &str {
    let below = path.strip_prefix("src/").unwrap_or(path);
    below.split('/').next().unwrap_or_default().trim_end_matches(".rs")
}

/// Whether the whole file is compiled for tests only.
fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/") || path.contains("/testing")
}

/// The text before its module of tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

/// Lines with their numbers, comments taken away.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
}

/// Every module that the text names by `crate::module` or `crate::{module, …}`, with the line.
fn named_modules(text: &str) -> Vec<(usize, String)> {
    let code: String = code_lines(text).map(|(_, code)| format!("{code}\n")).collect();
    let mut named = Vec::new();
    for (at, prefix) in code.match_indices("crate::") {
        let line = code[..at].matches('\n').count() + 1;
        let rest = &code[at + prefix.len()..];
        for module in first_segments(rest) {
            named.push((line, module));
        }
    }
    named
}

/// `a::b` → a; `{a::b, c::{d, e}}` → a, c.
fn first_segments(path: &str) -> Vec<String> {
    let word =
        |text: &str| -> String { text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(group) = path.strip_prefix('{') else {
        return vec![word(path)];
    };
    let mut depth = 0_u32;
    let mut start = 0;
    let mut segments = Vec::new();
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                segments.push(word(&group[start..at]));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                segments.push(word(&group[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    segments.retain(|segment| !segment.is_empty());
    segments
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> Option<Source> {
    let text = fs::read_to_string(root().join(path)).ok()?;
    Some(Source { path: path.to_owned(), text })
}

fn sources(tree: &str) -> Vec<Source> {
    files_below(tree, |path| path.ends_with(".rs"))
}

fn all_sources() -> Vec<Source> {
    ["src", "tests", "benches"].into_iter().flat_map(sources).chain(read("build.rs")).collect()
}

fn files_below(tree: &str, wanted: impl Fn(&str) -> bool + Copy) -> Vec<Source> {
    let mut found = Vec::new();
    let mut open = vec![root().join(tree)];
    while let Some(directory) = open.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let path = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            if wanted(&path) {
                found.extend(read(&path));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn assert_none(files: &[Source], rule: impl Fn(&Source) -> Vec<String>) {
    assert!(!files.is_empty(), "nothing was read: the rule cannot fail");
    let violations: Vec<String> = files
        .iter()
        .flat_map(|file| rule(file).into_iter().map(move |what| format!("{}: {what}", file.path)))
        .collect();
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}
