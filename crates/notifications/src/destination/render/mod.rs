//! A report as the text of a note: plain, as Markdown, as HTML, or as nodes of the Atlassian Document Format.
//!
//! `markdown` parses the text of a model into [`Block`]s, a flat list without markup; `report` joins them with what
//! tarsy itself says; one writer for each form makes its marks again and escapes every text. So no text of a model has
//! a meaning at a vendor, and the only link is the page of the investigation.

mod parsed;
mod report;
mod text;
mod markdown;
mod html;
mod adf;

use serde_json::Value;

pub(crate) use self::report::Report;
use self::report::Source;
use tarsy_config::sections::destinations::{Form, Render};

/// A paragraph, an item, or lines of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) kind: Kind,
    pub(super) spans: Vec<Span>,
}

/// The kind of a block. A nested list is a part of the outer one, and a row of a table is a paragraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Paragraph,
    Heading,
    Item,
    /// An item with its number.
    Numbered(u64),
    Quote,
    Code,
}

/// A part of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Span {
    Text(String),
    Strong(String),
    Emphasis(String),
    Code(String),
    /// The end of a line within a paragraph.
    Break,
    /// The address of the investigation's page; no other one is a link.
    Page(String),
}

impl Span {
    fn text(&self) -> &str {
        match self {
            Self::Text(text)
            | Self::Strong(text)
            | Self::Emphasis(text)
            | Self::Code(text)
            | Self::Page(text) => text,
            Self::Break => "\n",
        }
    }
}

/// The rendered part of a report, at most `max` characters long. What does not fit is left out of the analysis.
pub(crate) fn rendered(report: &Report, render: Render) -> Value {
    let mut limit = render.max;
    loop {
        let source = Source {
            part: render.part,
            limit,
        };
        let blocks = report.blocks(source);
        let written = match render.form {
            Form::Text => Value::from(text::write(&blocks)),
            Form::Markdown => Value::from(markdown::write(&blocks)),
            Form::Html => Value::from(html::write(&blocks)),
            Form::Adf => adf::write(&blocks),
        };
        let length = written.as_str().map_or_else(
            || written.to_string().chars().count(),
            |text| text.chars().count(),
        );
        if length <= render.max || limit == 0 {
            return written;
        }
        limit /= 2;
    }
}

/// The lines of a text as HTML without a meaning of their own; `link` is the address of the investigation's page.
pub(crate) fn lines_in_html(text: &str, link: &str) -> String {
    let mut spans = Vec::new();
    for line in text.lines() {
        spans.extend(with_page(line, link));
        spans.push(Span::Break);
    }
    html::write(&[Block {
        kind: Kind::Paragraph,
        spans,
    }])
}

/// A line in which the address of the page is a link.
fn with_page(line: &str, link: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut rest = line;
    if !link.is_empty() {
        while let Some((before, after)) = rest.split_once(link) {
            spans.push(Span::Text(before.to_owned()));
            spans.push(Span::Page(link.to_owned()));
            rest = after;
        }
    }
    spans.push(Span::Text(rest.to_owned()));
    spans
}

#[cfg(test)]
mod tests;
