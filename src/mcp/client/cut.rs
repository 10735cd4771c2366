//! Cuts a long result: keeps its beginning and end, on line boundaries, with a visible mark between them.

/// JSON, YAML and logs have about 3.3 bytes per token.
const BYTES_PER_TEN_TOKENS: usize = 33;

/// The longest mark.
const MAX_MARK_BYTES: usize = 110;

/// The cut text; `None` when the text fits into `max_tokens`.
///
/// Three fifths of the budget go to the beginning and two to the end, because the errors of a log are at its end.
pub(super) fn cut(text: &str, max_tokens: u32) -> Option<String> {
    let tokens = usize::try_from(max_tokens).unwrap_or(usize::MAX);
    let limit = tokens.saturating_mul(BYTES_PER_TEN_TOKENS) / 10;
    if text.len() <= limit {
        return None;
    }
    let budget = limit.saturating_sub(MAX_MARK_BYTES);
    let head_budget = budget * 3 / 5;
    let head = head(text, head_budget);
    let tail = tail(text, budget - head_budget);
    let left_out = text.len() - head.len() - tail.len();
    let total = text.len();
    Some(format!("{head}\n[… {left_out} of {total} bytes left out here; the whole result is stored …]\n{tail}"))
}

/// At most `budget` bytes of the beginning. They end with a whole line, unless that costs more than half of them.
fn head(text: &str, budget: usize) -> &str {
    let head = text.get(..text.floor_char_boundary(budget)).unwrap_or_default();
    match head.rfind('\n') {
        Some(newline) if newline >= budget / 2 => head.get(..newline).unwrap_or(head),
        Some(_) | None => head,
    }
}

/// At most `budget` bytes of the end. They begin with a whole line, unless that costs more than half of them.
fn tail(text: &str, budget: usize) -> &str {
    let tail = text.get(text.ceil_char_boundary(text.len() - budget)..).unwrap_or_default();
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
        let lines = |from: u32, to: u32| (from..=to).map(|line| format!("line {line}\n")).collect::<String>();
        let text = lines(1, 200);
        let (head, tail) = (lines(1, 17), lines(192, 200));
        let left_out = text.len() - head.trim_end().len() - tail.len();
        let mark = format!("[… {left_out} of {} bytes left out here; the whole result is stored …]\n", text.len());
        assert_eq!(cut(&text, 100), Some(format!("{head}{mark}{tail}")));
    }

    #[test]
    fn a_text_that_fits_is_not_cut() {
        assert_eq!(cut(&"a".repeat(330), 100), None);
        assert!(cut(&"a".repeat(331), 100).is_some());
        assert_eq!(cut("", 0), None);
    }

    proptest! {
        #[test]
        fn a_cut_text_keeps_its_limit_and_counts_the_bytes_left_out(text in "(ä|[a-z]{1,20}|\n){0,400}", tokens in 40_u32..200) {
            if let Some(cut) = cut(&text, tokens) {
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
