//! Splits texts into search words.

use std::collections::BTreeSet;

use super::labels::label_words;
use super::{MAX_TEXT_BYTES, MAX_WORDS};
use crate::readable::text::beginning;

/// A shorter word is none, of a longer one the beginning counts.
const MIN_WORD_BYTES: usize = 2;
const MAX_WORD_BYTES: usize = 64;
/// Characters that join the parts of one word, as in `shop-7d9f-x2` and `10.0.0.1`.
const JOINERS: [char; 3] = ['.', '_', '-'];

/// The texts of a session in which people search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Searchable {
    pub title: String,
    pub alert_type: String,
    /// The text of the alert, or the question.
    pub text: String,
    pub summary: Option<String>,
    pub analysis: Option<String>,
}

impl Searchable {
    /// Every word of the session.
    pub fn words(&self) -> Vec<String> {
        let mut words = alert_words(&[&self.title, &self.alert_type], &self.text);
        let analysis = analysis_words(self.summary.as_deref(), self.analysis.as_deref());
        words.extend(analysis);
        words
    }
}

/// The words of an alert, at most 250: first those of `heads`, its title and type, then those of its text in their
/// order. After them its labels, at most 500, each as `=` and 16 hexadecimal digits.
pub fn alert_words(heads: &[&str], text: &str) -> Vec<String> {
    let text = beginning(text, MAX_TEXT_BYTES);
    let mut words = Words::default();
    heads.iter().for_each(|head| words.add(head));
    words.add(text);
    words.0.into_iter().chain(label_words(text)).collect()
}

/// The words of an analysis, at most 250: first those of its summary, then what it sets as code, then the others.
pub fn analysis_words(summary: Option<&str>, analysis: Option<&str>) -> Vec<String> {
    let analysis = beginning(analysis.unwrap_or_default(), MAX_TEXT_BYTES);
    let mut words = Words::default();
    words.add(summary.unwrap_or_default());
    analysis
        .split('`')
        .skip(1)
        .step_by(2)
        .for_each(|code| words.add(code));
    words.add(analysis);
    words.0.into_iter().collect()
}

/// Distinct words, up to the bound.
#[derive(Debug, Default)]
struct Words(BTreeSet<String>);

impl Words {
    fn add(&mut self, text: &str) {
        for segment in segments(beginning(text, MAX_TEXT_BYTES)) {
            let parts = segment.split(JOINERS);
            // A segment without joiners is its only part.
            for part in std::iter::once(segment).chain(parts) {
                if self.0.len() >= MAX_WORDS {
                    return;
                }
                self.0.extend(word(part));
            }
        }
    }
}

/// The runs of letters, digits and joiners of a text.
pub(super) fn segments(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && !JOINERS.contains(&c))
        .map(|segment| segment.trim_matches(JOINERS))
        .filter(|segment| !segment.is_empty())
}

/// A segment as a word in lower case, of 2 to 64 bytes.
pub(super) fn word(segment: &str) -> Option<String> {
    let lower = beginning(segment, MAX_WORD_BYTES).to_lowercase();
    let word = beginning(&lower, MAX_WORD_BYTES);
    (word.len() >= MIN_WORD_BYTES).then(|| word.to_owned())
}
