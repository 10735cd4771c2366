//! The severity of the words that monitoring systems use.

use crate::investigation::alert::Severity;

/// The labels and fields with a severity.
pub(super) const KEYS: [&str; 3] = ["severity", "priority", "level"];

/// The severity of a word; `None` for an unknown word.
pub(super) fn of_word(word: &str) -> Option<Severity> {
    Some(match word.trim().to_ascii_lowercase().as_str() {
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
