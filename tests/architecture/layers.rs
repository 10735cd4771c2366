//! Which module may name which, what the core may do, and how many files a folder has.

use super::*;

/// Which of our modules a ring may name, itself aside.
const RINGS: [(&str, &[&str]); 16] = [
    ("listener", &[]),
    ("outgoing", &[]),
    ("investigation", &[]),
    ("config", &["investigation"]),
    ("engine", &["investigation", "config"]),
    ("drill", &["config", "investigation"]),
    ("reports", &["engine", "investigation"]),
    ("store", ADAPTER),
    ("bus", ADAPTER),
    ("llm", ADAPTER),
    ("mcp", ADAPTER),
    ("telemetry", ADAPTER),
    ("receiver", ADAPTER),
    ("runbooks", ADAPTER),
    ("notifications", ADAPTER),
    ("web", ADAPTER),
];
const ADAPTER: &[&str] = &[
    "engine",
    "investigation",
    "config",
    "drill",
    "listener",
    "outgoing",
    "reports",
];
/// May name everything.
const COMPOSITION: [&str; 2] = ["cli", "roles"];
const MAX_FILES: usize = 15;

#[test]
fn no_ring_names_a_module_outside_of_its_reach() {
    assert_none(&sources("src"), forbidden_imports);
}

#[test]
fn every_module_has_a_ring() {
    let known: Vec<&str> = RINGS
        .iter()
        .map(|(ring, _)| *ring)
        .chain(COMPOSITION)
        .collect();
    let unknown: Vec<String> = sources("src")
        .into_iter()
        .filter(|source| !["src/lib.rs", "src/main.rs"].contains(&source.path.as_str()))
        .filter(|source| !known.contains(&ring_of(&source.path)))
        .map(|source| source.path)
        .collect();
    assert_eq!(
        unknown,
        Vec::<String>::new(),
        "a new module needs a line in RINGS"
    );
}

#[test]
fn the_core_is_pure() {
    let code = sources("src/investigation")
        .into_iter()
        .filter(|source| !is_test(&source.path));
    assert_none(&code.collect::<Vec<_>>(), impurities);
}

#[test]
fn the_fuzzers_have_each_crate_that_the_core_imports() {
    let of = |path: &str| dependencies(&read(path).expect(path).text);
    let fuzzers = of("fuzz/Cargo.toml");
    let others: Vec<String> = of("Cargo.toml")
        .into_iter()
        .filter(|name| !fuzzers.contains(name))
        .collect();
    let code = sources("src/investigation")
        .into_iter()
        .filter(|source| !is_test(&source.path));
    assert_none(&code.collect::<Vec<_>>(), |source| imports(source, &others));
}

#[test]
fn a_folder_has_at_most_fifteen_files() {
    let paths: Vec<String> = all_sources()
        .into_iter()
        .map(|source| source.path)
        .collect();
    let found = crowded_folders(&paths);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn files_compiled_only_for_tests_are_called_tests_or_lie_in_tests_or_testing() {
    assert_none(&sources("src"), disguised_tests);
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
                .map(|(line, _)| {
                    format!("line {line}: super::super:: hides what is named; write crate::")
                }),
        )
        .collect()
}

fn impurities(source: &Source) -> Vec<String> {
    let words = [
        [
            "async fn",
            "async move",
            "async {",
            ".await",
            "std::fs",
            "std::net",
            "std::env",
            "std::process",
        ],
        [
            "tokio",
            "Utc::now",
            "Instant::now",
            "SystemTime",
            "fastrand",
            "now_v7",
            "new_v4",
            "diesel",
        ],
    ]
    .concat();
    code_lines(without_tests(&source.text))
        .flat_map(|(line, code)| {
            words
                .iter()
                .filter(move |word| code.contains(**word))
                .map(move |word| format!("line {line}: {word}"))
        })
        .collect()
}

/// The crates in the table `dependencies` of a manifest, as code names them.
fn dependencies(manifest: &str) -> Vec<String> {
    let table = manifest
        .lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1);
    let lines = table.take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| Some(line.split_once(" = ")?.0.replace('-', "_")))
        .collect()
}

/// Where a file imports one of these crates.
fn imports(source: &Source, crates: &[String]) -> Vec<String> {
    code_lines(without_tests(&source.text))
        .flat_map(|(line, code)| {
            let is_imported =
                move |name: &&String| code.trim_start().starts_with(&format!("use {name}::"));
            crates
                .iter()
                .filter(is_imported)
                .map(move |name| format!("line {line}: fuzz/Cargo.toml needs {name}"))
        })
        .collect()
}

fn crowded_folders(paths: &[String]) -> Vec<String> {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for (folder, _) in paths.iter().filter_map(|path| path.rsplit_once('/')) {
        *folders.entry(folder).or_default() += 1;
    }
    let crowded = folders.into_iter().filter(|(_, files)| *files > MAX_FILES);
    crowded
        .map(|(folder, files)| format!("{folder}: {files} files, at most {MAX_FILES}"))
        .collect()
}

/// A module behind `#[cfg(test)]` whose name does not say that it is a test.
fn disguised_tests(source: &Source) -> Vec<String> {
    if is_test(&source.path) {
        return Vec::new();
    }
    let lines: Vec<(usize, &str)> = code_lines(&source.text).collect();
    let declared = lines
        .windows(2)
        .filter(|pair| pair[0].1.trim() == "#[cfg(test)]")
        .filter_map(|pair| {
            let (line, code) = pair[1];
            let name = code.trim().strip_suffix(';')?.split_once("mod ")?.1;
            (!["tests", "testing"].contains(&name))
                .then(|| format!("line {line}: {name} is a test without the name of one"))
        });
    declared.collect()
}

/// The first part of the path below `src/`, without `.rs`.
fn ring_of(path: &str) -> &str {
    let below = path.strip_prefix("src/").unwrap_or(path);
    below
        .split('/')
        .next()
        .unwrap_or_default()
        .trim_end_matches(".rs")
}

/// Every module that the text names by `crate::module` or `crate::{module, …}`, with the line.
fn named_modules(text: &str) -> Vec<(usize, String)> {
    let code: String = code_lines(text)
        .map(|(_, code)| format!("{code}\n"))
        .collect();
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
    let word = |text: &str| -> String {
        text.trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
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

// ---------------------------------------------------------------- the rules find what is planted

#[test]
fn an_adapter_that_names_another_is_found() {
    let text = "//! crate::bus in a comment is fine\nuse crate::engine::ports::Lease;\nuse crate::bus::Error;\n";
    assert_eq!(
        forbidden_imports(&source("src/store/mod.rs", text)),
        ["line 3: store names bus"]
    );
}

#[test]
fn a_grouped_import_and_a_path_in_the_code_are_found() {
    let text = "use crate::{\n    engine::ports::{A, B},\n    store::C,\n};\nfn f() { crate::cli::run(); }\n";
    assert_eq!(
        forbidden_imports(&source("src/engine/run.rs", text)),
        ["line 1: engine names store", "line 5: engine names cli"]
    );
}

#[test]
fn a_way_around_the_rule_is_found() {
    let found = forbidden_imports(&source("src/store/a.rs", "use super::super::bus::Error;\n"));
    assert_eq!(
        found,
        ["line 1: super::super:: hides what is named; write crate::"]
    );
}

#[test]
fn the_core_may_name_itself_only() {
    let text = "use crate::investigation::ids::SessionId;\nuse crate::config::yaml::Value;\n";
    assert_eq!(
        forbidden_imports(&source("src/investigation/a.rs", text)),
        ["line 2: investigation names config"]
    );
}

#[test]
fn the_composition_roots_may_name_everything() {
    let text = "use crate::{bus, store, llm, mcp, telemetry};\n";
    assert_eq!(
        forbidden_imports(&source("src/roles/worker/mod.rs", text)),
        Vec::<String>::new()
    );
}

#[test]
fn waiting_and_clocks_in_the_core_are_found() {
    let text = "pub async fn f() {\n    g().await; // .await\n    let now = Utc::now();\n}\n";
    assert_eq!(
        impurities(&source("src/investigation/a.rs", text)),
        ["line 1: async fn", "line 2: .await", "line 3: Utc::now"]
    );
}

#[test]
fn an_import_that_the_fuzzers_lack_is_found() {
    let crates = dependencies(
        "[package]\nname = \"a\"\n\n[dependencies]\nquick-xml = \"1\"\n\n[lib]\nname = \"b\"\n",
    );
    let text = "use std::fmt;\nuse quick_xml::Reader;\n// use quick_xml::Writer;\n";
    let found = imports(&source("src/investigation/a.rs", text), &crates);
    assert_eq!(found, ["line 2: fuzz/Cargo.toml needs quick_xml"]);
}

#[test]
fn a_folder_with_sixteen_files_is_found() {
    let paths: Vec<String> = (0..=MAX_FILES)
        .map(|number| format!("src/new/f{number}.rs"))
        .collect();
    assert_eq!(crowded_folders(&paths), ["src/new: 16 files, at most 15"]);
    assert_eq!(crowded_folders(&paths[1..]), Vec::<String>::new());
}

#[test]
fn a_test_that_looks_like_production_code_is_found() {
    let text = "#[cfg(test)]\nmod endings;\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\npub(crate) mod testing;\n";
    let found = disguised_tests(&source("src/engine/mod.rs", text));
    assert_eq!(found, ["line 2: endings is a test without the name of one"]);
}
