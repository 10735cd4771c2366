//! Answers in the form of each API.

use serde_json::{Value, json};

/// The tool that the provider calls.
const TOOL: &str = "leak__read";

/// An interface of providers, which the path of a request shows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Api {
    Gemini,
    Responses,
    Messages,
    ChatCompletions,
}

impl Api {
    /// The interface of a request line.
    pub(super) fn of(target: &str) -> Self {
        if target.contains("/chat/completions") {
            Self::ChatCompletions
        } else if target.contains("/responses") {
            Self::Responses
        } else if target.contains("/messages") {
            Self::Messages
        } else {
            Self::Gemini
        }
    }

    /// Whether a request contains the result of a tool.
    pub(super) fn has_result(body: &str) -> bool {
        [
            "functionResponse",
            "function_response",
            "function_call_output",
            "tool_result",
            "tool_call_id",
        ]
        .iter()
        .any(|word| body.contains(word))
    }

    /// Words of an answer that continues.
    pub(super) fn words(self, text: &str) -> String {
        match self {
            Self::Gemini => gemini(
                &json!({"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}),
            ),
            Self::Responses => events(&[json!({
                "type": "response.output_text.delta", "item_id": "i", "output_index": 0, "content_index": 0, "delta": text,
            })]),
            Self::Messages => events(&[
                json!({"type": "message_start", "message": {"id": "m", "model": "claude", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
            ]),
            Self::ChatCompletions => events(&[choice(
                &json!({"role": "assistant", "content": text}),
                &Value::Null,
            )]),
        }
    }

    /// A call of the tool, with the end of the answer.
    pub(super) fn tool_call(self) -> String {
        match self {
            Self::Gemini => gemini(&json!({
                "content": {"parts": [{"functionCall": {"name": TOOL, "args": {}}, "thoughtSignature": "c2ln"}], "role": "model"},
                "finishReason": "STOP", "index": 0,
            })),
            Self::Responses => {
                let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": TOOL, "arguments": "{}"});
                events(&[
                    json!({"type": "response.output_item.added", "output_index": 0, "item": call}),
                    json!({"type": "response.output_item.done", "output_index": 0, "item": call}),
                    json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [call],
                        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}}),
                ])
            }
            Self::Messages => events(&[
                json!({"type": "message_start", "message": {"id": "m", "model": "claude", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
                json!({"type": "content_block_start", "index": 0,
                    "content_block": {"type": "tool_use", "id": "toolu_1", "name": TOOL, "input": {}}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}}),
                json!({"type": "message_stop"}),
            ]),
            Self::ChatCompletions => {
                let call = json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": TOOL, "arguments": "{}"}});
                let chunks = [
                    choice(
                        &json!({"role": "assistant", "tool_calls": [call]}),
                        &Value::Null,
                    ),
                    choice(&json!({}), &json!("tool_calls")),
                ];
                events(&chunks) + "data: [DONE]\n\n"
            }
        }
    }

    /// An end whose reason, model and id are the key.
    pub(super) fn odd_end(self, key: &str, said: &str) -> String {
        match self {
            Self::Gemini => events(&[json!({
                "candidates": [{"finishReason": key, "finishMessage": said}], "modelVersion": key, "responseId": key,
            })]),
            Self::Responses => events(&[json!({"type": "response.incomplete", "response": {
                "id": key, "model": key, "status": "incomplete", "incomplete_details": {"reason": key}, "output": [],
                "error": {"code": key, "message": said},
            }})]),
            Self::Messages => events(&[
                json!({"type": "message_start", "message": {"id": key, "model": key, "usage": {"input_tokens": 1, "output_tokens": 1}}}),
                json!({"type": "message_delta", "delta": {"stop_reason": key, "stop_sequence": key}, "usage": {"output_tokens": 2}}),
                json!({"type": "message_stop"}),
            ]),
            Self::ChatCompletions => {
                let mut chunk = choice(&json!({}), &json!(key));
                (chunk["model"], chunk["id"]) = (json!(key), json!(key));
                events(&[chunk]) + "data: [DONE]\n\n"
            }
        }
    }
}

fn gemini(candidate: &Value) -> String {
    events(&[json!({"candidates": [candidate]})])
}

fn choice(delta: &Value, reason: &Value) -> Value {
    json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
}

/// Each value as an event; its type is also the name of the event.
fn events(values: &[Value]) -> String {
    let event = |value: &Value| match value["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {value}\n\n"),
        None => format!("data: {value}\n\n"),
    };
    values.iter().map(event).collect()
}
