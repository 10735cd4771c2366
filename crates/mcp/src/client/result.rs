//! Converts an MCP result into the text that a model reads: flattened, cleaned and masked.

use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};
use serde_json::Value;

use tarsy_core::visible::visible;
use tarsy_engine::ports::ToolReply;
use tarsy_mask::Mask;

/// Begins the structured content below a text that does not have it.
const STRUCTURED: &str = "[The structured content of this result:]";

/// The reply to a call with this result. Masks what is visible: an invisible character within a secret would hide it
/// from the mask and from people, and not from the model.
pub(super) fn reply(result: &CallToolResult, mask: &Mask) -> ToolReply {
    let clean = visible(&flatten(result));
    ToolReply::Answered {
        content: mask.apply(&clean).into_owned(),
        is_error: result.is_error.unwrap_or(false),
    }
}

/// Reads a result that is not as the protocol has it, block by block; `None` if it is no result at all.
pub(super) fn parse(value: &Value) -> Option<CallToolResult> {
    let structured = value
        .get("structuredContent")
        .filter(|content| !content.is_null());
    let content = match value {
        // A result without the object around its content.
        Value::String(_) => Some(value),
        Value::Array(blocks) if !blocks.is_empty() => Some(value),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.get("content").or_else(|| value.get("toolResult"))
        }
    };
    let blocks = match content {
        Some(Value::String(text)) => vec![ContentBlock::text(text.clone())],
        Some(Value::Array(blocks)) => blocks.iter().map(read_block).collect(),
        Some(Value::Null) | None if structured.is_some() => Vec::new(),
        Some(block @ Value::Object(_)) => vec![read_block(block)],
        Some(_) | None => return None,
    };
    let is_error = value
        .get("isError")
        .is_some_and(|flag| flag == &Value::Bool(true) || flag == "true");
    let mut result = if is_error {
        CallToolResult::error(blocks)
    } else {
        CallToolResult::success(blocks)
    };
    result.structured_content = structured.cloned();
    Some(result)
}

/// One block. What is odd about it costs its text only if it has none.
fn read_block(block: &Value) -> ContentBlock {
    if let Ok(block) = serde_json::from_value(block.clone()) {
        return block;
    }
    let kind = block
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("unknown");
    let text = ["", "/text", "/resource/text"]
        .iter()
        .find_map(|place| block.pointer(place)?.as_str());
    let json = ["text", "json"]
        .iter()
        .find_map(|name| block.get(*name).filter(|value| !value.is_null()));
    let uri = block
        .pointer("/uri")
        .or_else(|| block.pointer("/resource/uri"));
    ContentBlock::text(match (text, json, uri) {
        (Some(text), _, _) => text.to_owned(),
        (None, Some(json), _) => json.to_string(),
        (None, None, Some(Value::String(uri))) => format!("<{uri}>"),
        (None, None, _) => format!("[content of the type {kind:?} that cannot be read]"),
    })
}

/// The blocks, one below the other, and the structured content, unless the text has it already: many servers repeat it
/// there, and others write a summary.
fn flatten(result: &CallToolResult) -> String {
    let has_text = result.content.iter().any(|content| match content {
        ContentBlock::Text(text) => !text.text.trim().is_empty(),
        ContentBlock::Image(_)
        | ContentBlock::Audio(_)
        | ContentBlock::Resource(_)
        | ContentBlock::ResourceLink(_) => false,
        _ => false,
    });
    let structured = match &result.structured_content {
        Some(data) if !has_text => Some(data.to_string()),
        Some(data) if !repeats(&result.content, data) => Some(format!("{STRUCTURED}\n{data}")),
        Some(_) | None => None,
    };
    let blocks = result
        .content
        .iter()
        .map(block)
        .chain(structured)
        .filter(|text| !text.is_empty());
    blocks.collect::<Vec<_>>().join("\n")
}

/// Whether the text is the structured content: as one JSON, or as one text for each member of its only list. Some
/// frameworks wrap a value that is no object into an object with one member.
fn repeats(content: &[ContentBlock], structured: &Value) -> bool {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|block| Some(block.as_text()?.text.trim()))
        .collect();
    let is_text_of = |text: &str, value: &Value| match value {
        Value::String(known) => known.trim() == text,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    } || serde_json::from_str::<Value>(text).is_ok_and(|json| json == *value);
    let wrapped = structured
        .as_object()
        .filter(|members| members.len() == 1)
        .and_then(|members| members.values().next());
    let mut values = std::iter::once(structured).chain(wrapped);
    values.any(|value| {
        if texts.iter().any(|text| is_text_of(text, value)) {
            return true;
        }
        let items = value.as_array().filter(|items| items.len() == texts.len());
        items.is_some_and(|items| {
            let mut pairs = items.iter().zip(&texts);
            pairs.all(|(item, text)| is_text_of(text, item))
        })
    })
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => placeholder("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => placeholder("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => {
                format!(
                    "{uri} {}",
                    placeholder("resource", mime_type.as_deref().unwrap_or("binary"), blob)
                )
            }
            _ => "[resource of a kind that this version does not know]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => resource_link(link),
        _ => "[content of a kind that this version does not know]".to_owned(),
    }
}

/// `pods <k8s://pods> text/plain: All pods of the namespace`, as far as the server says it.
fn resource_link(link: &Resource) -> String {
    let mime_type = link
        .mime_type
        .as_ref()
        .map(|mime_type| format!(" {mime_type}"))
        .unwrap_or_default();
    let description = link
        .description
        .as_ref()
        .map(|description| format!(": {description}"))
        .unwrap_or_default();
    format!("{} <{}>{mime_type}{description}", link.name, link.uri)
}

/// `[image image/png 12 KB]`, with the size of the decoded data.
fn placeholder(kind: &str, mime_type: &str, base64: &str) -> String {
    let bytes = base64.trim_end_matches('=').len() * 3 / 4;
    let size = if bytes < 1024 {
        format!("{bytes} B")
    } else {
        format!("{} KB", bytes.div_ceil(1024))
    };
    format!("[{kind} {mime_type} {size}]")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn flat(result: Value) -> ToolReply {
        reply(&serde_json::from_value(result).unwrap(), &Mask::default())
    }

    fn answered(content: &str) -> ToolReply {
        ToolReply::Answered {
            content: content.to_owned(),
            is_error: false,
        }
    }

    #[test]
    fn structured_content_is_added_unless_the_text_is_the_same() {
        let result = |texts: Value, structured: Value| {
            let texts = texts.as_array().unwrap().iter();
            let blocks: Vec<Value> = texts
                .map(|text| json!({"type": "text", "text": text}))
                .collect();
            flat(json!({"content": blocks, "structuredContent": structured}))
        };
        let added = |text: &str, data: &str| answered(&format!("{text}\n{STRUCTURED}\n{data}"));
        let pods = json!({"pods": ["a", "b"]});
        assert_eq!(
            result(json!(["Found 2 pods."]), pods.clone()),
            added("Found 2 pods.", r#"{"pods":["a","b"]}"#)
        );
        assert_eq!(
            result(json!(["7 of 9"]), json!({"result": 7})),
            added("7 of 9", r#"{"result":7}"#)
        );
        for (texts, structured) in [
            (json!(["{ \"pods\": [\"a\", \"b\"] }"]), pods.clone()),
            (json!(["Found 2 pods.", "{\"pods\":[\"a\",\"b\"]}"]), pods),
            (json!(["a text\n"]), json!({"result": "a text"})),
            (json!(["7"]), json!({"result": 7})),
            (
                json!(["{\"x\":1}", "{\"x\":2}"]),
                json!({"result": [{"x": 1}, {"x": 2}]}),
            ),
        ] {
            let whole = texts
                .as_array()
                .unwrap()
                .iter()
                .map(|text| text.as_str().unwrap())
                .collect::<Vec<_>>()
                .join("\n");
            assert_eq!(result(texts, structured), answered(&whole));
        }
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
            {"type": "resource_link", "uri": "file:///d", "name": "d", "mimeType": "a/b", "description": "All."},
        ]});
        let expected = "one\n[image image/png 12 KB]\n[audio audio/wav 3 B]\ninline\n\
                        file:///b [resource binary 2 B]\nc <file:///c>\nd <file:///d> a/b: All.";
        assert_eq!(flat(result), answered(expected));
    }

    #[test]
    fn what_is_odd_about_one_block_costs_no_other() {
        let odd = |content: Value| {
            let value = json!({"content": content});
            assert!(
                serde_json::from_value::<CallToolResult>(value.clone()).is_err(),
                "{value} is as it should be"
            );
            reply(&parse(&value).unwrap(), &Mask::default())
        };
        for (block, shown) in [
            (
                json!({"type": "widget", "x": 1}),
                "[content of the type \"widget\" that cannot be read]",
            ),
            (
                json!({"type": "text", "text": null}),
                "[content of the type \"text\" that cannot be read]",
            ),
            (
                json!({"type": "text", "text": "a", "annotations": {"audience": ["tool"]}}),
                "a",
            ),
            (
                json!({"type": "resource_link", "uri": "file:///a"}),
                "<file:///a>",
            ),
            (json!({"type": "resource", "resource": {"text": "a"}}), "a"),
            (json!("a"), "a"),
            (json!({"type": "text", "text": {"pods": 3}}), "{\"pods\":3}"),
            (json!({"type": "json", "json": {"pods": 3}}), "{\"pods\":3}"),
            (
                json!(null),
                "[content of the type \"unknown\" that cannot be read]",
            ),
        ] {
            let content = json!([block, {"type": "text", "text": "the answer"}]);
            assert_eq!(
                odd(content),
                answered(&format!("{shown}\nthe answer")),
                "{block}"
            );
        }
        assert_eq!(odd(json!("a text")), answered("a text"));
        for bare in [
            json!("a text"),
            json!([{"type": "text", "text": "a text"}]),
            json!({"toolResult": "a text"}),
        ] {
            assert_eq!(
                reply(&parse(&bare).unwrap(), &Mask::default()),
                answered("a text"),
                "{bare}"
            );
        }
        assert_eq!(odd(json!({"type": "text", "text": "a"})), answered("a"));
    }

    #[test]
    fn a_flag_that_is_a_text_is_read_and_a_message_without_content_is_no_result() {
        let value = json!({"content": [{"type": "text", "text": "no"}], "isError": "true"});
        let ToolReply::Answered { is_error, .. } = reply(&parse(&value).unwrap(), &Mask::default())
        else {
            panic!("no answer")
        };
        assert!(is_error);
        assert_eq!(
            reply(
                &parse(&json!({"structuredContent": [1]})).unwrap(),
                &Mask::default()
            ),
            answered("[1]")
        );
        for value in [
            json!({}),
            json!({"content": 7}),
            json!({"content": null}),
            json!([]),
            json!(7),
        ] {
            assert_eq!(parse(&value), None, "{value}");
        }
    }

    #[test]
    fn structured_content_replaces_missing_text() {
        let result = json!({"content": [], "structuredContent": {"pods": 3}, "isError": true});
        let content = r#"{"pods":3}"#.to_owned();
        assert_eq!(
            flat(result),
            ToolReply::Answered {
                content,
                is_error: true
            }
        );
        let pictured = json!({"content": [{"type": "image", "data": "QUJD", "mimeType": "image/png"}],
            "structuredContent": {"pods": 3}});
        assert_eq!(
            flat(pictured),
            answered("[image image/png 3 B]\n{\"pods\":3}")
        );
        assert_eq!(flat(json!({"content": []})), answered(""));
    }

    #[test]
    fn a_secret_between_invisible_characters_is_masked() {
        let text = "user=a\npass\u{1b}[1mword\u{1b}[0m=hunter2\u{202e}hunter2\nend";
        let ToolReply::Answered { content, .. } = reply(
            &CallToolResult::success(vec![ContentBlock::text(text)]),
            &Mask::default(),
        ) else {
            panic!("no answer")
        };
        assert_eq!(content, "user=a\npassword=[masked]\nend");
    }
}
