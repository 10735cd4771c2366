//! The glossary of ARCHITECTURE.md: its terms name the code, and the words that it rules out are used nowhere.

use super::*;

/// Subjects that hide who acts.
const PRONOUNS: [&str; 3] = ["nobody", "somebody", "whoever"];

#[test]
fn no_name_and_no_sentence_uses_a_word_that_the_glossary_rules_out() {
    let ruled_out = ruled_out(&glossary());
    assert!(ruled_out.len() > 10, "the column is read: {ruled_out:?}");
    assert_none(&all_sources(), |source| {
        uses(&ruled_out, &code_words(&source.text))
    });
    assert_none(&documents(), |document| {
        uses(&ruled_out, &prose_words(&document.text))
    });
}

#[test]
fn every_term_of_the_glossary_names_something_in_the_code() {
    let names: Vec<String> = program()
        .iter()
        .flat_map(|source| names_of(&source.text))
        .collect();
    assert_eq!(unused_terms(&glossary(), &names), Vec::<String>::new());
}

#[test]
fn no_sentence_hides_who_acts() {
    let pronouns: Vec<(String, String)> = PRONOUNS
        .map(|pronoun| (pronoun.to_owned(), "the thing that acts".to_owned()))
        .into();
    assert_none(&all_sources(), |source| {
        uses(&pronouns, &code_words(&source.text))
    });
    assert_none(&documents(), |document| {
        uses(&pronouns, &prose_words(&document.text))
    });
}

/// A row of the glossary: the term, and the words that are not used for it.
struct Term {
    name: String,
    instead_of: Vec<String>,
}

/// A word in lower case with the number of its line.
type Word = (usize, String);

fn glossary() -> Vec<Term> {
    let page = read("ARCHITECTURE.md").unwrap();
    terms(page.text.split("## Glossary").nth(1).unwrap())
}

fn terms(table: &str) -> Vec<Term> {
    let rows = table
        .lines()
        .filter_map(|line| line.strip_prefix("| **")?.split_once("** |"));
    rows.map(|(name, rest)| {
        let column = rest
            .trim_end()
            .trim_end_matches('|')
            .rsplit('|')
            .next()
            .unwrap();
        let instead_of = column
            .split(',')
            .map(|word| word.trim().trim_matches('*').to_owned());
        Term {
            name: name.to_owned(),
            instead_of: instead_of.filter(|word| !word.is_empty()).collect(),
        }
    })
    .collect()
}

/// Each ruled-out word, with the term that is used in its place.
fn ruled_out(terms: &[Term]) -> Vec<(String, String)> {
    terms
        .iter()
        .flat_map(|term| {
            term.instead_of
                .iter()
                .map(|word| (word.clone(), term.name.clone()))
        })
        .collect()
}

fn uses(ruled_out: &[(String, String)], words: &[Word]) -> Vec<String> {
    let mut found = Vec::new();
    for (phrase, term) in ruled_out {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        let same = |window: &&[Word]| {
            window
                .iter()
                .map(|(_, word)| word.as_str())
                .eq(phrase.iter().copied())
        };
        for window in words.windows(phrase.len()).filter(same) {
            found.push(format!(
                "line {}: {}: use {term}",
                window[0].0,
                phrase.join(" ")
            ));
        }
    }
    found
}

fn unused_terms(terms: &[Term], names: &[String]) -> Vec<String> {
    let squeezed = |text: &str| text.replace([' ', '-', '_'], "").to_lowercase();
    let names: Vec<String> = names.iter().map(|name| squeezed(name)).collect();
    let used = |term: &&Term| {
        names
            .iter()
            .any(|name| name.contains(&squeezed(&term.name)))
    };
    terms
        .iter()
        .filter(|term| !used(term))
        .map(|term| term.name.clone())
        .collect()
}

/// The names that the text defines: types, functions, modules, fields' types and constants.
fn names_of(text: &str) -> Vec<String> {
    let definition = |line: &str| -> Option<String> {
        let kinds = [
            "struct ", "enum ", "trait ", "fn ", "mod ", "const ", "type ",
        ];
        let (_, rest) = kinds.iter().find_map(|kind| line.split_once(kind))?;
        Some(
            rest.split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()?
                .to_owned(),
        )
    };
    code_lines(text)
        .filter_map(|(_, line)| definition(line))
        .collect()
}

/// The words of names and comments; the texts of literals are data.
fn code_words(text: &str) -> Vec<Word> {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(['"', '\'', '/']) {
        let (before, after) = rest.split_at(start);
        kept.push_str(before);
        let length = if after.starts_with("//") {
            let line = after.find('\n').unwrap_or(after.len());
            kept.push_str(&without_mentions(&after[..line]));
            line
        } else if after.starts_with('"') {
            literal(after, before)
        } else if let Some(quote) = ["'\"'", "'\\\"'", "'/'"]
            .iter()
            .find(|quote| after.starts_with(**quote))
        {
            quote.len()
        } else {
            1
        };
        kept.extend(
            after[..length]
                .matches('\n')
                .filter(|_| !after.starts_with("//")),
        );
        rest = &after[length..];
    }
    kept.push_str(rest);
    split(&kept)
}

/// The bytes of the literal that `text` begins with; `before` ends with the `r#` of a raw one.
fn literal(text: &str, before: &str) -> usize {
    let hashes = before.len() - before.trim_end_matches('#').len();
    if before.trim_end_matches('#').ends_with('r') {
        let end = format!("\"{}", "#".repeat(hashes));
        return text[1..]
            .find(&end)
            .map_or(text.len(), |at| 1 + at + end.len());
    }
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            c => escaped = c == '\\' && !escaped,
        }
    }
    text.len()
}

/// The words of a document, except for words in back quotes or between asterisks: those are mentions.
fn prose_words(text: &str) -> Vec<Word> {
    let lines = text.lines().map(without_mentions).collect::<Vec<_>>();
    split(&lines.join("\n"))
}

fn without_mentions(line: &str) -> String {
    let outside =
        |line: &str, mark: char| line.split(mark).step_by(2).collect::<Vec<_>>().join(" ");
    outside(&outside(&line.replace("**", ""), '`'), '*')
}

/// `hand_back`, `HandBack` and `hand back` are the same two words.
fn split(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut word = String::new();
        let mut was_lower = false;
        for c in line.chars().chain([' ']) {
            let starts = c.is_uppercase() && was_lower;
            if (starts || !c.is_alphabetic()) && !word.is_empty() {
                words.push((index + 1, std::mem::take(&mut word)));
            }
            if c.is_alphabetic() {
                word.extend(c.to_lowercase());
            }
            was_lower = c.is_lowercase();
        }
    }
    words
}

// ---------------------------------------------------------------- the rules find what is planted

const TABLE: &str = "\n| term | meaning | not |\n|---|---|---|\n| **release** | Giving back. | *hand back* |\n\
                     | **slot** | Room for one. | |\n| **worker status** | A state. | *news, gossip* |\n";

#[test]
fn a_ruled_out_word_is_found_in_names_and_comments_and_not_in_literals() {
    let ruled_out = ruled_out(&terms(TABLE));
    let code = "fn hand_back() {}\n/// No news.\nlet text = \"news // \\\" gossip\";\nstruct HandBack; // r#\"\n\
                let raw = r#\"news\" gossip\"#; let quote = '\"'; let news = 1; // `news` is a word\n";
    let found = uses(&ruled_out, &code_words(code));
    let expected = [
        "line 1: hand back: use release",
        "line 4: hand back: use release",
        "line 2: news: use worker status",
        "line 5: news: use worker status",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_ruled_out_word_is_found_in_a_document_unless_it_is_a_mention() {
    let found = uses(
        &ruled_out(&terms(TABLE)),
        &prose_words("They hand\nback. *news* `news`\n**News**\n"),
    );
    assert_eq!(
        found,
        [
            "line 1: hand back: use release",
            "line 3: news: use worker status"
        ]
    );
}

#[test]
fn a_term_that_names_nothing_is_found() {
    let names = names_of("pub struct WorkerStatus;\nfn release_all() {}\n// struct Slot\n");
    assert_eq!(unused_terms(&terms(TABLE), &names), ["slot"]);
}
