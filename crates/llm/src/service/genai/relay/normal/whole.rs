//! Whole answers, and whole blocks of one, as the events of their interface.

use serde_json::{Value, json};

use crate::service::provider::fields::{items, kind, text};

/// The first chunk of chat completions. A whole message in a later one would repeat the pieces before it.
pub(super) fn chat(mut event: Value) -> Vec<Value> {
    let Some(choice) = event
        .pointer_mut("/choices/0")
        .and_then(Value::as_object_mut)
    else {
        return vec![event];
    };
    let has_delta = choice.get("delta").is_some_and(Value::is_object);
    let message = choice.remove("message");
    let Some(mut message @ Value::Object(_)) = message else {
        return vec![event];
    };
    if has_delta {
        return vec![event];
    }
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    let has_calls = calls.as_ref().is_some_and(|calls| !calls.is_empty());
    for (index, call) in (0_u64..).zip(calls.into_iter().flatten()) {
        if let Some(call) = call.as_object_mut() {
            call.insert("index".to_owned(), json!(index));
        }
    }
    choice.insert("delta".to_owned(), message);
    // A whole answer has stopped, also where its server does not say why.
    let reason = choice.get("finish_reason").and_then(Value::as_str);
    if reason.is_none_or(str::is_empty) {
        let reason = if has_calls { "tool_calls" } else { "stop" };
        choice.insert("finish_reason".to_owned(), json!(reason));
    }
    vec![event, json!("[DONE]")]
}

/// An event of the Messages API. The crate reads the text of a block from its pieces.
pub(super) fn message(event: Value) -> Vec<Value> {
    match kind(&event) {
        "message" => whole_message(event),
        "content_block_start" => block_start(event),
        _ => vec![event],
    }
}

fn whole_message(mut message: Value) -> Vec<Value> {
    let blocks = message
        .get_mut("content")
        .and_then(Value::as_array_mut)
        .map(std::mem::take)
        .unwrap_or_default();
    let stop_reason = message.get("stop_reason").cloned().filter(Value::is_string);
    let stop_reason = stop_reason.unwrap_or_else(|| json!("end_turn"));
    let usage = message.get("usage").cloned().unwrap_or_else(|| json!({}));
    let mut events = vec![json!({"type":"message_start","message":message})];
    for (index, block) in (0_u64..).zip(blocks) {
        events.extend(block_start(
            json!({"type":"content_block_start","index":index,"content_block":block}),
        ));
        events.push(json!({"type":"content_block_stop","index":index}));
    }
    events.push(json!({"type":"message_delta","delta":{"stop_reason":stop_reason},"usage":usage}));
    events.push(json!({"type":"message_stop"}));
    events
}

fn block_start(mut event: Value) -> Vec<Value> {
    let index = event.get("index").cloned().unwrap_or_default();
    let Some(block) = event.get_mut("content_block") else {
        return vec![event];
    };
    let is_text = kind(block) == "text";
    // The crate reads the thoughts of a start by itself.
    let text = match block.get_mut("text") {
        Some(Value::String(text)) if is_text && !text.is_empty() => std::mem::take(text),
        Some(_) | None => return vec![event],
    };
    let delta = json!({"type":"content_block_delta","index":index,"delta":{"type":"text_delta","text":text}});
    vec![event, delta]
}

/// An event of the Responses API.
pub(super) fn response(event: Value) -> Vec<Value> {
    if text(&event, "object") != "response" {
        return vec![event];
    }
    let mut events = Vec::new();
    for (index, item) in (0_u64..).zip(items(&event, "output")) {
        let parts = items(item, "summary").chain(items(item, "content"));
        events.extend(parts.filter_map(|part| piece(part, index)));
    }
    let kind = match text(&event, "status") {
        "incomplete" => "response.incomplete",
        _ => "response.completed",
    };
    events.push(json!({"type":kind,"response":event}));
    events
}

fn piece(part: &Value, index: u64) -> Option<Value> {
    let kind = match kind(part) {
        "output_text" => "response.output_text.delta",
        "summary_text" => "response.reasoning_summary_text.delta",
        "reasoning_text" => "response.reasoning_text.delta",
        "refusal" => {
            let refusal = part.get("refusal")?;
            return Some(json!({"type":"response.refusal.done","refusal":refusal}));
        }
        _ => return None,
    };
    let text = part.get("text")?;
    Some(json!({"type":kind,"output_index":index,"content_index":0,"summary_index":0,"delta":text}))
}
