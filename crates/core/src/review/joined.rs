//! Joins an analysis with the answer of its review. Pure.

use super::{Review, Verdict, read};
use crate::summary::{Mark, SECOND_LOOK, with_less_sureness};

/// The answer of a review that has completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked<'a> {
    /// The verdict that the journal has, and the model.
    pub review: &'a Review,
    /// The whole answer.
    pub text: &'a str,
    /// The mark on the analysis in it.
    pub mark: Option<Mark>,
}

/// An analysis with the words of its review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    pub analysis: String,
    /// The outcome as people see it.
    pub review: Review,
    /// The mark that the review adds.
    pub mark: Option<Mark>,
}

/// Joins an analysis with the answer of its review.
///
/// | verdict | analysis |
/// |---|---|
/// | stands, missing | the original, and a remark below it |
/// | weakened | the original, less sure, and the reason below it |
/// | refuted, with an analysis that is proven | that one, and the original below it |
/// | refuted | the original, with a mark, and the reason below it |
pub fn joined(original: &str, looked: &Looked<'_>) -> Joined {
    let answer = read(looked.text);
    let original = without_heading(original.trim_end());
    let proven = if looked.mark.is_none() {
        answer.analysis
    } else {
        None
    };
    let verdict = match (looked.review.verdict, proven) {
        (Verdict::Refuted, Some(_)) => Verdict::Replaced,
        (verdict, _) => verdict,
    };
    let review = Review {
        verdict,
        model: looked.review.model.clone(),
    };
    let why = quoted_why(&answer.why);
    let words = format!("\n\n{SECOND_LOOK}\n\n{}{why}\n", review.sentence());
    let (analysis, mark) = match (verdict, proven) {
        (Verdict::Replaced, Some(proven)) => {
            let proven = without_heading(proven);
            let before = quoted(&original);
            let analysis = format!("{proven}{words}\nThe first analysis:\n\n{before}\n");
            (analysis, None)
        }
        (Verdict::Weakened, _) => {
            let less_sure = with_less_sureness(&original);
            (format!("{less_sure}{words}"), Some(Mark::Weakened))
        }
        (Verdict::Refuted, _) => (format!("{original}{words}"), Some(Mark::Disputed)),
        (Verdict::Stands | Verdict::Missing, _) => (format!("{original}{words}"), None),
        (Verdict::Replaced | Verdict::Failed | Verdict::Unknown, _) => (original, None),
    };
    Joined {
        analysis,
        review,
        mark,
    }
}

/// The reason as a quotation of one line, so that nothing in it stands at the margin.
fn quoted_why(why: &str) -> String {
    if why.is_empty() {
        String::new()
    } else {
        format!("\n\n> Why: {why}")
    }
}

fn quoted(text: &str) -> String {
    let lines = text.lines().map(|line| format!("> {line}"));
    let lines: Vec<String> = lines.map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// The text without a line that passes for the heading of the review.
fn without_heading(text: &str) -> String {
    let lines = text.split('\n').map(|line| {
        let is_heading = line.trim() == SECOND_LOOK;
        if is_heading {
            format!("\\{}", line.trim())
        } else {
            line.to_owned()
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}
