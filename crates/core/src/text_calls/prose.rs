//! The prose of a Markdown text: all that is no code, no quotation and no comment.

use crate::code::{CodeSpans, FenceMark, ends, fence, is_blank};

/// Additional columns that make a line indented code.
const CODE_INDENT: usize = 4;

/// The text with spaces in the place of its code, quotations and comments: every offset stays the same.
pub(super) fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quotations = Quotations::default();
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        if quotations.hide(content) {
            out.extend(std::iter::repeat_n(' ', content.len()));
        } else {
            push_without_code(&mut out, content);
        }
        out.push_str(line.get(content.len()..).unwrap_or_default());
    }
    out
}

/// The quotations that may continue in the next line.
#[derive(Debug)]
struct Quotations {
    fence: Option<FenceMark>,
    is_comment: bool,
    /// Smallest indentation of the lines that are not blank.
    base: usize,
}

impl Default for Quotations {
    fn default() -> Self {
        Self {
            fence: None,
            is_comment: false,
            base: usize::MAX,
        }
    }
}

impl Quotations {
    /// Whether the line is a part of a quotation.
    fn hide(&mut self, line: &str) -> bool {
        if let Some(mark) = self.fence {
            self.fence = (!ends(line, mark)).then_some(mark);
            return true;
        }
        if self.is_comment {
            self.is_comment = !line.contains("-->");
            return true;
        }
        let bare = line.trim_start_matches(is_blank);
        if bare.is_empty() {
            return false;
        }
        if let Some(mark) = fence(line) {
            self.fence = Some(mark);
            return true;
        }
        if bare.starts_with("<!--") {
            self.is_comment = !bare.contains("-->");
            return true;
        }
        let indent = line
            .chars()
            .take_while(|c| is_blank(*c))
            .map(|c| if c == '\t' { CODE_INDENT } else { 1 })
            .sum();
        self.base = self.base.min(indent);
        bare.starts_with('>') || indent >= self.base.saturating_add(CODE_INDENT)
    }
}

/// Appends a line with spaces in the place of its code spans.
fn push_without_code(out: &mut String, line: &str) {
    let mut spans = CodeSpans::new(line);
    for (at, c) in line.char_indices() {
        match spans.contain(at, at + c.len_utf8()) {
            true => out.extend(std::iter::repeat_n(' ', c.len_utf8())),
            false => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_quotations_become_spaces_and_every_offset_stays() {
        let text = "see `<a>` and ü\n```\n<b>\n```\n> <c>\n<!-- <d>\n<e> -->\n\n    <f>\nend <g>\n";
        let prose = prose(text);
        assert_eq!(prose.len(), text.len());
        assert_eq!(prose.find("<g>"), text.find("<g>"));
        for hidden in ["<a>", "<b>", "<c>", "<d>", "<e>", "<f>"] {
            assert!(!prose.contains(hidden), "{hidden}: {prose}");
        }
        assert_eq!(prose.lines().count(), text.lines().count());
    }
}
