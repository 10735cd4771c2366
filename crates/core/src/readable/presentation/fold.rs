//! Folds repetitions: of one to four records that repeat at least four times in a row, the first and the last
//! repetition stay, and a mark replaces the others.
//!
//! Two records repeat each other if they differ only in values: tokens with a digit, and identifiers. A value that has
//! few different texts within the result is a word: a change of a status from 200 to 500 ends the repetition.

use super::layout::Piece;
use super::mark;
use super::records::Scan;
use super::runs::{Records, runs};

const MIN_BYTES: usize = 1 << 10;
const MIN_TIMED_LINES: u32 = 8;

/// The pieces of the text with marks in the place of repetitions; `None` when nothing is folded. The first mark ends
/// with `note`.
pub(super) fn fold<'a>(text: &'a str, scan: &'a Scan, note: &str) -> Option<Vec<Piece<'a>>> {
    if text.len() <= MIN_BYTES || scan.timed < MIN_TIMED_LINES {
        return None;
    }
    let mut records = Records::new(text, scan);
    let runs = runs(&mut records);
    let mut pieces = Vec::new();
    let mut shown_to = 0;
    for run in runs {
        let first_hidden = run.start + run.period;
        let last_shown = run.start + run.period * (run.repetitions - 1);
        let mark = mark::of_run(&records, run, if pieces.is_empty() { note } else { "" });
        if records.between(first_hidden, last_shown).len() <= mark.len() {
            continue;
        }
        pieces.push(Piece::Whole {
            first_line: records.line(shown_to),
            text: records.between(shown_to, first_hidden),
        });
        pieces.push(Piece::Mark {
            first_line: records.line(first_hidden),
            last_line: records.line(last_shown) - 1,
            text: mark,
        });
        shown_to = last_shown;
    }
    if pieces.is_empty() {
        return None;
    }
    pieces.push(Piece::Whole {
        first_line: records.line(shown_to),
        text: records.between(shown_to, scan.records.len()),
    });
    Some(pieces)
}
