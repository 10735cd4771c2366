//! The labels in the text of an alert: a line `key: value`, `key=value` within a line, or a line with the name of a
//! label before one with its value.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use super::MAX_LABELS;

/// A longer key or value is none of a label.
const MAX_BYTES: usize = 300;

/// The query that finds the sessions whose alert has a label. Upper and lower case differ.
pub fn label_query(key: &str, value: &str) -> String {
    format!("'{}'", label_word(key, value))
}

/// The labels of a text as words.
pub(super) fn label_words(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut name = None;
    for line in text.lines() {
        let line = line.trim_matches([' ', '\t']);
        add(&mut found, of_line(line));
        if let Some(value) = line.strip_prefix("value: ").map(str::trim_start) {
            add(&mut found, name.map(|name| (name, value)));
        }
        name = ["name: ", "tag: ", "key: "]
            .into_iter()
            .find_map(|prefix| line.strip_prefix(prefix));
        for pair in pairs(line) {
            add(&mut found, Some(pair));
        }
        if found.len() >= MAX_LABELS {
            break;
        }
    }
    found
}

fn add(found: &mut BTreeSet<String>, label: Option<(&str, &str)>) {
    let is_label = |text: &str| !text.is_empty() && text.len() <= MAX_BYTES;
    if let Some((key, value)) = label.filter(|(key, value)| is_label(key) && is_label(value))
        && found.len() < MAX_LABELS
    {
        found.insert(label_word(key, value));
    }
}

/// The word of a label, which has `=`; no word of a text has one.
fn label_word(key: &str, value: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(key);
    hash.update([0]);
    hash.update(value);
    hash.finalize()
        .iter()
        .take(8)
        .fold("=".to_owned(), |word, byte| word + &format!("{byte:02x}"))
}

/// `key: value` or `key:value`, also in a list: after `- ` or a number.
fn of_line(line: &str) -> Option<(&str, &str)> {
    let numbered = line
        .split_once(": ")
        .filter(|(number, _)| number.bytes().all(|digit| digit.is_ascii_digit()));
    let item = numbered
        .map(|(_, item)| item)
        .or_else(|| line.strip_prefix("- "))
        .unwrap_or(line);
    item.split_once(": ")
        .or_else(|| item.split_once(':'))
        .filter(|(key, _)| !key.is_empty())
}

/// `key=value` between spaces, commas and braces; the value may be in quotes.
fn pairs(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_between = |c: char| c.is_whitespace() || matches!(c, ',' | '{' | '}');
    let mut rest = line;
    std::iter::from_fn(move || {
        let (before, after) = rest.split_once('=')?;
        let key = before.rsplit(is_between).next().unwrap_or_default();
        let quoted = after
            .strip_prefix('"')
            .and_then(|quoted| quoted.split_once('"'));
        let (value, others) = match quoted {
            Some((value, others)) => (value, others),
            None => after.split_at(after.find(is_between).unwrap_or(after.len())),
        };
        rest = others;
        Some((key, value))
    })
}
