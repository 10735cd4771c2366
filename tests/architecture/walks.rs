//! The walks of CONTRIBUTING.md: the example of each occurs in the files that it names and in no other. The pages that
//! repeat the table of providers have it as it is.

use std::collections::BTreeSet;

use super::*;
use tarsy_core::vocabulary::provider::PROVIDERS;
use tarsy_core::vocabulary::{Protocol, Provider};

/// An addition with its example, and the files that it takes.
#[derive(Debug, PartialEq, Eq)]
struct Walk {
    title: String,
    examples: Vec<String>,
    files: Vec<String>,
}

#[test]
fn each_walk_names_exactly_the_files_of_its_example() {
    let walks = walks(&read("CONTRIBUTING.md").unwrap().text);
    assert_eq!(walks.len(), 5, "{walks:#?}");
    let files = searched();
    let wrong: Vec<String> = walks
        .iter()
        .flat_map(|walk| differences(walk, &files))
        .collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn a_list_that_no_walk_names_and_a_file_without_the_example_are_found() {
    let page = "**Walk: a thing**, such as `one` (`One`):\n\n- `a.rs`: a line.\n- `b/`, `c.rs`: data.\n\nMore `text`.\n";
    let [walk] = walks(page).try_into().unwrap();
    assert_eq!(walk.examples, ["one", "One"]);
    assert_eq!(walk.files, ["a.rs", "b/", "c.rs"]);
    let files = [
        source("a.rs", "const WORDS: [&str; 1] = [\"one\"];"),
        source("b/data.yaml", "name: one"),
        source(
            "c.rs",
            "alone, ones, one_more\n#[cfg(test)]\nmod tests {\n    \"one\"\n}",
        ),
        source("d.rs", "match word { \"one\" => 1 }"),
    ];
    assert_eq!(
        differences(&walk, &files),
        [
            "a thing: d.rs has the example, and CONTRIBUTING.md does not name it",
            "a thing: CONTRIBUTING.md names c.rs, which has no example",
        ]
    );
}

#[test]
fn the_page_lists_every_provider_as_the_table_has_it() {
    let page = read("docs/configuration.md").unwrap().text;
    let rows: Vec<&str> = page
        .split("| provider | interface |")
        .nth(1)
        .unwrap()
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    assert_eq!(rows, PROVIDERS.iter().map(row).collect::<Vec<_>>());
}

/// The row of a provider in the documentation.
fn row(provider: &Provider) -> String {
    let interface = match provider.protocol {
        Protocol::Gemini => "Gemini's own",
        Protocol::OpenAi => "Responses for the models of OpenAI, chat completions for any other",
        Protocol::Chat => "chat completions",
        Protocol::ChatOnly => "chat completions only",
        Protocol::Messages => "Messages",
        Protocol::Converse => "Converse",
        Protocol::Recording => "none: it replays recordings",
    };
    let quoted = |word: &str| format!("`{word}`");
    let keys: Vec<String> = provider.keys.iter().map(|key| quoted(key)).collect();
    let own = provider
        .addresses
        .first()
        .filter(|address| !address.contains('*'));
    let own = own.map(|address| quoted(&format!("{address}{}", provider.path)));
    let variable = Some(provider.base_url_variable).filter(|name| !name.is_empty());
    let addresses: Vec<String> = own.into_iter().chain(variable.map(quoted)).collect();
    let or_none = |words: Vec<String>, separator: &str| {
        if words.is_empty() {
            "none".to_owned()
        } else {
            words.join(separator)
        }
    };
    format!(
        "| `{}` | {interface} | {} | {} |",
        provider.name,
        or_none(keys, ", "),
        or_none(addresses, ", or ")
    )
}

/// The walks of a page: a paragraph that begins with `**Walk: `, and the list after it.
fn walks(page: &str) -> Vec<Walk> {
    let mut walks = Vec::new();
    for part in page.split("**Walk: ").skip(1) {
        let (head, list) = part.split_once(":\n\n").unwrap();
        let (title, rest) = head.split_once("**").unwrap();
        let items = list.lines().take_while(|line| line.starts_with("- "));
        let files = items.flat_map(|item| code_spans(item.split("`: ").next().unwrap()));
        walks.push(Walk {
            title: title.to_owned(),
            examples: code_spans(rest),
            files: files.collect(),
        });
    }
    walks
}

/// The texts between backticks.
fn code_spans(text: &str) -> Vec<String> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Every file in which an addition may need a line: no tests and their data, no history and no page of rules.
fn searched() -> Vec<Source> {
    let is_text = |path: &str| {
        [
            ".rs", ".md", ".yaml", ".tpl", ".sql", ".proto", ".json", ".toml", ".js", ".css",
        ]
        .iter()
        .any(|end| path.ends_with(end))
    };
    let trees = [
        "src", "crates", "docs", "examples", "deploy", "proto", "benches",
    ];
    let files = trees
        .into_iter()
        .flat_map(|tree| files_below(tree, is_text));
    files
        .filter(|file| !is_test(&file.path) && !file.path.starts_with("docs/decisions/"))
        .collect()
}

fn differences(walk: &Walk, files: &[Source]) -> Vec<String> {
    let has_example = |file: &&Source| {
        walk.examples
            .iter()
            .any(|example| has_word(without_tests(&file.text), example))
    };
    let found: BTreeSet<&str> = files
        .iter()
        .filter(has_example)
        .map(|file| file.path.as_str())
        .collect();
    let is_named = |path: &&str| {
        walk.files
            .iter()
            .any(|named| path == named || (named.ends_with('/') && path.starts_with(named)))
    };
    let is_needless = |named: &&String| !found.iter().any(|path| path.starts_with(named.as_str()));
    let unnamed = found.iter().filter(|path| !is_named(path)).map(|path| {
        format!(
            "{}: {path} has the example, and CONTRIBUTING.md does not name it",
            walk.title
        )
    });
    let needless = walk.files.iter().filter(is_needless).map(|named| {
        format!(
            "{}: CONTRIBUTING.md names {named}, which has no example",
            walk.title
        )
    });
    unnamed.chain(needless).collect()
}

/// Whether a text has a word, and not only as a part of another one.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
    })
}
