//! A word of a text, with its position.

use crate::investigation::mask::bytes::{back, part};

/// How far back the line of a word is looked at, in bytes.
const MAX_BEFORE: usize = 96;

/// A word at its position in the text.
#[derive(Clone, Copy)]
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl<'t> Word<'t> {
    pub(super) fn name(self) -> &'t str {
        part(self.text, self.start, self.end)
    }

    /// The text before the word in its line, at most [`MAX_BEFORE`] bytes.
    pub(super) fn before(self) -> &'t str {
        let from = back(self.text, self.start.saturating_sub(MAX_BEFORE), self.start, |b| b != b'\n');
        part(self.text, self.text.ceil_char_boundary(from), self.start)
    }
}
