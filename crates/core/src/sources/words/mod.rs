//! Words of monitoring systems: tables from words to values, and the words that all sources share.
//!
//! `pieces` cuts a word, `status` and `severity` judge its pieces in the languages of `tongues`.

mod list;
mod pieces;
mod tongues;
mod status;
mod severity;

use std::collections::BTreeMap;

pub use list::WordList;
pub use pieces::{key_pieces, pieces};
pub use severity::{is_severity_word, severity_of};
pub use status::{ended_of, status_of};

/// A table of words in any case. A word that ends with `*` represents all that begin with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordTable<T> {
    exact: BTreeMap<String, T>,
    /// The longest first.
    prefixes: Vec<(String, T)>,
}

impl<T: Copy> WordTable<T> {
    /// Adds a word; a later one of the same spelling replaces it.
    pub fn insert(&mut self, word: &str, value: T) {
        let word = plain(word);
        match word.strip_suffix('*') {
            Some(prefix) => {
                self.prefixes.push((prefix.to_owned(), value));
                self.prefixes
                    .sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
            }
            None => {
                self.exact.insert(word, value);
            }
        }
    }

    /// The values of all words.
    pub fn values(&self) -> impl Iterator<Item = T> + '_ {
        self.exact
            .values()
            .copied()
            .chain(self.prefixes.iter().map(|(_, value)| *value))
    }

    /// The value of a word: that of the whole word before that of the longest prefix.
    pub fn get(&self, word: &str) -> Option<T> {
        let word = plain(word);
        self.exact.get(&word).copied().or_else(|| {
            self.prefixes
                .iter()
                .find(|(prefix, _)| word.starts_with(prefix))
                .map(|(_, value)| *value)
        })
    }
}

impl FromIterator<String> for WordTable<()> {
    fn from_iter<I: IntoIterator<Item = String>>(words: I) -> Self {
        let mut table = Self::default();
        words.into_iter().for_each(|word| table.insert(&word, ()));
        table
    }
}

fn plain(word: &str) -> String {
    word.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_counts_in_any_case_and_before_a_prefix() {
        let mut table = WordTable::default();
        for (word, value) in [
            ("Incident.*", 1),
            ("incident.responder.*", 2),
            ("INCIDENT.RESPONDER.ADDED", 3),
        ] {
            table.insert(word, value);
        }
        for (word, expected) in [
            ("incident.Responder.added", Some(3)),
            (" incident.responder.replied ", Some(2)),
            ("incident.x", Some(1)),
            ("incident", None),
        ] {
            assert_eq!(table.get(word), expected, "{word}");
        }
    }
}
