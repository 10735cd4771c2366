//! The words of a review below an analysis, and the analysis made less sure by it.

use super::MAX_LINES;
use super::labels::{Label, labelled};
use super::sure::Sure;
use crate::code::{FenceMark, ends, fence, offset};

/// The heading below which an analysis has the words of its review. Its fields stand above.
pub const SECOND_LOOK: &str = "## Second look";

/// The part of an analysis above the words of its review.
pub(super) fn above(analysis: &str) -> &str {
    let mut at = 0;
    for line in analysis.split_inclusive('\n') {
        if line.trim_end() == SECOND_LOOK {
            return analysis.get(..at).unwrap_or(analysis);
        }
        at += line.len();
    }
    analysis
}

/// The analysis with the word of its line `Sure` one step lower; unchanged without such a word.
pub(crate) fn with_less_sureness(analysis: &str) -> String {
    let mut code: Option<FenceMark> = None;
    for line in analysis.lines().take(MAX_LINES) {
        match (code, fence(line)) {
            (Some(mark), _) if ends(line, mark) => code = None,
            (Some(_), _) => {}
            (None, Some(mark)) => code = Some(mark),
            (None, None) => {
                if let Some(lowered) = lowered(line) {
                    let from = offset(analysis, line);
                    let before = analysis.get(..from).unwrap_or_default();
                    let behind = analysis.get(from + line.len()..).unwrap_or_default();
                    return format!("{before}{lowered}{behind}");
                }
            }
        }
    }
    analysis.to_owned()
}

/// The line with a lower word, if it is the line `Sure` and has a word that can be lower.
fn lowered(line: &str) -> Option<String> {
    let found = labelled(line).filter(|found| found.label == Label::Sure)?;
    let (sure, why) = Sure::parse(found.text);
    let lower = match sure? {
        Sure::Certain => Sure::Likely,
        Sure::Likely | Sure::Unsure => Sure::Unsure,
    };
    let from = offset(line, found.text);
    let before = line.get(..from)?;
    let behind = line.get(from + found.text.len()..)?;
    let why = if why.is_empty() {
        String::new()
    } else {
        format!(", {why}")
    };
    Some(format!("{before}{}{why}{behind}", lower.as_str()))
}
