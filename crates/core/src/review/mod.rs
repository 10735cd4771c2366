//! The review: a second look at the analysis of a chain, by another agent, before the session ends.
//!
//! It is the last stage of its plan, and an optional one: a review that does not complete changes nothing but its
//! [`Verdict`]. The agent of it answers in a form of its own ([`read`]); the answer joined with the analysis is what
//! the session ends with ([`joined()`]).

mod answer;
mod joined;
#[cfg(test)]
mod tests;
mod verdict;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::summary::Mark;

pub use self::answer::{Answer, read};
pub use self::joined::{Joined, Looked, joined};
pub use self::verdict::Verdict;

/// The outcome of a review, as the journal, the session and its events have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    pub verdict: Verdict,
    /// The provider's name of the model that looked; empty if none did.
    pub model: String,
}

impl From<&Review> for Value {
    fn from(review: &Review) -> Self {
        json!({"verdict": review.verdict.as_str(), "model": review.model})
    }
}

impl Review {
    /// The sentence beside this mark on the analysis; `None` if the mark says it.
    pub fn beside(&self, mark: Option<Mark>) -> Option<String> {
        let is_said = matches!(mark, Some(Mark::Weakened | Mark::Disputed));
        (!is_said).then(|| self.sentence())
    }

    /// The review in a sentence for people.
    pub fn sentence(&self) -> String {
        let by = if self.model.is_empty() {
            String::new()
        } else {
            format!(" by {}", self.model)
        };
        match self.verdict {
            Verdict::Stands => {
                format!("Checked: a second look{by} found nothing against the analysis.")
            }
            Verdict::Weakened => {
                format!("Weakened: a second look{by} found the analysis less sure than it was.")
            }
            Verdict::Refuted => format!("Refuted: a second look{by} contradicts the analysis."),
            Verdict::Replaced => format!(
                "Refuted: a second look{by} contradicts the first analysis, and its own took the place."
            ),
            Verdict::Missing => {
                format!("Not checked: the answer of a second look{by} has no verdict.")
            }
            Verdict::Failed => "Not checked: the review failed.".to_owned(),
            Verdict::Unknown => {
                "Checked, with an outcome that this version of tarsy does not know.".to_owned()
            }
        }
    }
}
