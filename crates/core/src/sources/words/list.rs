//! A list of words in one text, for lists that people read and extend.

/// Words with white space between them.
#[derive(Clone, Copy, Debug)]
pub struct WordList(&'static str);

impl WordList {
    pub const fn new(words: &'static str) -> Self {
        Self(words)
    }

    /// Whether a word, in lower case, is one of them.
    pub fn contains(&self, word: &str) -> bool {
        self.0.split_ascii_whitespace().any(|known| known == word)
    }

    /// The place of a word.
    pub fn position(&self, word: &str) -> Option<usize> {
        self.0
            .split_ascii_whitespace()
            .position(|known| known == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_its_words_and_no_part_of_them() {
        let list = WordList::new("one two\n  three");
        assert_eq!(
            ["one", "three", "thre", "", "one two"].map(|word| list.contains(word)),
            [true, true, false, false, false]
        );
        assert_eq!(list.position("two"), Some(1));
    }
}
