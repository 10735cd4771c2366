//! Characters with a text style: wraps them by their width, and writes them with the terminal's escape sequences.

use std::rc::Rc;

use unicode_width::UnicodeWidthChar;

use crate::cli::render::style::{Charset, Style};
use crate::cli::render::text;

/// The text style of a character.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) is_bold: bool,
    pub(super) is_italic: bool,
    pub(super) is_code: bool,
    pub(super) is_dim: bool,
    /// The address to which the character links; it is also shown.
    pub(super) link: Option<Rc<str>>,
}

impl Look {
    pub(super) fn dim() -> Self {
        Self {
            is_dim: true,
            ..Self::default()
        }
    }

    fn codes(&self) -> Vec<&'static str> {
        let all = [
            (self.is_bold, "1"),
            (self.is_dim, "2"),
            (self.is_italic, "3"),
            (self.is_code, "36"),
        ];
        all.into_iter()
            .filter_map(|(is_on, code)| is_on.then_some(code))
            .collect()
    }
}

/// A character with its look; a line break is a character.
pub(super) type Glyph = (char, Look);

/// `text` cleaned, in one look. A line break stays.
pub(super) fn glyphs(text: &str, look: &Look, charset: Charset) -> Vec<Glyph> {
    text::clean(text, charset)
        .chars()
        .map(|c| (c, look.clone()))
        .collect()
}

/// The columns of a character.
fn columns_of(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// The columns of a line.
pub(super) fn width(line: &[Glyph]) -> usize {
    line.iter().map(|(c, _)| columns_of(*c)).sum()
}

/// The columns of the widest line without wrapping.
pub(super) fn natural_width(text: &[Glyph]) -> usize {
    let lines = text.split(|(c, _)| *c == '\n');
    lines.map(width).max().unwrap_or_default()
}

/// The columns of the widest word.
pub(super) fn widest_word(text: &[Glyph]) -> usize {
    let words = text.split(|(c, _)| matches!(c, ' ' | '\n'));
    words.map(width).max().unwrap_or_default()
}

/// `text` in lines of at most `columns` (at least 2), broken at spaces where possible.
pub(super) fn wrap(text: &[Glyph], columns: usize) -> Vec<Vec<Glyph>> {
    let columns = columns.max(2);
    let mut lines = Vec::new();
    for line in text.split(|(c, _)| *c == '\n') {
        let mut current = Vec::new();
        let mut used = 0;

        let mut space = None;
        for word in line.split_inclusive(|(c, _)| *c == ' ') {
            let (word, next_space) = match word.split_last() {
                Some((last, front)) if last.0 == ' ' => (front, Some(last)),
                Some(_) | None => (word, None),
            };
            if word.is_empty() {
                continue;
            }
            if used > 0 && used + 1 + width(word) > columns {
                lines.push(std::mem::take(&mut current));
                used = 0;
            } else if let Some(space) = space
                && used > 0
            {
                current.push(Glyph::clone(space));
                used += 1;
            }
            for glyph in word {
                let own = columns_of(glyph.0);
                if used + own > columns {
                    lines.push(std::mem::take(&mut current));
                    used = 0;
                }
                current.push(glyph.clone());
                used += own;
            }
            space = next_space;
        }
        lines.push(current);
    }
    lines
}

/// `text` in pieces of at most `columns`, broken anywhere; spaces stay.
pub(super) fn pieces(text: &[Glyph], columns: usize) -> Vec<Vec<Glyph>> {
    let columns = columns.max(2);
    let mut lines = Vec::new();
    let mut current = Vec::new();
    let mut used = 0;

    for glyph in text {
        let own = columns_of(glyph.0);
        if used + own > columns {
            lines.push(std::mem::take(&mut current));
            used = 0;
        }
        current.push(glyph.clone());
        used += own;
    }
    lines.push(current);
    lines
}

/// The line as it is printed, without spaces at its end.
pub(super) fn print(line: &[Glyph], style: &Style) -> String {
    let end = line
        .iter()
        .rposition(|(c, _)| *c != ' ')
        .map_or(0, |last| last + 1);
    let line = line.get(..end).unwrap_or_default();
    let mut out = String::new();
    for run in line.chunk_by(|(_, left), (_, right)| left == right) {
        let Some((_, look)) = run.first() else {
            continue;
        };
        let text: String = run.iter().map(|(c, _)| *c).collect();
        let codes = look.codes();
        let painted = if !style.color || codes.is_empty() || text.trim().is_empty() {
            text
        } else {
            format!("\x1b[{}m{text}\x1b[0m", codes.join(";"))
        };
        match &look.link {
            Some(address) if style.hyperlinks => {
                out.push_str(&format!("\x1b]8;;{address}\x1b\\{painted}\x1b]8;;\x1b\\"))
            }
            Some(_) | None => out.push_str(&painted),
        }
    }
    out
}
