//! The severity of a word: `P1 - Critical`, `SEV-1`, `critical,warning`. Of several in one text the worst counts.

use super::pieces::pieces;
use super::tongues;
use crate::alert::Severity;

/// Words that negate the next word: `non-critical`.
const NOTS: [&str; 3] = ["not", "non", "no"];

/// The severity of a word that monitoring systems use; `None` for an unknown word.
pub fn severity_of(word: &str) -> Option<Severity> {
    let pieces = pieces(word);
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let mut worst = None;
    for (at, piece) in pieces.iter().enumerate() {
        let before = at
            .checked_sub(1)
            .and_then(|before| pieces.get(before))
            .copied()
            .unwrap_or_default();
        let next = pieces.get(at + 1).copied().unwrap_or_default();
        if NOTS.contains(&before) {
            continue;
        }
        worst = worst.max(of_level(piece, next).or_else(|| of_piece(piece, before)));
    }
    worst.or_else(|| tongues::written_severity(word))
}

/// Whether a whole word says only how bad something is: `Critical`, `P1`.
pub fn is_severity_word(word: &str) -> bool {
    let pieces = pieces(word);
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    match pieces.as_slice() {
        [piece] => is_plain(piece) || of_level(piece, "").is_some(),
        [piece, next] => of_level(piece, next).is_some(),
        _ => false,
    }
}

/// Whether a piece is the name of a severity in English.
pub(super) fn is_plain(piece: &str) -> bool {
    of_piece(piece, "").is_some()
}

/// `p1`, `sev0`, `s2`, and `sev-1` in two pieces.
fn of_level(piece: &str, next: &str) -> Option<Severity> {
    let digits = |text: &str| {
        text.parse::<u8>()
            .ok()
            .filter(|level| *level <= 9 && text.len() == 1)
    };
    let joined = ["severity", "priority", "sev", "prio", "p", "s"]
        .iter()
        .find_map(|name| digits(piece.strip_prefix(name)?));
    let is_name = ["severity", "priority", "sev", "prio", "p", "s"].contains(&piece);
    let level = match joined {
        None if is_name => digits(next)?,
        joined => joined?,
    };
    Some(match level {
        0 | 1 => Severity::Critical,
        2 => Severity::High,
        3 => Severity::Normal,
        _ => Severity::Low,
    })
}

fn of_piece(piece: &str, before: &str) -> Option<Severity> {
    Some(match piece {
        "critical" | "crit" | "fatal" | "emergency" | "emerg" | "disaster" | "page" | "urgent"
        | "blocker" | "catastrophic" | "showstopper" | "panic" | "highest" | "extreme"
        | "immediate" => Severity::Critical,
        "high" if before == "very" => Severity::Critical,
        "error" | "err" | "high" | "major" | "severe" | "serious" | "important" => Severity::High,
        "low" if before == "very" => Severity::Low,
        "warning" | "warn" | "medium" | "moderate" | "average" | "normal" | "ticket"
        | "elevated" => Severity::Normal,
        "minor" | "info" | "information" | "informational" | "notice" | "low" | "none"
        | "debug" | "trivial" | "lowest" | "trace" | "verbose" | "indeterminate" => Severity::Low,
        other => return tongues::severity_of(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_severity_is_understood_in_pieces_levels_and_languages() {
        for (severity, words) in [
            (
                Severity::Critical,
                &[
                    "critical",
                    "P0",
                    "P1",
                    "p-1",
                    "SEV-1",
                    "sev0",
                    "Sev 1",
                    "S1",
                    "Severity 1",
                    "P1 - Critical",
                    "1 - Critical",
                    "critical,warning",
                    "ALERT_CRITICALITY_LEVEL_CRITICAL",
                    "blocker",
                    "very high",
                    "Disaster",
                    "kritisch",
                    "Critique",
                    "紧急",
                    "严重",
                    "重大",
                    "критический",
                ][..],
            ),
            (
                Severity::High,
                &[
                    "error",
                    "P2",
                    "sev2",
                    "S-2",
                    "severe",
                    "Major",
                    "hoch",
                    "élevée",
                    "alta",
                    "высокая",
                    "重要",
                ],
            ),
            (
                Severity::Normal,
                &[
                    "warning",
                    "P3",
                    "SEV3",
                    "average",
                    "Warnung",
                    "advertencia",
                    "警告",
                ],
            ),
            (
                Severity::Low,
                &[
                    "info", "none", "P4", "P5", "sev5", "very low", "niedrig", "提示",
                ],
            ),
        ] {
            for word in words {
                assert_eq!(severity_of(word), Some(severity), "{word}");
            }
        }
        for word in ["purple", "", "non-critical", "No severity", "5", "1", "p99"] {
            assert_eq!(severity_of(word), None, "{word}");
        }
    }

    #[test]
    fn only_the_name_of_a_severity_is_a_severity_word() {
        for word in ["Critical", "P1", "sev-1", "hoch"] {
            assert!(is_severity_word(word), "{word}");
        }
        for word in ["Critical disk", "db-1", "", "p99", "down"] {
            assert!(!is_severity_word(word), "{word}");
        }
    }
}
