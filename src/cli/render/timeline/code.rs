//! The row of code that a provider ran: the first line of the program and its output.

use crate::investigation::timeline::{EventStatus, TimelineEvent};

use super::meta::Meta;
use super::row::{Body, Mark, Row};
use crate::cli::render::style::{Paint, Style, Symbol};
use crate::cli::render::text;

/// The row of one run; the caller has cleaned `content`.
pub(super) fn row(event: &TimelineEvent, meta: &Meta<'_>, content: &str, style: &Style) -> Row {
    let mut row = if style.thinking {
        Row::new(Symbol::Code, "code", Body::Whole(content.trim().to_owned(), None))
    } else {
        folded(content, &event.status, style)
    };
    if event.status == EventStatus::Failed {
        row = row.painted(Paint::Red);
        let outcome = meta.text("outcome").map(|outcome| outcome.trim_start_matches("OUTCOME_").to_lowercase());
        row.marks.extend(outcome.map(|outcome| Mark::new(outcome.replace('_', " "), Paint::Red)));
    }
    row
}

fn folded(content: &str, status: &EventStatus, style: &Style) -> Row {
    let has_failed = *status == EventStatus::Failed;
    let Blocks { program, output, others } = blocks(content);
    if program.is_empty() && output.is_empty() {
        return Row::new(Symbol::Code, "code", Body::Line(others.join(" ")));
    }
    // The output matters more than the program, and the end of an error matters most.
    let begin = text::cut(program.first().copied().unwrap_or_default(), style.width / 5, style.charset);
    let output = if has_failed { output.last().copied().unwrap_or_default().to_owned() } else { output.join(" ") };
    let arrow = style.charset.arrow();
    let shown = match (begin.is_empty(), output.is_empty()) {
        (false, true) => begin,
        (true, _) => format!("{arrow} {output}"),
        (false, false) => format!("{begin} {arrow} {output}"),
    };
    let mut row = Row::line(Symbol::Code, "code", &shown);
    let hidden = program.len().saturating_sub(1);
    // A failed run has a mark of its own.
    if hidden > 0 && !has_failed {
        row.marks.push(Mark::hidden(hidden));
    }
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
    let (mut fence, mut is_output) = ("", false);
    for line in content.lines().filter(|line| !line.trim().is_empty()) {
        let marks = line.get(..line.len() - line.trim_start_matches('`').len()).unwrap_or_default();
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
            let Blocks { program, output, .. } = blocks(content);
            (program.join("|"), output.join("|"))
        };
        let pair = |program: &str, output: &str| (program.to_owned(), output.to_owned());
        assert_eq!(of("```python\na\n\nb\n```\n\nOutput:\n```\n1\n2\n```"), pair("a|b", "1|2"));
        assert_eq!(of("````python\n```\nOutput:\n````\n\nOutput:\n```\n1\n```"), pair("```|Output:", "1"));
        assert_eq!(of("\nOutput:\n```\n1\n```"), pair("", "1"));
        // Truncated content.
        assert_eq!(of("```python\na\n[cut here"), pair("a|[cut here", ""));
        assert_eq!(of("```python\na\n```\n"), pair("a", ""));
        assert_eq!(blocks("OUTCOME_FAILED").others, ["OUTCOME_FAILED"]);
    }
}
