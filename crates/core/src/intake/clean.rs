//! Cleans text from outside: removes terminal sequences and invisible characters, and bounds its size.

use crate::readable::text::beginning;
use crate::visible::visible;

/// Maximum size of an alert's text.
pub const MAX_TEXT_BYTES: usize = 100 * 1024;

/// Clean text with its line breaks, cut at [`MAX_TEXT_BYTES`] with a note about the missing bytes.
pub(super) fn text(text: &str) -> String {
    let clean = visible(text);
    let clean = clean.trim_end();
    if clean.len() <= MAX_TEXT_BYTES {
        return clean.to_owned();
    }
    let kept = beginning(clean, MAX_TEXT_BYTES);
    let missing = clean.len() - kept.len();
    format!(
        "{kept}\n[cut here: {missing} of {} bytes of the alert are not shown]",
        clean.len()
    )
}

/// The text as one line, cut at `max_chars` with an ellipsis.
pub(super) fn line(text: &str, max_chars: usize) -> String {
    let clean: String = visible(text)
        .trim()
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .collect();
    if clean.chars().count() <= max_chars {
        return clean;
    }
    let mut cut: String = clean.chars().take(max_chars.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_visible_characters_are_left() {
        assert_eq!(
            text("a\u{1b}[31mred\u{1b}[0m\r\nb\rc\u{0}\u{7}\u{202e}\td \n\n"),
            "ared\nb\nc\td"
        );
        assert_eq!(text("\u{1b}[999;\u{1b}"), "");
        assert_eq!(line("  one\n two\u{e0041}  ", 20), "one  two");
        assert_eq!(line("abcdef", 4), "abc…");
    }

    #[test]
    fn a_long_text_is_cut_between_characters_with_a_note() {
        let long = "é".repeat(MAX_TEXT_BYTES / 2 + 3);
        let expected = "é".repeat(MAX_TEXT_BYTES / 2)
            + "\n[cut here: 6 of 102406 bytes of the alert are not shown]";
        assert_eq!(text(&long), expected);
    }
}
