//! Words of monitoring systems: tables from words to values, and the words that all sources share.

use std::collections::BTreeMap;

use crate::investigation::alert::{AlertStatus, Severity};

/// A table of words in any case. A word that ends with `*` stands for all that begin with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordTable<T> {
    exact: BTreeMap<String, T>,
    /// The longest first.
    prefixes: Vec<(String, T)>,
}

impl<T> Default for WordTable<T> {
    fn default() -> Self {
        Self { exact: BTreeMap::new(), prefixes: Vec::new() }
    }
}

impl<T: Copy> WordTable<T> {
    /// Adds a word; a later one of the same spelling replaces it.
    pub fn insert(&mut self, word: &str, value: T) {
        let word = plain(word);
        match word.strip_suffix('*') {
            Some(prefix) => {
                self.prefixes.push((prefix.to_owned(), value));
                self.prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
            }
            None => {
                self.exact.insert(word, value);
            }
        }
    }

    /// The values of all words.
    pub fn values(&self) -> impl Iterator<Item = T> + '_ {
        self.exact.values().copied().chain(self.prefixes.iter().map(|(_, value)| *value))
    }

    /// The value of a word: that of the whole word before that of the longest prefix.
    pub fn get(&self, word: &str) -> Option<T> {
        let word = plain(word);
        let prefix = || self.prefixes.iter().find(|(prefix, _)| word.starts_with(prefix)).map(|(_, value)| *value);
        self.exact.get(&word).copied().or_else(prefix)
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

/// The severity of a word that monitoring systems use; `None` for an unknown word.
pub fn severity_of(word: &str) -> Option<Severity> {
    Some(match plain(word).as_str() {
        "critical" | "crit" | "fatal" | "emergency" | "emerg" | "disaster" | "page" | "urgent" | "p1" | "sev1" => {
            Severity::Critical
        }
        "error" | "err" | "high" | "major" | "p2" | "sev2" => Severity::High,
        "warning" | "warn" | "medium" | "moderate" | "average" | "normal" | "ticket" | "p3" | "sev3" => {
            Severity::Normal
        }
        "minor" | "info" | "information" | "informational" | "notice" | "low" | "none" | "debug" | "p4" | "p5"
        | "sev4" => Severity::Low,
        _ => return None,
    })
}

/// The status of a word that monitoring systems use; `None` for an unknown word. Of `incident.resolved` the piece after
/// the last dot counts.
pub fn status_of(word: &str) -> Option<AlertStatus> {
    let word = plain(word);
    known_status(&word).or_else(|| known_status(word.rsplit_once('.')?.1))
}

fn known_status(word: &str) -> Option<AlertStatus> {
    Some(match word {
        "firing"
        | "alerting"
        | "alarm"
        | "alert"
        | "triggered"
        | "trigger"
        | "re-triggered"
        | "open"
        | "opened"
        | "reopened"
        | "active"
        | "activated"
        | "problem"
        | "down"
        | "failed"
        | "failing"
        | "failure"
        | "error"
        | "critical"
        | "warning"
        | "warn"
        | "new"
        | "created"
        | "create"
        | "started"
        | "raised"
        | "unhealthy"
        | "degraded"
        | "degraded_performance"
        | "outage"
        | "partial_outage"
        | "major_outage"
        | "unavailable" => AlertStatus::Firing,
        "resolved" | "resolve" | "ok" | "okay" | "closed" | "close" | "recovered" | "recovery" | "recover" | "up"
        | "cleared" | "clear" | "normal" | "healthy" | "success" | "fixed" | "inactive" | "deactivated"
        | "operational" | "available" => AlertStatus::Resolved,
        "acknowledged" | "acknowledge" | "acknowledgement" | "ack" | "acked" => AlertStatus::Acknowledged,
        "test" | "testing" | "ping" => AlertStatus::Test,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_counts_in_any_case_and_before_a_prefix() {
        let mut table = WordTable::default();
        for (word, value) in [("Incident.*", 1), ("incident.responder.*", 2), ("INCIDENT.RESPONDER.ADDED", 3)] {
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

    #[test]
    fn the_shared_words_have_a_status() {
        for (word, expected) in [
            ("OK", Some(AlertStatus::Resolved)),
            ("incident.resolved", Some(AlertStatus::Resolved)),
            ("Acknowledged", Some(AlertStatus::Acknowledged)),
            ("pagey.ping", Some(AlertStatus::Test)),
            ("ALARM", Some(AlertStatus::Firing)),
            ("purple", None),
            ("", None),
        ] {
            assert_eq!(status_of(word), expected, "{word}");
        }
    }
}
