//! Rules about documents, comments and tables: names of tests, metrics, migrations, and readable comments.

use super::*;

const MAX_COLUMNS: usize = 120;

#[test]
fn each_message_of_the_page_about_trouble_is_one_of_the_program() {
    let is_source = |path: &str| path.ends_with(".rs") || path.ends_with(".sql");
    let texts: String = program_files(is_source)
        .into_iter()
        .map(|source| source.text)
        .collect();
    let page = read("docs/troubleshooting.md").unwrap();
    assert!(
        page.text.matches("– `").count() > 5,
        "the page quotes messages"
    );
    assert_eq!(unknown_messages(&page, &texts), Vec::<String>::new());
    let wrong = Source {
        path: String::new(),
        text: "– `the moon is full`".to_owned(),
    };
    assert_eq!(unknown_messages(&wrong, &texts).len(), 1);
}

#[test]
fn no_file_names_a_machine() {
    let mut files = all_sources();
    for tree in [
        "dev.d",
        "docs",
        "examples",
        "migrations",
        "proto",
        "deploy",
        "tests",
    ] {
        files.extend(files_below(tree, |path| !path.ends_with(".rs")));
    }
    files.extend(
        [
            "README.md",
            "ARCHITECTURE.md",
            "CONTRIBUTING.md",
            "dev",
            "rust-toolchain.toml",
            ".ci/run",
            "Cargo.toml",
            "deny.toml",
        ]
        .into_iter()
        .filter_map(read),
    );
    assert_none(&files, machine_paths);
}

#[test]
fn every_module_that_the_map_names_exists() {
    let map = read("ARCHITECTURE.md").unwrap();
    assert!(map.text.matches("`core/").count() > 10, "the map is read");
    assert_eq!(missing_modules(&map), Vec::<String>::new());
    let wrong = source(
        "ARCHITECTURE.md",
        "`core/gone/`, `roles/worker/`, `roles/gone.rs`, `a/b`",
    );
    assert_eq!(
        missing_modules(&wrong),
        ["no module core/gone/", "no module roles/gone.rs"]
    );
}

#[test]
fn every_metric_that_is_counted_stands_in_the_table() {
    assert_none(&program(), unknown_metrics);
}

#[test]
fn every_metric_of_the_table_is_counted_somewhere() {
    let code = program()
        .into_iter()
        .filter(|source| !source.path.starts_with("crates/telemetry/src/names"));
    let code: String = code
        .map(|source| without_tests(&source.text).to_owned())
        .collect();
    let names = all().map(|metric| format!("\"{}\"", metric.name));
    assert_eq!(
        names
            .filter(|name| !code.contains(name))
            .collect::<Vec<_>>(),
        Vec::<String>::new()
    );
}

#[test]
fn every_test_that_a_document_names_exists() {
    let tests: String = all_sources()
        .into_iter()
        .map(|source| source.text)
        .collect();
    assert_none(&documents(), |document| unknown_tests(document, &tests));
}

#[test]
fn every_file_that_a_document_names_exists() {
    let decided = "docs/decisions/";
    let current: Vec<Source> = documents()
        .into_iter()
        .filter(|document| !document.path.starts_with(decided))
        .collect();
    assert_none(&current, missing_files);
}

#[test]
fn no_comment_is_wider_than_the_page() {
    assert_none(&all_sources(), wide_comments);
}

#[test]
fn no_doc_comment_is_a_single_word() {
    assert_none(&program(), one_word_docs);
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
    assert_eq!(
        missing,
        Vec::<PathBuf>::new(),
        "up.sql or down.sql is missing"
    );
}

// ---------------------------------------------------------------- rules: a file in, one line a violation out

/// A macro with a name written out whose name or labels the table does not have.
fn unknown_metrics(source: &Source) -> Vec<String> {
    code_lines(&source.text)
        .filter_map(|(line, code)| {
            let (_, call) = ["counter!(\"", "gauge!(\"", "histogram!(\""]
                .iter()
                .find_map(|m| code.split_once(m))?;
            let name = call.split('"').next()?;
            let keys = call
                .match_indices("=>")
                .filter_map(|(at, _)| call[..at].rsplit('"').nth(1));
            let known = all().find(|metric| metric.name == name);
            let Some(metric) = known else {
                return Some(format!("line {line}: {name} is not in names.rs"));
            };
            let labels: Vec<_> = metric.keys().collect();
            (!keys.eq(labels.iter().copied()))
                .then(|| format!("line {line}: {name} has the labels {labels:?}"))
        })
        .collect()
}

fn machine_paths(source: &Source) -> Vec<String> {
    // Put together here so that this file does not find itself.
    let places = ["/home", "/root", "/Users", "/mnt"].map(|place| format!("{place}/"));
    let lines = source.text.lines().enumerate();
    lines
        .flat_map(|(index, line)| {
            let found = places
                .iter()
                .filter(move |place| line.contains(place.as_str()));
            found.map(move |place| format!("line {}: {place}", index + 1))
        })
        .collect()
}

/// Words in back quotes with more than four underscores are names of tests.
fn unknown_tests(document: &Source, tests: &str) -> Vec<String> {
    // Names of variables have upper-case letters.
    let is_test = |word: &&str| {
        word.matches('_').count() > 4 && !word.contains(|c: char| c == ' ' || c.is_uppercase())
    };
    let words = document.text.split('`').skip(1).step_by(2).filter(is_test);
    words
        .filter(|word| !tests.contains(&format!("fn {word}(")))
        .map(|word| format!("no test {word}"))
        .collect()
}

/// Messages of the program in a page, each after a dash, that no source has.
fn unknown_messages(document: &Source, sources: &str) -> Vec<String> {
    let quoted = document
        .text
        .split("– `")
        .skip(1)
        .filter_map(|rest| rest.split_once('`'))
        .map(|(message, _)| message);
    quoted
        .filter(|message| !sources.contains(message))
        .map(|message| format!("no source has {message:?}"))
        .collect()
}

/// Targets of links, and paths in back quotes below a folder of this repository.
fn missing_files(document: &Source) -> Vec<String> {
    let folder = document
        .path
        .rsplit_once('/')
        .map_or("", |(folder, _)| folder);
    let links = document
        .text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target);
    let links = links.filter(|target| !target.contains("://") && !target.starts_with('#'));
    let links = links.map(|target| {
        (
            target,
            root()
                .join(folder)
                .join(target.split('#').next().unwrap_or_default()),
        )
    });
    let quoted = document.text.split('`').skip(1).step_by(2);
    let trees = [
        "src/",
        "tests/",
        "docs/",
        "examples/",
        "migrations/",
        "proto/",
        "deploy/",
    ];
    let quoted = quoted.filter(|word| trees.iter().any(|tree| word.starts_with(tree)));
    let quoted = quoted
        .filter(|word| !word.contains(['*', '<', '{', ' ', '\n']))
        .map(|word| (word, root().join(word)));
    links
        .chain(quoted)
        .filter(|(_, path)| !path.exists())
        .map(|(word, _)| format!("no file {word}"))
        .collect()
}

/// Paths in back quotes that begin with a crate or a folder of `src/`, as ARCHITECTURE.md writes them.
fn missing_modules(document: &Source) -> Vec<String> {
    let quoted = document.text.split('`').skip(1).step_by(2);
    let is_path = |word: &&str| {
        let of_a_path = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
        word.contains('/') && word.chars().all(of_a_path)
    };
    let folder = |word: &str| {
        let (first, rest) = word.split_once('/')?;
        let of_crate = root().join("crates").join(first);
        match first {
            "roles" | "admin" | "process" | "cli" => Some(root().join("src").join(word)),
            _ if !first.is_empty() && of_crate.is_dir() => Some(of_crate.join("src").join(rest)),
            _ => None,
        }
    };
    quoted
        .filter(is_path)
        .filter_map(|word| Some((word, folder(word)?)))
        .filter(|(_, path)| !path.exists())
        .map(|(word, _)| format!("no module {word}"))
        .collect()
}

fn wide_comments(source: &Source) -> Vec<String> {
    let comments = source
        .text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.trim_start().starts_with("//"));
    comments
        .map(|(index, line)| (index + 1, line.chars().count()))
        .filter(|(_, columns)| *columns > MAX_COLUMNS)
        .map(|(line, columns)| format!("line {line}: {columns} columns, at most {MAX_COLUMNS}"))
        .collect()
}

/// A doc comment of one word repeats the name that it stands above.
fn one_word_docs(source: &Source) -> Vec<String> {
    let doc = |line: &str| -> Option<String> {
        Some(line.trim_start().strip_prefix("///")?.trim().to_owned())
    };
    let lines: Vec<Option<String>> = source.text.lines().map(doc).collect();
    let neighbour = |index: usize| lines.get(index).is_some_and(Option::is_some);
    let alone = lines
        .iter()
        .enumerate()
        .filter(|(index, _)| !neighbour(index.wrapping_sub(1)) && !neighbour(index + 1));
    alone
        .filter_map(|(index, line)| Some((index + 1, line.as_deref()?)))
        .filter(|(_, text)| !text.contains(' '))
        .map(|(line, text)| format!("line {line}: a doc comment of one word: {text}"))
        .collect()
}

// ---------------------------------------------------------------- the rules find what is planted

#[test]
fn a_metric_or_a_label_outside_of_the_table_is_found() {
    let text = "counter!(\"tarsy_sessions_opened_total\").increment(1);\n\
                metrics::counter!(\"tarsy_sessions_finished_total\", \"outcome\" => word).increment(1);\n\
                gauge!(\"tarsy_surprises\").set(1.0);\n";
    assert_eq!(
        unknown_metrics(&source("crates/engine/src/a.rs", text)),
        [
            "line 2: tarsy_sessions_finished_total has the labels [\"status\"]",
            "line 3: tarsy_surprises is not in names.rs"
        ]
    );
}

#[test]
fn a_path_of_a_machine_is_found() {
    let text = ["let socket = \"/home", "/me/socket\";\n"].concat();
    assert_eq!(machine_paths(&source("tests/it/a.rs", &text)).len(), 1);
}

#[test]
fn a_test_that_does_not_exist_is_found() {
    let document = source(
        "docs/a.md",
        "`a_test_that_is_not_there_at_all` and `a_test_that_is_there_at_least`\n",
    );
    let found = unknown_tests(&document, "fn a_test_that_is_there_at_least() {");
    assert_eq!(found, ["no test a_test_that_is_not_there_at_all"]);
}

#[test]
fn a_link_or_a_path_that_leads_nowhere_is_found() {
    let text = "[one](../README.md#top) [two](gone.md) [three](https://example.com) `src/lib.rs` `src/gone.rs` `src/*/a`\n";
    assert_eq!(
        missing_files(&source("docs/a.md", text)),
        ["no file gone.md", "no file src/gone.rs"]
    );
}

#[test]
fn a_wide_comment_is_found() {
    let wide = format!("    // {}\n", "x".repeat(MAX_COLUMNS));
    let text = format!(
        "// narrow\n{wide}let url = \"{}\";\n",
        "x".repeat(MAX_COLUMNS)
    );
    assert_eq!(
        wide_comments(&source("src/new/a.rs", &text)),
        ["line 2: 127 columns, at most 120"]
    );
}

#[test]
fn a_doc_comment_of_one_word_is_found() {
    let text =
        "/// Name.\nname: String,\n/// Two words.\nlater: u8,\n/// A start\n/// ends.\nlast: u8,\n";
    assert_eq!(
        one_word_docs(&source("src/new/a.rs", text)),
        ["line 1: a doc comment of one word: Name."]
    );
}
