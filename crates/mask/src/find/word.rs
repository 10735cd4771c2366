//! A word of a text, with its position.

use crate::bytes::{back, part};

/// The length of the line before a word that is read, in bytes.
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
        let from = back(
            self.text,
            self.start.saturating_sub(MAX_BEFORE),
            self.start,
            |b| b != b'\n',
        );
        part(self.text, self.text.ceil_char_boundary(from), self.start)
    }
}

/// A set of words in ASCII letters of any case, which most words are quickly found not to be in.
pub(super) struct WordSet<const N: usize> {
    words: [&'static str; N],
    /// The second letters that follow each first letter, one bit for each.
    beginnings: [u32; 32],
}

impl<const N: usize> WordSet<N> {
    /// Words of at least two letters.
    #[expect(clippy::indexing_slicing, reason = "at compile time")]
    pub(super) const fn new(words: [&'static str; N]) -> Self {
        let mut beginnings = [0; 32];
        let mut index = 0;
        while index < N {
            let word = words[index].as_bytes();
            beginnings[(word[0] & 31) as usize] |= 1 << (word[1] & 31);
            index += 1;
        }
        Self { words, beginnings }
    }

    /// The word of the set.
    pub(super) fn find(&self, word: &str) -> Option<&'static str> {
        let [first, second, ..] = word.as_bytes() else {
            return None;
        };
        let bits = self
            .beginnings
            .get(usize::from(first & 31))
            .copied()
            .unwrap_or_default();
        let may_be = bits >> (second & 31) & 1 == 1;
        if !may_be {
            return None;
        }
        self.words
            .iter()
            .copied()
            .find(|known| word.eq_ignore_ascii_case(known))
    }
}
