//! Visible text: without terminal sequences, control characters and characters that are invisible.
//!
//! An invisible character can hide words from people that a model reads (tags, directions), or split a word so that no
//! mask finds it.

/// `text` with its line breaks and tabs, and without everything else that is not shown.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\r' => {
                if chars.peek() != Some(&'\n') {
                    out.push('\n');
                }
            }
            '\u{1b}' => {
                if chars.next_if_eq(&'[').is_some() {
                    while chars
                        .next_if(|c| matches!(c, '\u{20}'..='\u{3f}'))
                        .is_some()
                    {}
                    chars.next_if(|c| matches!(c, '\u{40}'..='\u{7e}'));
                }
            }
            c if c.is_control() || is_invisible(c) => {}
            c => out.push(c),
        }
    }
    out
}

/// At most so many bytes of the beginning of a text, without a part of a character.
pub(crate) fn beginning(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes))
        .unwrap_or_default()
}

/// Whether a text has a character that [`visible`] removes or replaces.
pub fn has_invisible(text: &str) -> bool {
    !text.chars().all(|c: char| {
        matches!(c, '\n' | '\t') || !(c.is_control() || is_invisible(c) || is_line_end(c))
    })
}

/// Characters of no width that change how their neighbours look: directions, joiners, variations, fillers, tags.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a text has nothing that is shown.
pub fn is_blank(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_whitespace() || c.is_control() || is_invisible(c))
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_visible_characters_line_breaks_and_tabs_are_left() {
        for (text, expected) in [
            (
                "a\u{1b}[31mred\u{1b}[0m\r\nb\rc\u{0}\u{7}\u{202e}\td",
                "ared\nb\nc\td",
            ),
            ("\u{1b}[999;\u{1b}", ""),
            ("pass\u{200b}word\u{ad}=\u{feff}x", "password=x"),
            ("one\u{e0041}\u{e0042}\u{2028}two\u{9b}", "one\ntwo"),
        ] {
            assert_eq!(visible(text), expected);
            assert!(has_invisible(text) && !has_invisible(expected), "{text:?}");
        }
        assert_eq!(visible("Ärger · 获取 \u{1f600}"), "Ärger · 获取 \u{1f600}");
    }
}
