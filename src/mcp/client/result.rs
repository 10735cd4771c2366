//! Converts an MCP result into the text that a model reads: flattened, masked and cut.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use super::cut;
use crate::engine::ports::ToolReply;
use crate::investigation::mask::Mask;

/// The reply to a call with this result. Masks before it cuts, because half of a secret would not be recognised.
pub(super) fn reply(result: &CallToolResult, mask: &Mask, max_tokens: u32) -> ToolReply {
    let clean = flatten(result).replace('\0', "");
    let full = mask.apply(&clean).into_owned();
    let (bytes, is_error) = (full.len() as u64, result.is_error.unwrap_or(false));
    match cut::cut(&full, max_tokens) {
        Some(content) => ToolReply::Answered { content, full: Some(full), bytes, is_error },
        None => ToolReply::Answered { content: full, full: None, bytes, is_error },
    }
}

fn flatten(result: &CallToolResult) -> String {
    let blocks: Vec<String> = result.content.iter().map(block).filter(|text| !text.is_empty()).collect();
    match &result.structured_content {
        Some(value) if blocks.is_empty() => value.to_string(),
        Some(_) | None => blocks.join("\n"),
    }
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => placeholder("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => placeholder("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                format!("{uri} {}", placeholder("resource", mime_type.as_deref().unwrap_or("binary"), blob))
            }
            other => format!("[resource of an unknown kind: {other:?}]"),
        },
        ContentBlock::ResourceLink(link) => format!("{} <{}>", link.name, link.uri),
        other => format!("[content of an unknown kind: {other:?}]"),
    }
}

/// `[image image/png 12 KB]`, with the size of the decoded data.
fn placeholder(kind: &str, mime_type: &str, base64: &str) -> String {
    let bytes = base64.trim_end_matches('=').len() * 3 / 4;
    let size = if bytes < 1024 { format!("{bytes} B") } else { format!("{} KB", bytes.div_ceil(1024)) };
    format!("[{kind} {mime_type} {size}]")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn flat(result: serde_json::Value) -> ToolReply {
        reply(&serde_json::from_value(result).unwrap(), &Mask::default(), 1000)
    }

    fn answered(content: &str) -> ToolReply {
        ToolReply::Answered { content: content.to_owned(), full: None, bytes: content.len() as u64, is_error: false }
    }

    #[test]
    fn every_kind_of_content_becomes_text() {
        let result = json!({"content": [
            {"type": "text", "text": "one\u{0}"},
            {"type": "image", "data": "A".repeat(16_000), "mimeType": "image/png"},
            {"type": "audio", "data": "QUJD", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "inline"}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": "QUI="}},
            {"type": "resource_link", "uri": "file:///c", "name": "c"},
        ], "structuredContent": {"not": "shown"}});
        let expected = "one\n[image image/png 12 KB]\n[audio audio/wav 3 B]\ninline\n\
                        file:///b [resource binary 2 B]\nc <file:///c>";
        assert_eq!(flat(result), answered(expected));
    }

    #[test]
    fn structured_content_replaces_missing_text() {
        let result = json!({"content": [], "structuredContent": {"pods": 3}, "isError": true});
        let content = r#"{"pods":3}"#.to_owned();
        assert_eq!(flat(result), ToolReply::Answered { content, full: None, bytes: 10, is_error: true });
        assert_eq!(flat(json!({"content": []})), answered(""));
    }

    #[test]
    fn a_secret_at_the_cut_is_masked_in_both_texts() {
        let text = format!("{}\npassword={}\n{}", "a".repeat(50), "s3cret".repeat(40), "b".repeat(300));
        let ToolReply::Answered { content, full: Some(full), bytes, is_error: false } =
            reply(&CallToolResult::success(vec![ContentBlock::text(text)]), &Mask::default(), 90)
        else {
            panic!("not cut")
        };
        assert_eq!(bytes, full.len() as u64);
        assert!(content.contains("password=[masked]") && full.contains("password=[masked]"), "{content}");
        assert!(!content.contains("s3cret") && !full.contains("s3cret"));
    }
}
