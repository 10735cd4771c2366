//! The severity of a body of no known form: of several fields the worst.

use super::Verdict;
use super::facts::{Fact, Rank};
use crate::alert::Severity;
use crate::sources::{Note, Traced, WordList, is_severity_word, severity_of};

/// Ends of the keys of a severity.
const KEYS: WordList = WordList::new(
    "severity priority level urgency criticality impact importance sev prio dringlichkeit schweregrad gravedad \
     gravité priorität prioridad priorité priorità schwere nivel niveau livello уровень важность 级别 等级 严重性 \
     优先级 重要度 심각도",
);
/// Pieces of keys with another meaning.
const OTHER: WordList =
    WordList::new("log battery water fuel old previous last threshold run api confidence text");
/// Keys of a state that may be the word of a severity.
const STATES: [&str; 4] = ["status", "state", "type", "level"];

/// A field with a severity.
struct SeverityField<'f> {
    severity: Severity,
    pointer: &'f str,
    word: String,
}

/// The worst severity, first of the alert itself, then of the objects in it.
pub(super) fn judge(facts: &[Fact<'_>]) -> Verdict<Option<Severity>> {
    let mut unknown = None;
    for rank in [Rank::Own, Rank::Inner, Rank::Original] {
        let mut found: Vec<SeverityField<'_>> = Vec::new();
        for fact in facts
            .iter()
            .filter(|fact| rank_of(fact) == rank && is_severity(fact))
        {
            let Some(word) = fact.text().map(str::to_owned) else {
                continue;
            };
            match severity_of(&word) {
                Some(severity) => found.push(SeverityField {
                    severity,
                    pointer: &fact.pointer,
                    word,
                }),
                None => unknown = unknown.or(Some(word)),
            }
        }
        if found.is_empty() {
            found = facts
                .iter()
                .filter(|fact| fact.rank == rank)
                .filter_map(of_state)
                .collect();
        }
        if let Some(judged) = worst(&found) {
            return judged;
        }
    }
    Verdict {
        notes: unknown.map(Note::UnknownSeverity).into_iter().collect(),
        ..Verdict::default()
    }
}

/// Labels belong to the alert itself.
fn rank_of(fact: &Fact<'_>) -> Rank {
    let is_label = fact
        .owner
        .last()
        .is_some_and(|owner| ["labels", "tags", "dimensions"].contains(&owner.as_str()));
    if is_label && fact.rank == Rank::Inner {
        Rank::Own
    } else {
        fact.rank
    }
}

fn worst(found: &[SeverityField<'_>]) -> Option<Verdict<Option<Severity>>> {
    let worst = found.iter().rev().max_by_key(|found| found.severity)?;
    let other = found.iter().find(|found| found.severity != worst.severity);
    let says = |each: &SeverityField<'_>| format!("{} is {:?}", each.pointer, each.word);
    let differ = other.map(|other| Note::Differ(format!("{}, and {}", says(worst), says(other))));
    let meaning = worst.severity.as_str();
    let why = Traced::word("severity", worst.pointer, &worst.word, meaning);
    Some(Verdict {
        value: Some(worst.severity),
        why: Some(why),
        notes: differ.into_iter().collect(),
    })
}

/// `severity`, `alert_severity`, and `name` in an object `severity`.
fn is_severity(fact: &Fact<'_>) -> bool {
    let is = |pieces: &[String]| {
        let other = pieces.iter().any(|piece| OTHER.contains(piece.as_str()));
        !other
            && pieces
                .last()
                .is_some_and(|last| KEYS.contains(last.as_str()))
    };
    let in_one = is(&fact.owner)
        && matches!(
            fact.last(),
            "name" | "value" | "label" | "summary" | "severity" | "slug"
        );
    is(&fact.key) || in_one
}

/// `CRITICAL` as a state, and in the type of a message.
fn of_state<'f>(fact: &'f Fact<'_>) -> Option<SeverityField<'f>> {
    let is_other = fact.key.iter().any(|piece| OTHER.contains(piece.as_str()));
    let is_state = STATES.contains(&fact.last()) && !is_other;
    let word = fact
        .text()
        .filter(|word| is_state && is_severity_word(word))?;
    let severity = severity_of(word).filter(|severity| *severity > Severity::Normal)?;
    Some(SeverityField {
        severity,
        pointer: &fact.pointer,
        word: word.to_owned(),
    })
}
