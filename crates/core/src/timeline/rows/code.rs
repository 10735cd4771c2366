//! The row of code that a provider ran: the first line of the program and its output.

use crate::readable::text::Charset;
use crate::timeline::{EventStatus, TimelineEvent};

use super::meta::Meta;
use super::row::{Body, Kind, Mark, Row, Tone};

/// A program with its output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// All of it as Markdown, cleaned.
    pub content: String,
    /// The lines of the program.
    pub program: Vec<String>,
    output: Vec<String>,
    /// The lines outside of the fences of program and output.
    others: Vec<String>,
    pub has_failed: bool,
}

impl Code {
    fn new(content: &str, status: &EventStatus) -> Self {
        let mut code = Self {
            content: content.trim().to_owned(),
            has_failed: *status == EventStatus::Failed,
            ..Self::default()
        };
        let mut fence = "";
        let mut is_output = false;
        for line in content.lines().filter(|line| !line.trim().is_empty()) {
            let marks = line
                .get(..line.len() - line.trim_start_matches('`').len())
                .unwrap_or_default();
            match (fence.is_empty(), marks.len() >= 3) {
                (true, true) => fence = marks,
                (true, false) => {
                    is_output = line == "Output:";
                    code.others.push(line.to_owned());
                }
                (false, _) if line == fence => fence = "",
                (false, _) if is_output => code.output.push(line.to_owned()),
                (false, _) => code.program.push(line.to_owned()),
            }
        }
        code
    }

    /// The first line of the program.
    pub fn begin(&self) -> &str {
        self.program.first().map_or("", String::as_str)
    }

    /// The number of lines of the program after the first one.
    pub fn hidden(&self) -> usize {
        self.program.len().saturating_sub(1)
    }

    /// Program and output in one line; `begin` is the beginning of the program, as far as there is room for it.
    pub fn line(&self, begin: &str, charset: Charset) -> String {
        if self.program.is_empty() && self.output.is_empty() {
            return self.others.join(" ");
        }
        // The output matters more than the program, and the end of an error matters most.
        let output = if self.has_failed {
            self.output.last().cloned().unwrap_or_default()
        } else {
            self.output.join(" ")
        };
        let arrow = charset.arrow();
        let line = match (begin.is_empty(), output.is_empty()) {
            (false, true) => begin.to_owned(),
            (true, _) => format!("{arrow} {output}"),
            (false, false) => format!("{begin} {arrow} {output}"),
        };
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The row of one run; the caller has cleaned `content`.
pub(super) fn row(event: &TimelineEvent, meta: &Meta<'_>, content: &str) -> Row {
    let body = Body::Code(Code::new(content, &event.status));
    let row = Row::new(Kind::Code, "code", body);
    if event.status != EventStatus::Failed {
        return row;
    }
    let mut row = row.toned(Tone::Bad);
    let outcome = meta
        .text("outcome")
        .map(|outcome| outcome.trim_start_matches("OUTCOME_").to_lowercase());
    row.marks
        .extend(outcome.map(|outcome| Mark::new(outcome.replace('_', " "), Tone::Bad)));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_and_output_are_separated_whatever_they_contain() {
        let read = |content| Code::new(content, &EventStatus::Completed);
        let of = |content| {
            let code = read(content);
            (code.program.join("|"), code.output.join("|"))
        };
        let pair = |program: &str, output: &str| (program.to_owned(), output.to_owned());
        assert_eq!(
            of("```python\na\n\nb\n```\n\nOutput:\n```\n1\n2\n```"),
            pair("a|b", "1|2")
        );
        assert_eq!(
            of("````python\n```\nOutput:\n````\n\nOutput:\n```\n1\n```"),
            pair("```|Output:", "1")
        );
        assert_eq!(of("\nOutput:\n```\n1\n```"), pair("", "1"));
        // Truncated content.
        assert_eq!(of("```python\na\n[cut here"), pair("a|[cut here", ""));
        assert_eq!(of("```python\na\n```\n"), pair("a", ""));
        assert_eq!(read("OUTCOME_FAILED").others, ["OUTCOME_FAILED"]);
    }
}
