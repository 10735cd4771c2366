//! The parts of an analysis: cause, confidence, current state, evidence, next step, and limits of the evidence.
//!
//! The form is what `prompts/answer_form.md` asks for. Models of every size write it in their own way, so labels are
//! also read as headings, in bold, as items of a list, as rows of a table and as keys of JSON, in any order.

mod command;
mod fields;
mod labels;
mod second_look;
mod sure;
mod mark;

pub use command::{Command, command};
pub use fields::{Fields, Form, below, fields};
pub use mark::{Mark, with_text};
pub use second_look::SECOND_LOOK;
pub(crate) use second_look::with_less_sureness;
pub use sure::Sure;

pub(crate) use labels::opens_cause;

use labels::is_cause_line;

/// Lines of an analysis that are searched for its fields.
const MAX_LINES: usize = 60;

/// The fields of an analysis in lines, `Cause: …` first and one `Evidence: …` for each fact; `None` if it has none of
/// them.
pub fn executive_summary(analysis: &str) -> Option<String> {
    let lines = fields(analysis).lines();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Whether an analysis names its cause, in any form: as a line, a heading, a row of a table, a key of JSON or a
/// sentence that begins with it.
pub(crate) fn names_cause(analysis: &str) -> bool {
    analysis.lines().take(MAX_LINES).any(is_cause_line)
}

/// The cause in a summary of [`executive_summary`], in one line.
pub fn cause(summary: &str) -> Option<&str> {
    summary
        .lines()
        .find_map(|line| line.strip_prefix("Cause: "))
        .map(str::trim)
        .filter(|cause| !cause.is_empty())
}

#[cfg(test)]
mod tests;
