//! The text of a section: trims it as prose, as a tool name or as the input of a call.

use super::inline_header::bare_name;
use crate::code::is_blank;

/// A section from the end of its header to the next one.
#[derive(Clone, Copy, Debug)]
pub(super) struct SectionText<'a> {
    pub(super) text: &'a str,
    /// The emphasis that the header opens; it ends with the line.
    pub(super) unclosed: &'a str,
    /// Indentation of the header's line.
    pub(super) indent: usize,
}

impl<'a> SectionText<'a> {
    /// Whether the section has no text.
    pub(super) fn is_blank(&self) -> bool {
        self.text.trim_matches(is_blank).is_empty()
    }

    /// The text as the name of a tool.
    pub(super) fn name(&self) -> &'a str {
        bare_name(self.text)
    }

    /// The text for people, without trailing spaces.
    pub(super) fn prose(self) -> String {
        let (first, below) = self.first();
        let mut text = String::with_capacity(self.text.len());
        text.push_str(first.trim_end());
        let mut rest = below.trim_end();
        if !rest.is_empty() {
            text.push('\n');
        }
        while !rest.is_empty() {
            // Copies empty lines at once: there may be a million of them.
            let filled = rest.trim_start_matches('\n');
            text.push_str(rest.get(..rest.len() - filled.len()).unwrap_or_default());
            let (line, more) = filled
                .split_at_checked(filled.find('\n').unwrap_or(filled.len()))
                .unwrap_or_default();
            text.push_str(line.trim_end());
            rest = more;
        }
        trimmed(text)
    }

    /// The input of a call. The lines below the header lose their common indentation or, if the header's line has a
    /// text, the indentation of the header.
    pub(super) fn input(self) -> String {
        let (first, below) = self.first();
        let below = below.trim_end();
        let first = first.trim_matches(is_blank);
        let filled = below.lines().filter(|line| !line.trim_start().is_empty());
        let common = if first.is_empty() {
            filled.map(indent).min().unwrap_or(0)
        } else {
            self.indent
        };
        let mut text = String::with_capacity(self.text.len());
        text.push_str(first);
        for line in below.lines() {
            text.push('\n');
            text.push_str(
                line.get(common.min(indent(line))..)
                    .unwrap_or_default()
                    .trim_end(),
            );
        }
        text.trim_start_matches('\n')
            .trim_end_matches(is_blank)
            .to_owned()
    }

    /// The text in the header's line, and the lines below it.
    fn first(&self) -> (&'a str, &'a str) {
        let (first, below) = self.text.split_once('\n').unwrap_or((self.text, ""));
        if self.unclosed.is_empty() {
            return (first, below);
        }
        let closed = first.trim_end().strip_suffix(self.unclosed);
        (closed.unwrap_or(first), below)
    }
}

fn trimmed(text: String) -> String {
    let bare = text.trim_matches(is_blank);
    if bare.len() == text.len() {
        text
    } else {
        bare.to_owned()
    }
}

/// Number of spaces and tabs at the beginning of a line.
pub(super) fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

/// Offset of the last paragraph.
pub(super) fn last_paragraph(text: &str) -> usize {
    if !text.contains("[Based on") {
        return 0;
    }
    let mut end = text.trim_end().len();
    for line in text.get(..end).unwrap_or_default().rsplit('\n') {
        if line.trim().is_empty() {
            break;
        }
        end = end.saturating_sub(line.len() + 1);
    }
    end
}

/// The next line that is not blank, and the lines below it.
pub(super) fn next_line(text: &str) -> (&str, &str) {
    let filled = text.trim_start();
    let blank = text.get(..text.len() - filled.len()).unwrap_or_default();
    let text = text
        .get(blank.rfind('\n').map_or(0, |at| at + 1)..)
        .unwrap_or_default();
    text.split_once('\n').unwrap_or((text, ""))
}

/// An action with its input, as the model wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WrittenAction {
    pub(super) action: String,
    pub(super) input: String,
}

/// An action with its input.
#[derive(Clone, Copy)]
pub(super) struct CompleteAction<'a> {
    pub(super) action: SectionText<'a>,
    pub(super) input: SectionText<'a>,
}

impl CompleteAction<'_> {
    pub(super) fn written(self) -> WrittenAction {
        WrittenAction {
            action: self.action.name().to_owned(),
            input: self.input.input(),
        }
    }
}
