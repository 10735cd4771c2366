//! The severity of the words that monitoring systems use.

use crate::investigation::alert::Severity;

/// The labels and fields with a severity.
pub(super) const KEYS: [&str; 3] = ["severity", "priority", "level"];

const WORDS: [(&str, Severity); 36] = [
    ("critical", Severity::Critical),
    ("crit", Severity::Critical),
    ("fatal", Severity::Critical),
    ("emergency", Severity::Critical),
    ("emerg", Severity::Critical),
    ("disaster", Severity::Critical),
    ("page", Severity::Critical),
    ("urgent", Severity::Critical),
    ("p1", Severity::Critical),
    ("sev1", Severity::Critical),
    ("error", Severity::High),
    ("err", Severity::High),
    ("high", Severity::High),
    ("major", Severity::High),
    ("p2", Severity::High),
    ("sev2", Severity::High),
    ("warning", Severity::Normal),
    ("warn", Severity::Normal),
    ("medium", Severity::Normal),
    ("moderate", Severity::Normal),
    ("average", Severity::Normal),
    ("normal", Severity::Normal),
    ("ticket", Severity::Normal),
    ("p3", Severity::Normal),
    ("sev3", Severity::Normal),
    ("minor", Severity::Low),
    ("info", Severity::Low),
    ("information", Severity::Low),
    ("informational", Severity::Low),
    ("notice", Severity::Low),
    ("low", Severity::Low),
    ("none", Severity::Low),
    ("debug", Severity::Low),
    ("p4", Severity::Low),
    ("p5", Severity::Low),
    ("sev4", Severity::Low),
];

/// The severity of a word; `None` for an unknown word.
pub(super) fn of_word(word: &str) -> Option<Severity> {
    let word = word.trim();
    WORDS.iter().find(|(known, _)| word.eq_ignore_ascii_case(known)).map(|(_, severity)| *severity)
}
