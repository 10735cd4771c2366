//! The columns that a text takes where every character has a fixed width.

use unicode_width::UnicodeWidthChar;

use tarsy_core::readable::text::Charset;

/// Columns that `text` takes in a terminal.
pub fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// The beginning of `text` in at most `columns`; an ellipsis represents the rest.
pub fn cut(text: &str, columns: usize, charset: Charset) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let ellipsis = charset.ellipsis();
    let mut out = head(text.chars(), columns.saturating_sub(width(ellipsis)));
    out.truncate(out.trim_end().len());
    out.push_str(ellipsis);
    head(out.chars(), columns)
}

/// The characters that fit into `room` columns.
pub fn head(characters: impl Iterator<Item = char>, mut room: usize) -> String {
    characters
        .take_while(|c: &char| {
            let left = room.checked_sub(char_width(*c));
            room = left.unwrap_or_default();
            left.is_some()
        })
        .collect()
}

/// The columns of one character.
pub fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}
