//! Groups the lines `Not seen` by the words that they share.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use tarsy_core::ids::SessionId;
use tarsy_core::search;
use tarsy_core::summary;

use super::Unseen;

/// Words of at least so many characters count.
const MIN_WORD_CHARS: usize = 3;
/// Words that head a group, at most.
const MAX_SHARED: usize = 4;
/// Words that say nothing about the thing that was not seen.
const COMMON: &[&str] = &[
    "all",
    "also",
    "and",
    "any",
    "are",
    "available",
    "because",
    "been",
    "being",
    "but",
    "can",
    "cannot",
    "could",
    "did",
    "does",
    "for",
    "from",
    "had",
    "has",
    "have",
    "how",
    "into",
    "its",
    "itself",
    "looked",
    "may",
    "might",
    "more",
    "neither",
    "none",
    "nor",
    "not",
    "nothing",
    "only",
    "other",
    "over",
    "seen",
    "settle",
    "settled",
    "settles",
    "should",
    "show",
    "shown",
    "shows",
    "since",
    "such",
    "tell",
    "than",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "tool",
    "tools",
    "was",
    "were",
    "what",
    "when",
    "where",
    "whether",
    "which",
    "while",
    "who",
    "why",
    "will",
    "with",
    "within",
    "without",
    "would",
];

/// Lines `Not seen` that share a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnseenGroup {
    /// The words that every line of the group has, the most frequent one first; empty for a line that shares none.
    pub words: Vec<String>,
    pub sessions: usize,
    /// The line of the newest session.
    pub newest: String,
    pub newest_session: SessionId,
}

/// A line with its words.
struct Line {
    session: SessionId,
    text: String,
    words: BTreeSet<String>,
}

/// The groups, the largest first; `unseen` begins with the newest session. Each line is in one group: that of the word
/// that most of the lines have which are in no larger group.
pub fn grouped(unseen: &[Unseen]) -> Vec<UnseenGroup> {
    let mut left: Vec<Line> = unseen.iter().filter_map(line).collect();
    let mut groups = Vec::new();
    while let Some(word) = most_frequent(&left) {
        let (with, without) = left
            .into_iter()
            .partition(|line| line.words.contains(&word));
        groups.extend(group(word, with));
        left = without;
    }
    groups.extend(left.into_iter().map(|line| UnseenGroup {
        words: Vec::new(),
        sessions: 1,
        newest: line.text,
        newest_session: line.session,
    }));
    groups
}

fn line(unseen: &Unseen) -> Option<Line> {
    let text = summary::fields(&unseen.summary).not_seen?;
    let words = search::analysis_words(Some(&text), None);
    let words: BTreeSet<String> = words.into_iter().filter(|word| is_telling(word)).collect();
    // "nothing" and its like name no gap.
    (!words.is_empty()).then_some(Line {
        session: unseen.session_id,
        text,
        words,
    })
}

fn is_telling(word: &str) -> bool {
    let is_number = word.chars().all(|c| c.is_ascii_digit());
    !is_number && word.chars().count() >= MIN_WORD_CHARS && !COMMON.contains(&word)
}

/// The word that most of the lines have, if at least two have it; of equally frequent ones the longest.
fn most_frequent(lines: &[Line]) -> Option<String> {
    let counts = counts(lines);
    let most = counts
        .iter()
        .filter(|(_, count)| **count > 1)
        .max_by_key(|(word, count)| (**count, word.len()));
    most.map(|(word, _)| (*word).to_owned())
}

fn counts(lines: &[Line]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for word in lines.iter().flat_map(|line| &line.words) {
        *counts.entry(word.as_str()).or_default() += 1;
    }
    counts
}

/// The group of lines that have a word; `None` without a line.
fn group(word: String, lines: Vec<Line>) -> Option<UnseenGroup> {
    let shared: Vec<String> = counts(&lines)
        .into_iter()
        .filter(|(other, count)| *count == lines.len() && *other != word)
        .map(|(other, _)| other.to_owned())
        .collect();
    let sessions = lines.len();
    let newest = lines.into_iter().next()?;
    let words = std::iter::once(word).chain(shared).take(MAX_SHARED);
    Some(UnseenGroup {
        words: words.collect(),
        sessions,
        newest: newest.text,
        newest_session: newest.session,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unseen(number: u8, line: &str) -> Unseen {
        Unseen {
            session_id: session(number),
            summary: format!("Cause: it is full\nNot seen: {line}"),
        }
    }

    fn session(number: u8) -> SessionId {
        SessionId::parse(&format!("0198b2c4-5d6e-7f80-9a1b-2c3d0d4be6{number:02}")).unwrap()
    }

    #[test]
    fn lines_that_share_a_word_are_one_group_and_each_line_is_in_one() {
        let lines = [
            unseen(9, "metrics of the node, which would settle the time"),
            unseen(8, "The node's metrics"),
            unseen(7, "the code of the release"),
            unseen(6, "nothing"),
            unseen(5, "metrics of the database"),
            unseen(4, "code"),
            unseen(3, "a packet capture"),
        ];
        let expected = [
            (vec!["metrics"], 3, session(9)),
            (vec!["code"], 2, session(7)),
            (vec![], 1, session(3)),
        ];
        let groups = grouped(&lines);
        let found: Vec<_> = groups
            .iter()
            .map(|group| {
                let words: Vec<&str> = group.words.iter().map(String::as_str).collect();
                (words, group.sessions, group.newest_session)
            })
            .collect();
        assert_eq!(found, expected);
        assert_eq!(groups[1].newest, "the code of the release");
    }

    #[test]
    fn a_group_is_headed_by_every_word_that_its_lines_share() {
        let lines = [
            unseen(2, "slow query log of orders-db"),
            unseen(1, "orders-db: the slow query log"),
        ];
        let words = &grouped(&lines)[0].words;
        assert_eq!(words.len(), MAX_SHARED);
        assert!(words.contains(&"orders-db".to_owned()), "{words:?}");
    }

    #[test]
    fn an_analysis_without_the_line_names_no_gap() {
        let summary = "Cause: it is full".to_owned();
        let none = Unseen {
            session_id: session(1),
            summary,
        };
        assert_eq!(grouped(&[none]), []);
    }
}
