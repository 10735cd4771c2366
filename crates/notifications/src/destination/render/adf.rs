//! Blocks as nodes of the Atlassian Document Format. A mention is a type of node that is never made here, and a text is
//! a text whatever it has.

use serde_json::{Value, json};

use super::{Block, Kind, Span};

pub(super) fn write(blocks: &[Block]) -> Value {
    let mut content: Vec<Value> = Vec::new();
    for block in blocks {
        let paragraph = json!({"type": "paragraph", "content": inline(&block.spans)});
        match block.kind {
            Kind::Paragraph => content.push(paragraph),
            Kind::Heading => {
                content.push(json!({"type": "heading", "attrs": {"level": 4}, "content": inline(&block.spans)}));
            }
            Kind::Item => add_item(&mut content, "bulletList", paragraph),
            Kind::Numbered(_) => add_item(&mut content, "orderedList", paragraph),
            Kind::Quote => content.push(json!({"type": "blockquote", "content": [paragraph]})),
            Kind::Code => {
                let code: String = block.spans.iter().map(Span::text).collect();
                let code = json!({"type": "text", "text": code});
                content.push(json!({"type": "codeBlock", "content": [code]}));
            }
        }
    }
    json!({"version": 1, "type": "doc", "content": content})
}

/// Adds an item to the list at the end, or begins one.
fn add_item(content: &mut Vec<Value>, list: &str, paragraph: Value) {
    let item = json!({"type": "listItem", "content": [paragraph]});
    let last = content
        .last_mut()
        .filter(|node| node.get("type").and_then(Value::as_str) == Some(list));
    match last.and_then(|node| node.get_mut("content")?.as_array_mut()) {
        Some(items) => items.push(item),
        None => content.push(json!({"type": list, "content": [item]})),
    }
}

fn inline(spans: &[Span]) -> Vec<Value> {
    spans
        .iter()
        .filter(|span| !span.text().is_empty())
        .map(|span| {
            let text = span.text();
            let marked = |mark: Value| json!({"type": "text", "text": text, "marks": [mark]});
            match span {
                Span::Text(_) => json!({"type": "text", "text": text}),
                Span::Strong(_) => marked(json!({"type": "strong"})),
                Span::Emphasis(_) => marked(json!({"type": "em"})),
                Span::Code(_) => marked(json!({"type": "code"})),
                Span::Break => json!({"type": "hardBreak"}),
                Span::Page(_) => marked(json!({"type": "link", "attrs": {"href": text}})),
            }
        })
        .collect()
}
