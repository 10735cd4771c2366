//! Rewrites citations for people who do not see the timeline.

use crate::execution::cited_events::{CitedSource, citations};

/// A text with its citations in words: `full [5, 7]` becomes `full (events 5 and 7)`. Other brackets stay.
pub fn with_citations_in_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut done = 0;
    for citation in citations(text) {
        let numbers: Vec<String> = citation.sources.iter().filter_map(number).collect();
        if numbers.len() < citation.sources.len() {
            continue;
        }
        out.push_str(text.get(done..citation.range.start).unwrap_or_default());
        out.push_str(&in_words(&numbers));
        done = citation.range.end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

fn number(source: &CitedSource) -> Option<String> {
    match source {
        CitedSource::Event(number) => Some(number.to_string()),
        CitedSource::Other(_) => None,
    }
}

fn in_words(numbers: &[String]) -> String {
    match numbers {
        [] => String::new(),
        [only] => format!("(event {only})"),
        [several @ .., last] => format!("(events {} and {last})", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_brackets_are_events_and_other_brackets_stay() {
        for (text, shown) in [
            (
                "full [5], slow [7, 9].",
                "full (event 5), slow (events 7 and 9).",
            ),
            (
                "[1, 2, 3] [alert] [42?] items[0]",
                "(events 1, 2 and 3) [alert] [42?] items[0]",
            ),
            ("none", "none"),
        ] {
            assert_eq!(with_citations_in_words(text), shown);
        }
    }
}
