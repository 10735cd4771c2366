//! Texts from outside for one line or paragraph of a message: visible characters only, of a bounded length.

use crate::visible::visible;

/// Stands for what was cut.
const ELLIPSIS: char = '…';

/// The text in one line of at most `max` characters.
pub(crate) fn line(text: &str, max: usize) -> String {
    cut(
        visible(text)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
        max,
    )
}

/// The first characters of a text, at most `max` with the ellipsis.
pub(crate) fn cut(text: String, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text,
        Some(_) => text
            .chars()
            .take(max.saturating_sub(1))
            .chain([ELLIPSIS])
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_one_line_of_visible_characters_and_its_length() {
        assert_eq!(line("a\u{202e} b\n\n c\u{1b}[31md\t", 20), "a b cd");
        assert_eq!(
            (line("äöüß", 4), line("äöüßx", 4)),
            ("äöüß".to_owned(), "äöü…".to_owned())
        );
    }
}
