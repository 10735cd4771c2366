//! Rules about the layers: the core does no I/O, paths are written in one form, and folders have a limited number of
//! files. The manifests of the crates decide which ring may name which.

use super::*;

/// Pure: no async, no I/O, no clock, no randomness.
const PURE: [&str; 2] = ["crates/core/src", "crates/mask/src"];
const MAX_FILES: usize = 15;

#[test]
fn a_path_names_where_it_starts() {
    assert_none(&program(), ways_around);
}

#[test]
fn the_core_is_pure() {
    for tree in PURE {
        let code = sources(tree)
            .into_iter()
            .filter(|source| !is_test(&source.path));
        assert_none(&code.collect::<Vec<_>>(), impurities);
    }
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
    assert_none(&program(), disguised_tests);
}

// ---------------------------------------------------------------- rules: a file in, one line a violation out

fn ways_around(source: &Source) -> Vec<String> {
    code_lines(&source.text)
        .filter(|(_, code)| code.contains("super::super::"))
        .map(|(line, _)| format!("line {line}: super::super:: hides what is named; write crate::"))
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

// ---------------------------------------------------------------- the rules find what is planted

#[test]
fn a_way_around_the_rule_is_found() {
    let found = ways_around(&source(
        "crates/store/src/a.rs",
        "use super::super::bus::Error;\n",
    ));
    assert_eq!(
        found,
        ["line 1: super::super:: hides what is named; write crate::"]
    );
}

#[test]
fn waiting_and_clocks_in_the_core_are_found() {
    let text = "pub async fn f() {\n    g().await; // .await\n    let now = Utc::now();\n}\n";
    assert_eq!(
        impurities(&source("crates/core/src/a.rs", text)),
        ["line 1: async fn", "line 2: .await", "line 3: Utc::now"]
    );
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
    let found = disguised_tests(&source("crates/engine/src/mod.rs", text));
    assert_eq!(found, ["line 2: endings is a test without the name of one"]);
}
