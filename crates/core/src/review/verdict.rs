//! The verdict of a review, and the words with which models write it.

use serde::{Deserialize, Deserializer, Serialize};

/// The verdict of a review on an analysis.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Verdict {
    /// The analysis was not refuted.
    Stands,
    /// The analysis is less sure than it says.
    Weakened,
    /// The analysis is wrong, and the review proves no other one.
    Refuted,
    /// The analysis is wrong, and the one of the review stands in its place.
    Replaced,
    /// The answer of the review has no verdict.
    Missing,
    /// The review was due, and was not made or did not complete.
    Failed,
    /// A verdict of a later version.
    Unknown,
}

crate::words!(pub Verdict, pub ALL);

impl<'de> Deserialize<'de> for Verdict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|word| Self::parse(&word))
    }
}

const STANDS: [&str; 11] = [
    "stands",
    "stand",
    "holds",
    "hold",
    "upheld",
    "confirmed",
    "supported",
    "correct",
    "valid",
    "unrefuted",
    "accepted",
];
const WEAKENED: [&str; 6] = [
    "weakened",
    "weak",
    "weaker",
    "partly",
    "partially",
    "doubtful",
];
const REFUTED: [&str; 9] = [
    "refuted",
    "refute",
    "rejected",
    "wrong",
    "incorrect",
    "disproved",
    "disproven",
    "contradicted",
    "false",
];
const NEGATIONS: [&str; 5] = ["not", "no", "cannot", "doesn't", "isn't"];

impl Verdict {
    /// The verdict of a stored word.
    pub fn parse(word: &str) -> Self {
        Self::ALL
            .into_iter()
            .find(|verdict| verdict.as_str() == word)
            .unwrap_or(Self::Unknown)
    }

    /// The verdict in a few words, for lists and timelines.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stands => "stands",
            Self::Weakened => "weakened",
            Self::Refuted => "refuted",
            Self::Replaced => "refuted and replaced",
            Self::Missing => "no verdict",
            Self::Failed => "review failed",
            Self::Unknown => "unknown",
        }
    }

    /// The verdict in the words of a model: the first word of its first clause that has one. The form itself, which
    /// names all three, is none.
    pub(super) fn in_words(text: &str) -> Option<Self> {
        let text = text.to_lowercase();
        if text.contains("stands, weakened or refuted") {
            return None;
        }
        let clause = text.split([',', ';', '.', ':', '(', '—', '–']).next()?;
        let words = clause.split(|c: char| !c.is_alphanumeric() && c != '\'');
        let mut is_negated = false;
        for word in words {
            is_negated |= NEGATIONS.contains(&word);
            let found = if STANDS.contains(&word) {
                Self::Stands
            } else if WEAKENED.contains(&word) {
                Self::Weakened
            } else if REFUTED.contains(&word) {
                Self::Refuted
            } else {
                continue;
            };
            return Some(if is_negated { found.negated() } else { found });
        }
        None
    }

    fn negated(self) -> Self {
        if self == Self::Stands {
            Self::Refuted
        } else {
            Self::Stands
        }
    }
}
