//! Measures, cuts and wraps text of models and tools for the columns of a terminal.

use super::style::Charset;
pub(crate) use tarsy_core::readable::text::{clean, first_sentence, join, one_line};
use tarsy_reports::columns::{char_width, head};
pub(crate) use tarsy_reports::columns::{cut, width};

/// `text` with spaces after it up to `columns`.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// `text` with spaces before it up to `columns`.
pub(crate) fn pad_left(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// The end of `text` in at most `columns`; an ellipsis represents the rest.
pub(crate) fn cut_front(text: &str, columns: usize, charset: Charset) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let ellipsis = charset.ellipsis();
    let backwards = head(text.chars().rev(), columns.saturating_sub(width(ellipsis)));
    format!(
        "{ellipsis}{}",
        backwards.chars().rev().collect::<String>().trim_start()
    )
}

/// `text` in lines of at most `columns`, broken at spaces where possible; keeps indentation and empty lines.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    text.trim_matches('\n')
        .trim_end()
        .lines()
        .flat_map(|line| wrap_line(line.trim_end(), columns))
        .collect()
}

/// `parts` with `gap` between them; a part that does not fit into `columns` begins a line.
pub(crate) fn flow(parts: &[&str], gap: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if width(line) + width(gap) + width(part) <= columns => {
                line.push_str(gap);
                line.push_str(part);
            }
            Some(_) | None => lines.push((*part).to_owned()),
        }
    }
    lines
}

fn wrap_line(line: &str, columns: usize) -> Vec<String> {
    let indent: String = line
        .chars()
        .take_while(|c| *c == ' ')
        .take(columns / 2)
        .collect();
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

#[cfg(test)]
mod tests {
    use super::*;

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
            wrap(
                "Evidence:\n  - the limit is 512Mi\n\nabcdefghijklmnop\n",
                12
            ),
            [
                "Evidence:",
                "  - the",
                "  limit is",
                "  512Mi",
                "",
                "abcdefghijkl",
                "mnop"
            ]
        );
    }
}
