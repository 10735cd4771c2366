//! Text of models and tools as a terminal or a page may show it.
//!
//! The output of [`clean`] cannot move a cursor, change a colour or turn the direction of writing.

pub use crate::visible::is_invisible;

/// The characters that the output may contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charset {
    #[default]
    Unicode,
    /// The text has no character above 127.
    Ascii,
}

impl Charset {
    /// `glyph`, or `plain` where only ASCII may be shown.
    pub fn pick<'a>(self, glyph: &'a str, plain: &'a str) -> &'a str {
        match self {
            Self::Unicode => glyph,
            Self::Ascii => plain,
        }
    }

    /// An arrow to the right.
    pub fn arrow(self) -> &'static str {
        self.pick("→", "->")
    }

    /// Three dots.
    pub fn ellipsis(self) -> &'static str {
        self.pick("…", "...")
    }
}

/// A control string (a window title, say) that has no end within so many characters counts as text.
const MAX_CONTROL_STRING: usize = 4096;

/// `text` without escape sequences, control characters and invisible characters; line breaks stay.
pub fn clean(text: &str, charset: Charset) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        // Most texts have long plain parts, and each of them is copied at once.
        let plain = rest
            .bytes()
            .position(|byte| !matches!(byte, b' '..=b'~'))
            .unwrap_or(rest.len());
        let (copied, after) = rest.split_at(plain);
        out.push_str(copied);
        let mut chars = after.chars();
        let Some(c) = chars.next() else { return out };
        rest = chars.as_str();
        match c {
            '\n' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\t' | '\r' => out.push(' '),
            '\u{1b}' => rest = after_escape(rest),
            '\u{9b}' => rest = after_csi(rest),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => rest = after_control_string(rest),
            c if c.is_control() || is_invisible(c) => {}
            c if charset == Charset::Ascii && !c.is_ascii() => out.push_str(in_ascii(c)),
            c => out.push(c),
        }
    }
}

/// `text` cleaned, with each run of white space replaced by one space.
pub fn one_line(text: &str, charset: Charset) -> String {
    clean(text, charset)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The beginning of a text, at most `bytes` long, that ends with a whole character.
pub(crate) fn beginning(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes))
        .unwrap_or_default()
}

/// The parts that exist, with `separator` between them.
pub fn join(parts: impl IntoIterator<Item = Option<String>>, separator: &str) -> String {
    parts
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(separator)
}

/// The first sentence of `text`; a heading only if `text` has nothing else.
pub fn first_sentence(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let is_heading =
        |line: &str| line.starts_with('#') || (line.starts_with("**") && line.ends_with("**"));
    let line = if is_heading(first) {
        lines.find(|line| !is_heading(line)).unwrap_or(first)
    } else {
        first
    };
    let line = line.trim_matches(['#', '*', ' ']);
    let end = line.char_indices().find_map(|(at, c)| {
        let after = line.get(at + c.len_utf8()..)?;
        (at > 12 && matches!(c, '.' | '!' | '?') && after.starts_with(' '))
            .then_some(at + c.len_utf8())
    });
    end.and_then(|end| line.get(..end))
        .unwrap_or(line)
        .to_owned()
}

/// The last eight characters of a text that should be an id.
pub fn short_id(id: &str) -> String {
    let id = one_line(id, Charset::Unicode);
    let skipped = id.chars().count().saturating_sub(8);
    id.chars().skip(skipped).collect()
}

fn in_ascii(c: char) -> &'static str {
    match c {
        '‘' | '’' => "'",
        '“' | '”' => "\"",
        '–' | '—' | '−' => "-",
        '…' => "...",
        '→' => "->",
        '←' => "<-",
        '·' | '•' => "*",
        '×' => "x",
        '≤' => "<=",
        '≥' => ">=",
        '\u{a0}' => " ",
        'µ' | 'μ' => "u",
        _ => "?",
    }
}

fn after_escape(rest: &str) -> &str {
    let mut next = rest.chars();
    match next.next() {
        Some('[') => after_csi(next.as_str()),
        Some('P' | 'X' | ']' | '^' | '_') => after_control_string(next.as_str()),
        Some(' '..='/') => {
            next.next();
            next.as_str()
        }
        Some('0'..='~') => next.as_str(),
        Some(_) | None => rest,
    }
}

/// The text after a control sequence, which is parameters and one final character.
fn after_csi(rest: &str) -> &str {
    let rest = rest.trim_start_matches(|c| matches!(c, ' '..='?'));
    rest.strip_prefix(|c| matches!(c, '@'..='~'))
        .unwrap_or(rest)
}

/// The text after a control string; if it has no end on this line, the text after its beginning.
fn after_control_string(rest: &str) -> &str {
    let mut characters = rest.char_indices().take(MAX_CONTROL_STRING);
    let stop = characters
        .find_map(|(at, c)| matches!(c, '\u{7}' | '\u{9c}' | '\u{1b}' | '\n').then_some(at));
    let end = stop.and_then(|at| rest.get(at..)).unwrap_or_default();
    ["\u{7}", "\u{9c}", "\u{1b}\\"]
        .iter()
        .find_map(|terminator| end.strip_prefix(terminator))
        .unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_cannot_drive_a_terminal() {
        for (text, cleaned) in [
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b[2J\x1b[1;1Hgone", "gone"),
            ("\x1b]0;my title\x07text", "text"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\u{9b}31mred", "red"),
            ("\x1b]0;never closed\nnext", "0;never closed\nnext"),
            ("\x1bPq#0;2\x1b\\six", "six"),
            ("\x1b(Bplain\x1b7", "plain"),
            ("a\x1b", "a"),
            ("bell\x07 back\x08\x08 nul\0", "bell back nul"),
            ("10 %\r20 %\tdone", "10 % 20 % done"),
            (
                "evil\u{202e}txt.exe zero\u{200b}width",
                "eviltxt.exe zerowidth",
            ),
        ] {
            assert_eq!(clean(text, Charset::Unicode), cleaned, "{text:?}");
        }
    }

    #[test]
    fn ascii_keeps_what_punctuation_means() {
        assert_eq!(
            clean("480Mi → 511Mi … “why” é", Charset::Ascii),
            "480Mi -> 511Mi ... \"why\" ?"
        );
    }

    #[test]
    fn a_first_sentence_ends_at_a_full_stop_or_a_line() {
        assert_eq!(
            first_sentence("**Looking at it**\n\nThe pod died."),
            "The pod died."
        );
        assert_eq!(first_sentence("## Looking at it\n"), "Looking at it");
        assert_eq!(
            first_sentence("\nThe pod died with 1.5 Gi. Why?"),
            "The pod died with 1.5 Gi."
        );
        assert_eq!(first_sentence("No end"), "No end");
        assert_eq!(first_sentence(""), "");
    }
}
