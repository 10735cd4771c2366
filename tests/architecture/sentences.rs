//! Rules about sentences: the first sentence of a file or item names it, for a reader who opens the file at random.

use super::*;

/// First words that leave a sentence without its subject, or that put a clause before it.
const DEPENDENT_WORDS: [&str; 40] = [
    "After", "Against", "Among", "And", "As", "At", "Before", "Behind", "Beside", "Between", "By",
    "For", "From", "How", "If", "In", "Into", "It", "Of", "On", "One", "Or", "Over", "So", "That",
    "These", "They", "This", "To", "Under", "Until", "What", "When", "Where", "Whether", "Which",
    "Who", "Whose", "Why", "With",
];

/// First words of a clause that takes the place of a noun: "What a claim became" is the outcome of a claim.
const QUESTION_WORDS: [&str; 8] = [
    "How", "What", "When", "Where", "Which", "Who", "Whose", "Why",
];
/// Words of a doc that add nothing to the name of its item.
const FILL_WORDS: [&str; 9] = ["a", "all", "an", "each", "every", "its", "of", "one", "the"];

#[test]
fn the_first_sentence_of_a_file_begins_with_its_subject() {
    assert_none(&all_sources(), dependent_first_sentence);
}

#[test]
fn no_doc_begins_with_a_question_word() {
    assert_none(&without_help(), question_docs);
}

#[test]
fn no_doc_only_repeats_the_name_of_its_item() {
    assert_none(&without_help(), repeated_names);
}

#[test]
fn no_comment_uses_an_idiom_for_continue() {
    assert_none(&without_help(), idioms);
}

/// The sources without the arguments of commands: their docs are help texts, where `How long to wait` is usual.
fn without_help() -> Vec<Source> {
    let is_help =
        |path: &str| path.contains("cli") && (path.contains("/args") || path.ends_with("/view.rs"));
    all_sources()
        .into_iter()
        .filter(|source| !is_help(&source.path))
        .collect()
}

// ---------------------------------------------------------------- rules: a file in, one line a violation out

/// A module doc that begins with a preposition, a pronoun or a question word.
fn dependent_first_sentence(source: &Source) -> Vec<String> {
    let first = source
        .text
        .lines()
        .enumerate()
        .find_map(|(index, line)| Some((index + 1, line.strip_prefix("//! ")?)));
    first
        .filter(|(_, doc)| DEPENDENT_WORDS.contains(&first_word(doc)))
        .map(|(line, doc)| format!("line {line}: begins with {:?}: {doc}", first_word(doc)))
        .into_iter()
        .collect()
}

/// A doc comment that begins with a question word.
fn question_docs(source: &Source) -> Vec<String> {
    doc_comments(&source.text)
        .filter(|(_, doc)| QUESTION_WORDS.contains(&first_word(doc)))
        .map(|(line, doc)| format!("line {line}: begins with a question word: {doc}"))
        .collect()
}

/// A doc comment of one line whose words are all in the name of its item.
fn repeated_names(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let is_doc = |index: usize| lines.get(index).is_some_and(|line| line.starts_with("///"));
    let item = |doc: usize| {
        let rest = lines.iter().skip(doc + 1);
        rest.copied().find(|line| !line.starts_with("#["))
    };
    doc_comments(&source.text)
        .filter(|(line, doc)| !is_doc(*line) && !doc.contains('`'))
        .filter(|(line, doc)| item(line - 1).is_some_and(|item| repeats(doc, name_of(item))))
        .map(|(line, doc)| format!("line {line}: repeats the name: {doc}"))
        .collect()
}

fn repeats(doc: &str, name: &str) -> bool {
    let name = words_of(name);
    let mut said = words_of(doc);
    said.retain(|word| !FILL_WORDS.contains(&word.as_str()));
    !said.is_empty() && said.iter().all(|word| name.contains(word))
}

/// The name that a line defines: that of an item, a field or a variant.
fn name_of(line: &str) -> &str {
    let after_visibility = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ").map_or("", |(_, item)| item),
        None => line.strip_prefix("pub ").unwrap_or(line),
    };
    let kinds = [
        "async fn ",
        "const fn ",
        "const ",
        "static ",
        "fn ",
        "struct ",
        "enum ",
        "trait ",
        "type ",
        "mod ",
    ];
    let named = kinds
        .iter()
        .find_map(|kind| after_visibility.strip_prefix(kind))
        .unwrap_or(after_visibility);
    named
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
        .unwrap_or_default()
}

/// The words of a name or a sentence in lower case, without the `s` of a plural.
fn words_of(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in text.chars() {
        if !c.is_alphabetic() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = c.is_lowercase();
        if let (true, Some(word)) = (c.is_alphabetic(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    let singular = |word: String| match word.strip_suffix('s') {
        Some(stem) if word.len() > 3 => stem.to_owned(),
        _ => word,
    };
    words.into_iter().map(singular).collect()
}

/// The private idiom of this code base for work that continues.
fn idioms(source: &Source) -> Vec<String> {
    let comments = source.text.lines().enumerate();
    comments
        .filter(|(_, line)| line.trim_start().starts_with("//"))
        .filter(|(_, line)| {
            [" goes on", " go on ", " go on."]
                .iter()
                .any(|idiom| line.contains(idiom))
        })
        .map(|(index, line)| format!("line {}: write continues: {}", index + 1, line.trim()))
        .collect()
}

/// The first line of each doc comment of an item, with its number.
fn doc_comments(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_inside = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let doc = line.trim_start().strip_prefix("///").map(str::trim);
        let is_first = doc.is_some() && !is_inside;
        is_inside = doc.is_some();
        doc.filter(|_| is_first).map(|doc| (index + 1, doc))
    })
}

fn first_word(sentence: &str) -> &str {
    let end = sentence
        .find(|c: char| !c.is_alphanumeric())
        .unwrap_or(sentence.len());
    &sentence[..end]
}

// ---------------------------------------------------------------- the rules find what is planted

#[test]
fn a_file_that_begins_with_a_clause_is_found() {
    let begins = |doc: &str| dependent_first_sentence(&source("src/new/a.rs", doc)).len();
    assert_eq!(begins("//! What a worker costs.\n"), 1);
    assert_eq!(begins("#![no_std]\n//! Why, and when.\n//! The rest.\n"), 1);
    assert_eq!(begins("//! The cost of a worker.\n//! What it is.\n"), 0);
    assert_eq!(begins("//! Answers of workers.\n//!\n//! In order.\n"), 0);
}

#[test]
fn a_doc_that_begins_with_a_question_word_is_found() {
    let text = "/// What a claim became.\nenum Claim {\n    /// Why, for people.\n    why: String,\n}\n\
                /// The cost.\n/// What it is.\nfn cost() {}\nlet text = \"/// What\";\n";
    assert_eq!(
        question_docs(&source("src/new/a.rs", text)),
        [
            "line 1: begins with a question word: What a claim became.",
            "line 3: begins with a question word: Why, for people."
        ]
    );
}

#[test]
fn a_doc_that_repeats_the_name_of_its_item_is_found() {
    let found = |text: &str| repeated_names(&source("src/new/a.rs", text)).len();
    assert_eq!(
        found("/// The status of a worker.\n#[derive(Debug)]\npub struct WorkerStatus {\n"),
        1
    );
    assert_eq!(
        found("    /// All seeds.\n    pub(crate) fn seeds() {}\n"),
        1
    );
    assert_eq!(found("    /// The end of a line.\n    LineEnd,\n"), 1);
    assert_eq!(
        found("    /// The offset after the line.\n    line_end: usize,\n"),
        0
    );
    assert_eq!(
        found("/// The status of a worker.\n///\n/// In words.\nstruct WorkerStatus;\n"),
        0
    );
}

#[test]
fn an_idiom_for_continue_is_found() {
    let text =
        "//! The session goes on.\nlet text = \"it goes on\"; // code\n// They may go on later.\n";
    assert_eq!(idioms(&source("src/new/a.rs", text)).len(), 2);
}
