//! Text from outside without the characters that a reader does not see.

/// Removes control characters (except line breaks and tabs), terminal sequences, and characters that change the
/// direction of writing or are invisible.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' => {
                if chars.peek() != Some(&'\n') {
                    out.push('\n');
                }
            }
            '\u{1b}' => {
                if chars.next_if_eq(&'[').is_some() {
                    while chars.next_if(|c| matches!(c, '\u{20}'..='\u{3f}')).is_some() {}
                    chars.next_if(|c| matches!(c, '\u{40}'..='\u{7e}'));
                }
            }
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_sequences_and_invisible_characters_are_removed() {
        assert_eq!(visible("pass\u{1b}[0mword\u{0}=\u{202e}x\u{7}\ty\r\nz\r"), "password=x\ty\nz\n");
    }
}
