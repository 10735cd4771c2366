//! Escapes text of models, tools and alerts for a Markdown document that people paste into tickets.
//!
//! Such text adds no image, HTML, heading or fence to the document, and no link that hides its address.

use crate::investigation::readable::text::{self, Charset};
use crate::reports::columns::cut;

/// One line of plain text: every character with a meaning in Markdown is escaped.
pub(super) fn inline(outside: &str) -> String {
    let mut out = String::new();
    for c in text::one_line(outside, Charset::Unicode).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '!' | '&' | '$' | '@') {
            out.push('\\');
        }
        out.push(c);
    }
    // These characters begin a list at the beginning of a line.
    match out.chars().next() {
        Some('-' | '+' | '=') => format!("\\{out}"),
        Some(digit) if digit.is_ascii_digit() => out.replacen('.', "\\.", 1),
        _ => out,
    }
}

/// One line as a code span, cut at `columns`; an empty text stays empty.
pub(super) fn code(outside: &str, columns: usize) -> String {
    let text = cut(&text::one_line(outside, Charset::Unicode), columns, Charset::Unicode);
    if text.is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(&text, '`') + 1);
    // A span may not begin or end with a backtick of its own.
    let gap = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{gap}{text}{gap}{fence}")
}

/// A code block; its fence is longer than any fence in the text.
pub(super) fn block(outside: &str) -> Vec<String> {
    let text = text::clean(outside, Charset::Unicode);
    let fence = "`".repeat(longest_run(&text, '`').max(2) + 1);
    let mut lines = vec![format!("{fence}text")];
    lines.extend(text.trim_end().lines().map(|line| line.trim_end().to_owned()));
    lines.push(fence);
    lines
}

/// Markdown of a model as a quotation: lists, emphasis and code are rendered, HTML and images are not, and no line
/// leaves the quotation.
pub(super) fn quote(outside: &str) -> Vec<String> {
    let text = text::clean(outside, Charset::Unicode);
    let mut open: Option<Fence> = None;
    let mut lines = Vec::new();
    for line in text.trim_end().trim_start_matches('\n').lines() {
        let line = line.trim_end();
        let shown = match (&open, Fence::opened_by(line)) {
            (Some(fence), _) => {
                if fence.is_closed_by(line) {
                    open = None;
                }
                line.to_owned()
            }
            (None, Some(fence)) => {
                open = Some(fence);
                line.to_owned()
            }
            (None, None) => harmless(line),
        };
        lines.push(format!("> {shown}").trim_end().to_owned());
    }
    lines
}

/// The line with HTML, images and links escaped; the addresses stay readable.
fn harmless(line: &str) -> String {
    let mut out = String::new();
    for c in line.chars() {
        if matches!(c, '<' | '[' | ']' | '&' | '@') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// The fence of a code block at the beginning of a line. An indented fence may belong to a list and end with it, so its
/// content does not count as code.
struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = line.chars().take_while(|c| *c == mark).count();
        let info = line.trim_start_matches(mark);
        (length >= 3 && (mark == '~' || !info.contains('`'))).then_some(Self { mark, length })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let indent = line.chars().take_while(|c| *c == ' ').count();
        let line = line.trim();
        indent <= 3 && line.chars().all(|c| c == self.mark) && line.chars().count() >= self.length
    }
}

fn longest_run(text: &str, wanted: char) -> usize {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == wanted { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_text_stays_a_line_of_text() {
        for (outside, shown) in [
            ("disk **full** <b>\n# now", "disk \\*\\*full\\*\\* \\<b\\> \\# now"),
            ("![x](http://evil)", "\\!\\[x\\](http://evil)"),
            ("- one", "\\- one"),
            ("1. one", "1\\. one"),
            ("a\u{1b}[31mb", "ab"),
        ] {
            assert_eq!(inline(outside), shown);
        }
    }

    #[test]
    fn a_code_span_is_not_ended_by_backticks_in_the_text() {
        assert_eq!(code("a", 9), "`a`");
        assert_eq!(code("a `b`` c", 20), "```a `b`` c```");
        assert_eq!(code("`a`", 9), "`` `a` ``");
        assert_eq!(code("one two", 5), "`one…`");
        assert_eq!(code("\n", 5), "");
    }

    #[test]
    fn text_cannot_leave_its_code_block() {
        let lines = block("before\n````\n# out\n\u{1b}]0;x\u{7}after\n");
        assert_eq!(lines, ["`````text", "before", "````", "# out", "after", "`````"]);
    }

    #[test]
    fn a_quotation_renders_code_and_lists_but_neither_html_nor_images() {
        let analysis = "# Cause\n- *heap* <img src=x> ![p](http://x)\n```sh\nls <dir>\n```\n  ```\n<b>\n  ```\nend";
        let expected = "> # Cause\n> - *heap* \\<img src=x> !\\[p\\](http://x)\n> ```sh\n> ls <dir>\n> ```\n>   ```\n\
                        > \\<b>\n>   ```\n> end";
        assert_eq!(quote(analysis).join("\n"), expected);
    }

    #[test]
    fn only_a_fence_of_the_same_length_closes_a_code_block() {
        let lines = quote("````\n```\n<a>\n````\n<b>");
        assert_eq!(lines.join("\n"), "> ````\n> ```\n> <a>\n> ````\n> \\<b>");
    }
}
