//! Blocks as plain text.

use super::{Block, Kind, Span};

/// Marks of `ServiceNow`, between which a text is HTML.
const CODE_MARKS: [&str; 2] = ["[code]", "[/code]"];

pub(super) fn write(blocks: &[Block]) -> String {
    let mut out = String::new();
    let mut before = None;
    for block in blocks {
        if let Some(before) = before {
            out.push_str(separator(before, block.kind));
        }
        out.push_str(&prefix(block.kind));
        let text: String = block.spans.iter().map(Span::text).collect();
        let text = text.trim_end().replace('\n', &indented(block.kind));
        out.push_str(&without_code_marks(text));
        before = Some(block.kind);
    }
    out
}

/// The separator of two blocks: the items of a list are one paragraph.
pub(super) fn separator(before: Kind, after: Kind) -> &'static str {
    match (before, after) {
        (Kind::Item | Kind::Numbered(_), Kind::Item | Kind::Numbered(_)) => "\n",
        (_, _) => "\n\n",
    }
}

pub(super) fn prefix(kind: Kind) -> String {
    match kind {
        Kind::Paragraph | Kind::Heading => String::new(),
        Kind::Item => "- ".to_owned(),
        Kind::Numbered(number) => format!("{number}. "),
        Kind::Quote => "> ".to_owned(),
        Kind::Code => "    ".to_owned(),
    }
}

/// The end of a line with the beginning of the next one.
fn indented(kind: Kind) -> String {
    match kind {
        Kind::Paragraph | Kind::Heading => "\n".to_owned(),
        Kind::Item | Kind::Numbered(_) => "\n  ".to_owned(),
        Kind::Quote => "\n> ".to_owned(),
        Kind::Code => "\n    ".to_owned(),
    }
}

fn without_code_marks(text: String) -> String {
    let lower = text.to_ascii_lowercase();
    if !CODE_MARKS.iter().any(|mark| lower.contains(mark)) {
        return text;
    }
    text.replace('[', "[\u{2060}")
}
