//! Blocks as Markdown of code hosts. Every mark in a text is escaped; mentions, references and addresses are broken by
//! the invisible U+2060, because a backslash does not keep them from being links.

use super::text::{prefix, separator};
use super::{Block, Kind, Span};

/// Breaks a word without a visible sign.
const JOINER: char = '\u{2060}';

pub(super) fn write(blocks: &[Block]) -> String {
    let mut writer = Writer::default();
    let mut before = None;
    for block in blocks {
        if let Some(before) = before {
            writer.out.push_str(separator(before, block.kind));
        }
        writer.block(block);
        before = Some(block.kind);
    }
    writer.out
}

#[derive(Default)]
struct Writer {
    out: String,
    /// Nothing has been written in this line but the mark of its block.
    is_at_start: bool,
}

impl Writer {
    fn block(&mut self, block: &Block) {
        if block.kind == Kind::Code {
            let code: String = block.spans.iter().map(Span::text).collect();
            self.fenced(code.trim_end());
            return;
        }
        self.out.push_str(&prefix(block.kind));
        self.is_at_start = true;
        for span in &block.spans {
            match span {
                Span::Text(text) if block.kind != Kind::Heading => self.text(text),
                Span::Text(text) | Span::Strong(text) => self.between("**", text),
                Span::Emphasis(text) => self.between("*", text),
                Span::Code(text) => self.code(text),
                Span::Break => {
                    self.out.push_str(match block.kind {
                        Kind::Paragraph | Kind::Heading | Kind::Code => "\\\n",
                        Kind::Item | Kind::Numbered(_) => "\\\n   ",
                        Kind::Quote => "\\\n> ",
                    });
                    self.is_at_start = true;
                }
                Span::Page(address) => {
                    self.out.push('<');
                    self.out.push_str(address);
                    self.out.push('>');
                }
            }
        }
    }

    /// Text between marks, which have to touch it.
    fn between(&mut self, mark: &str, text: &str) {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return self.text(text);
        }
        if text.starts_with(char::is_whitespace) && !self.is_at_start {
            self.out.push(' ');
        }
        self.out.push_str(mark);
        self.text(trimmed);
        self.out.push_str(mark);
        if text.ends_with(char::is_whitespace) {
            self.out.push(' ');
        }
    }

    fn text(&mut self, text: &str) {
        let mut chars = text.chars().peekable();
        let mut word = String::new();
        while let Some(c) = chars.next() {
            let c = if c.is_whitespace() { ' ' } else { c };
            if self.is_at_start && c == ' ' {
                continue;
            }
            let next = chars.peek().copied();
            let is_before_digit = next.is_some_and(|next| next.is_ascii_digit());
            match c {
                '@' => self.out.extend([c, JOINER]),
                '#' | '!' if is_before_digit => self.out.extend(['\\', c, JOINER]),
                ':' if next == Some('/') => self.out.extend([c, JOINER]),
                '.' if word.eq_ignore_ascii_case("www") => self.out.extend([JOINER, c]),
                // A line that begins with / is a command of GitLab.
                '/' if self.is_at_start => self.out.extend([JOINER, c]),
                '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '~' | '|' | '$' | '!'
                | '#' => {
                    self.out.extend(['\\', c]);
                }
                '+' | '-' | '=' if self.is_at_start => self.out.extend(['\\', c]),
                '.' | ')' if is_number(&word) => self.out.extend(['\\', c]),
                _ => self.out.push(c),
            }
            if c.is_alphanumeric() {
                word.push(c);
            } else {
                word.clear();
            }
            self.is_at_start = false;
        }
    }

    /// Code between more back quotes than it has.
    fn code(&mut self, code: &str) {
        let code = code.replace('\n', " ");
        let fence = "`".repeat(longest_run(&code).saturating_add(1));
        if self.out.ends_with('`') {
            // Two runs of back quotes would be one.
            self.out.push(JOINER);
        }
        self.out.push_str(&format!("{fence} {code} {fence}"));
        self.is_at_start = false;
    }

    fn fenced(&mut self, code: &str) {
        let fence = "`".repeat(longest_run(code).max(2).saturating_add(1));
        self.out.push_str(&format!("{fence}\n{code}\n{fence}"));
        self.is_at_start = false;
    }
}

/// Whether a dot behind the word could make it the number of an item.
fn is_number(word: &str) -> bool {
    !word.is_empty() && word.len() <= 9 && word.chars().all(|c| c.is_ascii_digit())
}

fn longest_run(code: &str) -> usize {
    code.split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default()
}
