//! Blocks as HTML of few elements, whose texts are escaped.

use super::{Block, Kind, Span};

pub(super) fn write(blocks: &[Block]) -> String {
    let mut out = String::new();
    let mut list = None;
    for block in blocks {
        let needed = list_of(block.kind);
        if needed != list {
            out.push_str(&list.map(|name| format!("</{name}>")).unwrap_or_default());
            out.push_str(&needed.map(|name| format!("<{name}>")).unwrap_or_default());
            list = needed;
        }
        let spans: String = block.spans.iter().map(span).collect();
        let element = element(block.kind);
        out.push_str(&format!("<{element}>{spans}</{element}>"));
    }
    out.push_str(&list.map(|name| format!("</{name}>")).unwrap_or_default());
    out
}

fn list_of(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Item => Some("ul"),
        Kind::Numbered(_) => Some("ol"),
        Kind::Paragraph | Kind::Heading | Kind::Quote | Kind::Code => None,
    }
}

fn element(kind: Kind) -> &'static str {
    match kind {
        Kind::Paragraph => "p",
        Kind::Heading => "h4",
        Kind::Item | Kind::Numbered(_) => "li",
        Kind::Quote => "blockquote",
        Kind::Code => "pre",
    }
}

fn span(span: &Span) -> String {
    let text = escaped(span.text());
    match span {
        Span::Text(_) => text,
        Span::Strong(_) => format!("<strong>{text}</strong>"),
        Span::Emphasis(_) => format!("<em>{text}</em>"),
        Span::Code(_) => format!("<code>{text}</code>"),
        Span::Break => "<br>".to_owned(),
        Span::Page(_) => format!("<a href=\"{text}\">{text}</a>"),
    }
}

fn escaped(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '"' => "&quot;".to_owned(),
            '\'' => "&#39;".to_owned(),
            c => c.to_string(),
        })
        .collect()
}
