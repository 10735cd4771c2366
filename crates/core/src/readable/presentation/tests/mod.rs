//! Presented results.

mod folded;
mod hostile;
mod measured;
mod properties;
mod tabular;

use super::{Presentation, Presented, present};
use crate::readable::cut::ReadBack;

fn presented(whole: &str) -> Presented {
    present(whole, Presentation::ALL, ReadBack::No)
}

/// A line of tarsy in a text.
struct Mark {
    first: u32,
    last: u32,
    text: String,
}

/// The marks of folded lines, with their ranges.
fn marks(presented: &Presented) -> Vec<Mark> {
    let facts = presented.facts.clone().unwrap_or_default();
    let lines: Vec<&str> = presented.text.split('\n').collect();
    facts
        .own_lines
        .iter()
        .map(|line| {
            let text = lines[usize::try_from(*line).unwrap() - 1];
            let words: Vec<&str> = text.split([' ', ':']).collect();
            let number = |index: usize| words[index].parse().unwrap();
            let first = number(2);
            let last = if words[1] == "line" { first } else { number(4) };
            Mark {
                first,
                last,
                text: text.to_owned(),
            }
        })
        .collect()
}
