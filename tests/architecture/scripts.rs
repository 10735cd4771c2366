//! Rules about scripts: short files, and a `./dev` of parts that `./dev check` reads.

use super::*;

const MAX_LINES: usize = 400;
/// Of a part of `./dev`.
const MAX_PART_LINES: usize = 250;

#[test]
fn every_script_stays_short() {
    let scripts = scripts();
    for known in ["dev", "dev.d/run.sh", ".ci/mutants", "docs/make-picture"] {
        let is_read = scripts.iter().any(|script| script.path == known);
        assert!(is_read, "{known} is not read");
    }
    assert_none(&scripts, too_long);
}

/// The shell check reads the parts through `./dev` only.
#[test]
fn dev_sources_each_of_its_parts() {
    let dev = read("dev").unwrap();
    let parts = files_below("dev.d", |_| true);
    assert!(parts.len() > 10, "the parts are read");
    assert_eq!(unsourced(&dev, &parts), Vec::<String>::new());
}

#[test]
fn the_toolchain_is_the_rust_version_of_the_manifest() {
    let toolchain = read("rust-toolchain.toml").unwrap().text;
    let manifest = read("Cargo.toml").unwrap().text;
    let channel = quoted(&toolchain, "channel = ").unwrap();
    let oldest = quoted(&manifest, "rust-version = ").unwrap();
    assert_eq!(format!("{oldest}.0"), channel);
}

fn scripts() -> Vec<Source> {
    let trees = [
        ".ci", "benches", "crates", "deploy", "dev.d", "docs", "examples", "fuzz", "src", "tests",
    ];
    let below = trees
        .into_iter()
        .flat_map(|tree| files_below(tree, |path| !path.contains("/target/")));
    let files = below.chain(read("dev"));
    files.filter(is_script).collect()
}

fn is_script(file: &Source) -> bool {
    let first = file.text.lines().next().unwrap_or_default();
    let of_a_shell = ["sh", "bash", "python"]
        .iter()
        .any(|program| first.contains(program));
    let is_named = [".sh", ".py"].iter().any(|end| file.path.ends_with(end));
    is_named || (first.starts_with("#!") && of_a_shell)
}

/// The text in the quotes after a key at the beginning of a line.
fn quoted<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split('"').nth(1)
}

// ---------------------------------------------------------------- rules: a file in, one line a violation out

fn too_long(script: &Source) -> Vec<String> {
    let most = if script.path.starts_with("dev.d/") {
        MAX_PART_LINES
    } else {
        MAX_LINES
    };
    let lines = script.text.lines().count();
    if lines <= most {
        return Vec::new();
    }
    vec![format!("{lines} lines, at most {most}")]
}

fn unsourced(dev: &Source, parts: &[Source]) -> Vec<String> {
    let is_sourced = |part: &&Source| {
        let command = format!(". {}", part.path);
        dev.text.lines().any(|line| line == command)
    };
    parts
        .iter()
        .filter(|part| !is_sourced(part))
        .map(|part| format!("dev does not source {}", part.path))
        .collect()
}

// ---------------------------------------------------------------- the rules find what is planted

#[test]
fn a_long_script_is_found() {
    let text = "\n".repeat(MAX_LINES + 1);
    for path in ["dev", ".ci/new", "tests/new.py"] {
        assert_eq!(
            too_long(&source(path, &text)),
            ["401 lines, at most 400"],
            "{path}"
        );
    }
    let part = source("dev.d/new.sh", &"\n".repeat(MAX_PART_LINES + 1));
    assert_eq!(too_long(&part), ["251 lines, at most 250"]);
    let short = source("dev", &"\n".repeat(MAX_LINES));
    assert_eq!(too_long(&short), Vec::<String>::new());
}

#[test]
fn a_script_is_found_by_its_first_line_or_its_name() {
    let found = |path: &str, text: &str| is_script(&source(path, text));
    assert!(found(".ci/a", "#!/usr/bin/env bash\n"));
    assert!(found(".ci/a", "#!/usr/bin/env python3\n"));
    assert!(found("tests/a.py", "import os\n"));
    assert!(found("dev.d/a.sh", "f() { :; }\n"));
    assert!(!found("docs/a.md", "a script in bash\n"));
    assert!(!found("tests/it/a.rs", "#![expect(dead_code)]\n"));
}

#[test]
fn a_part_that_is_not_sourced_is_found() {
    let dev = source("dev", ". dev.d/a.sh\n# . dev.d/b.sh\n");
    let parts = ["dev.d/a.sh", "dev.d/b.sh"].map(|path| source(path, ""));
    assert_eq!(unsourced(&dev, &parts), ["dev does not source dev.d/b.sh"]);
}
