//! The row of code that a provider ran: the first line of the program and its output.

use crate::readable::text::Charset;
use crate::timeline::{EventStatus, TimelineEvent};

use super::meta::Meta;
use super::row::{Body, Kind, Mark, Row, Tone};

/// A program with its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// All of it as Markdown, cleaned.
    pub content: String,
    /// The lines of the program.
    pub program: Vec<String>,
    output: Vec<String>,
    others: Vec<String>,
    pub has_failed: bool,
}

impl Code {
    fn new(content: &str, status: &EventStatus) -> Self {
        let Blocks {
            program,
            output,
            others,
        } = blocks(content);
        let owned = |lines: Vec<&str>| lines.into_iter().map(str::to_owned).collect();
        Self {
            content: content.trim().to_owned(),
            program: owned(program),
            output: owned(output),
            others: owned(others),
            has_failed: *status == EventStatus::Failed,
        }
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
    let row = Row::new(
        Kind::Code,
        "code",
        Body::Code(Code::new(content, &event.status)),
    );
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

/// The lines between the fences of program and output, and the lines outside of them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Blocks<'a> {
    program: Vec<&'a str>,
    output: Vec<&'a str>,
    others: Vec<&'a str>,
}

fn blocks(content: &str) -> Blocks<'_> {
    let mut blocks = Blocks::default();
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
                blocks.others.push(line);
            }
            (false, _) if line == fence => fence = "",
            (false, _) if is_output => blocks.output.push(line),
            (false, _) => blocks.program.push(line),
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_and_output_are_separated_whatever_they_contain() {
        let of = |content| {
            let Blocks {
                program, output, ..
            } = blocks(content);
            (program.join("|"), output.join("|"))
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
        assert_eq!(blocks("OUTCOME_FAILED").others, ["OUTCOME_FAILED"]);
    }
}
