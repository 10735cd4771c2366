//! Rules about sentences: the first sentence of a file says what the file is, to a reader who opens it at random.

use super::*;

/// First words that leave a sentence without its subject, or that put a clause before it.
const DEPENDENT_WORDS: [&str; 40] = [
    "After", "Against", "Among", "And", "As", "At", "Before", "Behind", "Beside", "Between", "By",
    "For", "From", "How", "If", "In", "Into", "It", "Of", "On", "One", "Or", "Over", "So", "That",
    "These", "They", "This", "To", "Under", "Until", "What", "When", "Where", "Whether", "Which",
    "Who", "Whose", "Why", "With",
];

#[test]
fn the_first_sentence_of_a_file_begins_with_its_subject() {
    assert_none(&all_sources(), dependent_first_sentence);
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
