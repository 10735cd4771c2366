//! A list of words in one text, for lists that people read and extend.

/// Words with white space between them.
#[derive(Clone, Copy, Debug)]
pub struct WordList(&'static str);

impl WordList {
    pub const fn new(words: &'static str) -> Self {
        Self(words)
    }

    /// The words in their order.
    pub fn iter(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.0.split_ascii_whitespace()
    }

    /// Whether a word, in the case of the list, is one of them.
    pub fn contains(&self, word: &str) -> bool {
        self.iter().any(|known| known == word)
    }

    /// Whether a text has one of the words in it.
    pub fn is_in(&self, text: &str) -> bool {
        self.iter().any(|word| text.contains(word))
    }

    /// The place of a word.
    pub fn position(&self, word: &str) -> Option<usize> {
        self.iter().position(|known| known == word)
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
