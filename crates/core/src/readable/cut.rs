//! Cuts a long result: keeps its beginning and end, on line boundaries, with a visible mark between them.

use super::text::beginning;

/// JSON, YAML and logs have about 3.3 bytes per token.
const BYTES_PER_TEN_TOKENS: usize = 33;

/// The longest mark.
const MAX_MARK_BYTES: usize = 150;

/// Whether the model can read the part that is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadBack {
    /// The rest can be read with the tool of this name.
    With(&'static str),
    #[default]
    No,
}

/// Bytes of a text with so many tokens.
pub fn bytes_of(tokens: u32) -> usize {
    usize::try_from(tokens)
        .unwrap_or(usize::MAX)
        .saturating_mul(BYTES_PER_TEN_TOKENS)
        / 10
}

/// The cut text; `None` when the text fits into `max_tokens`.
///
/// Three fifths of the budget go to the beginning and two to the end, because the errors of a log are at its end.
pub fn cut(text: &str, max_tokens: u32, read_back: ReadBack) -> Option<String> {
    let Parts { head, tail } = parts(text, max_tokens)?;
    let left_out = text.len() - head.len() - tail.len();
    let total = text.len();

    let rest = match read_back {
        ReadBack::With(tool) => format!(": {}; {tool} shows them", lines_between(text, head, tail)),
        ReadBack::No => "; the whole result is stored".to_owned(),
    };
    Some(format!(
        "{head}\n[… {left_out} of {total} bytes left out here{rest} …]\n{tail}"
    ))
}

/// The parts of a long text that stay.
pub(super) struct Parts<'a> {
    pub(super) head: &'a str,
    pub(super) tail: &'a str,
}

/// The parts that stay; `None` when the text fits into `max_tokens`.
pub(super) fn parts(text: &str, max_tokens: u32) -> Option<Parts<'_>> {
    let limit = bytes_of(max_tokens);
    if text.len() <= limit {
        return None;
    }
    let budget = limit.saturating_sub(MAX_MARK_BYTES);
    let head_budget = budget * 3 / 5;
    Some(Parts {
        head: head(text, head_budget),
        tail: tail(text, budget - head_budget),
    })
}

/// The lines of `text` that are not completely in its beginning or its end, counted from 1.
fn lines_between(text: &str, head: &str, tail: &str) -> String {
    let breaks = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
    let begins_line = text
        .get(head.len()..)
        .is_some_and(|rest| rest.starts_with('\n'));
    let before_tail = text.get(..text.len() - tail.len()).unwrap_or_default();
    let first = breaks(head) + if begins_line { 2 } else { 1 };
    let last = breaks(before_tail) + if before_tail.ends_with('\n') { 0 } else { 1 };
    if first >= last {
        format!("line {first}")
    } else {
        format!("lines {first} to {last}")
    }
}

/// Keeps at most `budget` bytes of the beginning. They end with a whole line, unless that costs more than half of
/// them.
fn head(text: &str, budget: usize) -> &str {
    let head = beginning(text, budget);
    match head.rfind('\n') {
        Some(newline) if newline >= budget / 2 => head.get(..newline).unwrap_or(head),
        Some(_) | None => head,
    }
}

/// Keeps at most `budget` bytes of the end. They begin with a whole line, unless that costs more than half of them.
fn tail(text: &str, budget: usize) -> &str {
    let tail = text
        .get(text.ceil_char_boundary(text.len() - budget)..)
        .unwrap_or_default();
    match tail.find('\n') {
        Some(newline) if newline <= budget / 2 => tail.get(newline + 1..).unwrap_or(tail),
        Some(_) | None => tail,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_kept_on_line_boundaries() {
        let lines = |from: u32, to: u32| {
            (from..=to)
                .map(|line| format!("line {line}\n"))
                .collect::<String>()
        };
        let text = lines(1, 200);
        let head = lines(1, 14);
        let tail = lines(194, 200);

        let left_out = text.len() - head.trim_end().len() - tail.len();
        let mark = format!(
            "[… {left_out} of {} bytes left out here; the whole result is stored …]\n",
            text.len()
        );
        assert_eq!(
            cut(&text, 100, ReadBack::No),
            Some(format!("{head}{mark}{tail}"))
        );
    }

    #[test]
    fn the_mark_names_the_missing_lines_if_a_tool_shows_them() {
        let text = (1..=200)
            .map(|line| format!("line {line}\n"))
            .collect::<String>();
        let mark = |text: &str| {
            let cut = cut(text, 100, ReadBack::With("tarsy.read_result")).unwrap();
            cut.split_once("\n[… ")
                .unwrap()
                .1
                .split_once(" …]\n")
                .unwrap()
                .0
                .to_owned()
        };
        assert_eq!(
            mark(&text),
            "1527 of 1692 bytes left out here: lines 15 to 193; tarsy.read_result shows them"
        );
        assert!(
            mark(&"a".repeat(500)).ends_with("left out here: line 1; tarsy.read_result shows them")
        );
        let last = format!("{}\n{}", "a\n".repeat(80), "b".repeat(900));
        assert!(
            mark(&last).contains("left out here: lines 55 to 82;"),
            "{}",
            mark(&last)
        );
    }

    #[test]
    fn a_text_that_fits_is_not_cut() {
        assert_eq!(cut(&"a".repeat(330), 100, ReadBack::No), None);
        assert!(cut(&"a".repeat(331), 100, ReadBack::No).is_some());
        assert_eq!(cut("", 0, ReadBack::No), None);
    }

    proptest! {
        #[test]
        fn a_cut_text_keeps_its_limit_and_counts_the_bytes_left_out(text in "(ä|[a-z]{1,20}|\n){0,400}", tokens in 50_u32..200) {
            if let Some(cut) = cut(&text, tokens, ReadBack::No) {
                prop_assert!(cut.len() <= usize::try_from(tokens).unwrap() * 33 / 10);
                let (head, rest) = cut.split_once("\n[… ").unwrap();
                let (counts, tail) = rest.split_once("…]\n").unwrap();
                let left_out: usize = counts.split(' ').next().unwrap().parse().unwrap();
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                prop_assert_eq!(left_out + head.len() + tail.len(), text.len());
            }
        }
    }
}
