//! Cleans, measures, cuts and wraps text of models and tools before a terminal shows it.
//!
//! The output of [`clean`] cannot move a cursor, change a colour or turn the direction of writing.

use unicode_width::UnicodeWidthChar;

use super::style::Charset;
pub(super) use crate::investigation::visible::is_invisible;

/// A control string (a window title, say) that has no end within so many characters counts as text.
const MAX_CONTROL_STRING: usize = 4096;

/// `text` without escape sequences, control characters and invisible characters; line breaks stay.
pub(crate) fn clean(text: &str, charset: Charset) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\n' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\t' | '\r' => out.push(' '),
            '\u{1b}' => rest = after_escape(rest.as_str()).chars(),
            '\u{9b}' => rest = after_csi(rest.as_str()).chars(),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => rest = after_control_string(rest.as_str()).chars(),
            c if c.is_control() || is_invisible(c) => {}
            c if charset == Charset::Ascii && !c.is_ascii() => out.push_str(in_ascii(c)),
            c => out.push(c),
        }
    }
    out
}

/// `text` cleaned, with each run of white space replaced by one space.
pub(crate) fn one_line(text: &str, charset: Charset) -> String {
    clean(text, charset).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Columns that `text` takes in a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// `text` with spaces behind it up to `columns`.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// `text` with spaces before it up to `columns`.
pub(crate) fn pad_left(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// The parts that exist, with `separator` between them.
pub(crate) fn join(parts: impl IntoIterator<Item = Option<String>>, separator: &str) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(separator)
}

/// The beginning of `text` in at most `columns`; an ellipsis stands for the rest.
pub(crate) fn cut(text: &str, columns: usize, charset: Charset) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let ellipsis = charset.ellipsis();
    let mut out = head(text.chars(), columns.saturating_sub(width(ellipsis)));
    out.truncate(out.trim_end().len());
    out.push_str(ellipsis);
    head(out.chars(), columns)
}

/// The end of `text` in at most `columns`; an ellipsis stands for the rest.
pub(crate) fn cut_front(text: &str, columns: usize, charset: Charset) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let ellipsis = charset.ellipsis();
    let backwards = head(text.chars().rev(), columns.saturating_sub(width(ellipsis)));
    format!("{ellipsis}{}", backwards.chars().rev().collect::<String>().trim_start())
}

/// `text` in lines of at most `columns`, broken at spaces where possible; keeps indentation and empty lines.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    text.trim_matches('\n').trim_end().lines().flat_map(|line| wrap_line(line.trim_end(), columns)).collect()
}

/// `parts` with `gap` between them; a part that does not fit into `columns` begins a line.
pub(crate) fn flow(parts: &[&str], gap: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut().filter(|line| width(line) + width(gap) + width(part) <= columns) {
            Some(line) => {
                line.push_str(gap);
                line.push_str(part);
            }
            None => lines.push((*part).to_owned()),
        }
    }
    lines
}

/// The first sentence of `text`; a heading only if `text` has nothing else.
pub(crate) fn first_sentence(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let is_heading = |line: &str| line.starts_with('#') || (line.starts_with("**") && line.ends_with("**"));
    let line = if is_heading(first) { lines.find(|line| !is_heading(line)).unwrap_or(first) } else { first };
    let line = line.trim_matches(['#', '*', ' ']);
    let end = line.char_indices().find_map(|(at, c)| {
        let after = line.get(at + c.len_utf8()..)?;
        (at > 12 && matches!(c, '.' | '!' | '?') && after.starts_with(' ')).then_some(at + c.len_utf8())
    });
    end.and_then(|end| line.get(..end)).unwrap_or(line).to_owned()
}

fn wrap_line(line: &str, columns: usize) -> Vec<String> {
    let indent: String = line.chars().take_while(|c| *c == ' ').take(columns / 2).collect();
    let mut lines = Vec::new();
    let mut current = indent.clone();
    for word in line.split_whitespace() {
        let begun = current.len() > indent.len();
        if begun && width(&current) + 1 + width(word) > columns {
            lines.push(std::mem::replace(&mut current, indent.clone()));
        } else if begun {
            current.push(' ');
        }
        for c in word.chars() {
            if width(&current) + char_width(c) > columns && current.len() > indent.len() {
                lines.push(std::mem::replace(&mut current, indent.clone()));
            }
            current.push(c);
        }
    }
    lines.push(current.trim_end().to_owned());
    lines
}

fn head(characters: impl Iterator<Item = char>, mut room: usize) -> String {
    let fits = |c: &char| room.checked_sub(char_width(*c)).map(|left| room = left).is_some();
    characters.take_while(fits).collect()
}

fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
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
    rest.strip_prefix(|c| matches!(c, '@'..='~')).unwrap_or(rest)
}

/// The text after a control string; if it has no end on this line, the text after its beginning.
fn after_control_string(rest: &str) -> &str {
    let mut characters = rest.char_indices().take(MAX_CONTROL_STRING);
    let stop = characters.find_map(|(at, c)| matches!(c, '\u{7}' | '\u{9c}' | '\u{1b}' | '\n').then_some(at));
    let end = stop.and_then(|at| rest.get(at..)).unwrap_or_default();
    ["\u{7}", "\u{9c}", "\u{1b}\\"].iter().find_map(|terminator| end.strip_prefix(terminator)).unwrap_or(rest)
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
            ("evil\u{202e}txt.exe zero\u{200b}width", "eviltxt.exe zerowidth"),
        ] {
            assert_eq!(clean(text, Charset::Unicode), cleaned, "{text:?}");
        }
    }

    #[test]
    fn ascii_keeps_what_punctuation_means() {
        assert_eq!(clean("480Mi → 511Mi … “why” é", Charset::Ascii), "480Mi -> 511Mi ... \"why\" ?");
    }

    #[test]
    fn cutting_counts_columns_and_leaves_an_ellipsis() {
        assert_eq!(cut("exactly ten", 11, Charset::Unicode), "exactly ten");
        assert_eq!(cut("exactly ten", 9, Charset::Unicode), "exactly…");
        assert_eq!(cut("exactly ten", 9, Charset::Ascii), "exactl...");
        assert_eq!(cut("磁盘已满", 5, Charset::Unicode), "磁盘…");
        assert_eq!(cut("long", 2, Charset::Ascii), "..");
        assert_eq!(cut_front("the end of it", 8, Charset::Unicode), "…d of it");
        assert_eq!(cut_front("磁盘已满", 5, Charset::Unicode), "…已满");
    }

    #[test]
    fn wrapping_keeps_indentation_and_breaks_long_words() {
        assert_eq!(
            wrap("Evidence:\n  - the limit is 512Mi\n\nabcdefghijklmnop\n", 12),
            ["Evidence:", "  - the", "  limit is", "  512Mi", "", "abcdefghijkl", "mnop"]
        );
    }

    #[test]
    fn a_first_sentence_ends_at_a_full_stop_or_a_line() {
        assert_eq!(first_sentence("**Looking at it**\n\nThe pod died."), "The pod died.");
        assert_eq!(first_sentence("## Looking at it\n"), "Looking at it");
        assert_eq!(first_sentence("\nThe pod died with 1.5 Gi. Why?"), "The pod died with 1.5 Gi.");
        assert_eq!(first_sentence("No end"), "No end");
        assert_eq!(first_sentence(""), "");
    }
}
