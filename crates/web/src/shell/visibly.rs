//! Texts from outside in which nothing is hidden: a character that is not shown has a mark with its number.
//!
//! Elsewhere such characters are left out. A person who decides about a text has to see that they are there: a tool
//! gets them.

use maud::{Markup, html};

use tarsy_core::visible::is_invisible;

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Shown(&'a str),
    Hidden(char),
}

/// The text with a mark for each character that is not shown.
pub(crate) fn visibly(text: &str) -> Markup {
    html! {
        @for piece in pieces(text) {
            @match piece {
                Piece::Shown(text) => (text),
                Piece::Hidden(c) => mark.hc { "U+" (format!("{:04X}", u32::from(c))) },
            }
        }
    }
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_hidden(*c)) {
        let (before, after) = rest.split_at(at);
        if !before.is_empty() {
            pieces.push(Piece::Shown(before));
        }
        pieces.push(Piece::Hidden(c));
        rest = after.get(c.len_utf8()..).unwrap_or_default();
    }
    if !rest.is_empty() {
        pieces.push(Piece::Shown(rest));
    }
    pieces
}

/// Whether a character shows nothing, or looks like a space and is none.
fn is_hidden(c: char) -> bool {
    let is_plain = matches!(c, ' ' | '\n' | '\t');
    !is_plain && (c.is_control() || c.is_whitespace() || is_invisible(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::markup::check;

    #[test]
    fn a_hidden_character_has_a_mark_and_markup_is_text() {
        for (text, shown) in [
            ("a\u{202e}b", "aU+202Eb"),
            ("\u{1b}[31mred\r", "U+001B[31mredU+000D"),
            ("x\u{a0}y\u{2028}", "xU+00A0yU+2028"),
            ("pass\u{200b}word", "passU+200Bword"),
            ("<script>&amp;", "&lt;script&gt;&amp;amp;"),
            ("один \u{1f600}\tb", "один \u{1f600}\tb"),
        ] {
            let page = html! { pre { (visibly(text)) } }.into_string();
            assert_eq!(check(&page).err(), None, "{page}");
            assert!(!page.contains("<script"), "{page}");
            let marks = text.chars().filter(|c| is_hidden(*c)).count();
            assert_eq!(page.matches("<mark class=\"hc\">").count(), marks);
            let unmarked = page
                .replace("<mark class=\"hc\">", "")
                .replace("</mark>", "");
            assert_eq!(unmarked, format!("<pre>{shown}</pre>"));
        }
    }
}
