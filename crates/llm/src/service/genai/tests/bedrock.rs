//! The Converse API of Bedrock, whose stream has binary frames.

use serde_json::{Value, json};

use super::conversation::{KEY, ask, lines, request};
use crate::proto::GenerateRequest;
use crate::service::provider::tests::endpoint::{Endpoint, Reply};

const MODEL: &str = "eu.anthropic.claude-haiku-4-5-20251001-v1:0";

/// The checksum of the frames: the CRC-32 of IEEE 802.3.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 {
                (crc >> 1) ^ 0xEDB8_8320
            } else {
                crc >> 1
            }
        })
    })
}

/// A message of `application/vnd.amazon.eventstream`.
fn frame(kind: &str, name: &str, payload: &Value) -> Vec<u8> {
    let type_header = if kind == "event" {
        ":event-type"
    } else {
        ":exception-type"
    };
    let mut headers = Vec::new();
    for (key, value) in [
        (":message-type", kind),
        (type_header, name),
        (":content-type", "application/json"),
    ] {
        headers.push(u8::try_from(key.len()).unwrap());
        headers.extend(key.bytes());
        headers.push(7);
        headers.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        headers.extend(value.bytes());
    }
    let payload = payload.to_string().into_bytes();
    let length = |bytes: usize| u32::try_from(bytes).unwrap().to_be_bytes();
    let mut frame = [
        length(headers.len() + payload.len() + 16),
        length(headers.len()),
    ]
    .concat();
    frame.extend(crc32(&frame).to_be_bytes());
    frame.extend(headers);
    frame.extend(payload);
    frame.extend(crc32(&frame).to_be_bytes());
    frame
}

fn event(name: &str, payload: &Value) -> Vec<u8> {
    frame("event", name, payload)
}

fn text(text: &str) -> Vec<u8> {
    event(
        "contentBlockDelta",
        &json!({ "contentBlockIndex": 0, "delta": { "text": text } }),
    )
}

async fn asked(stream: Vec<Vec<u8>>) -> (Endpoint, Vec<String>) {
    let endpoint = Endpoint::start(vec![Reply::stream(stream.concat()).in_pieces_of(7)]).await;
    let mut request = GenerateRequest {
        max_output_tokens: 512,
        ..request("bedrock", MODEL)
    };
    request.llm_config.as_mut().unwrap().base_url = format!("http://{}", endpoint.address);
    let answer = lines(&ask(&endpoint, &request).await);
    (endpoint, answer)
}

#[tokio::test]
async fn bedrock_answers_with_text_calls_and_usage() {
    let call = json!({ "contentBlockIndex": 1, "start": { "toolUse": { "toolUseId": "tooluse_1", "name": "server__get" } } });
    let input = json!({ "contentBlockIndex": 1, "delta": { "toolUse": { "input": "{\"name\": \"web-1\"}" } } });
    let usage = json!({ "usage": { "inputTokens": 30, "outputTokens": 12, "totalTokens": 42 } });
    let (endpoint, answer) = asked(vec![
        event("messageStart", &json!({ "role": "assistant" })),
        text("I "),
        text("look."),
        event("contentBlockStop", &json!({ "contentBlockIndex": 0 })),
        event("contentBlockStart", &call),
        event("contentBlockDelta", &input),
        event("contentBlockStop", &json!({ "contentBlockIndex": 1 })),
        event("messageStop", &json!({ "stopReason": "tool_use" })),
        event("metadata", &usage),
    ])
    .await;
    let expected = [
        "text I ",
        "text look.",
        r#"call tooluse_1 server.get {"name":"web-1"}"#,
        "tool_calls|tool_use|||",
        "usage 30 12 42 0 0 0",
        "end",
    ];
    assert_eq!(answer, expected);
    let sent = endpoint.requests().remove(0);
    assert_eq!(
        sent.target,
        format!("POST /model/{}/converse-stream", MODEL.replace(':', "%3A"))
    );
    assert!(
        sent.headers
            .to_lowercase()
            .contains(&format!("authorization: bearer {KEY}\r\n")),
        "{}",
        sent.headers
    );
    let body: Value = serde_json::from_str(&sent.body).unwrap();
    assert_eq!(
        (&body["inferenceConfig"]["maxTokens"], &body["system"]),
        (&json!(512), &json!([{ "text": "You are an SRE." }]))
    );
}

#[tokio::test]
async fn an_exception_in_the_stream_of_bedrock_ends_the_answer() {
    let slow_down = frame(
        "exception",
        "throttlingException",
        &json!({ "message": "Too many requests" }),
    );
    let (endpoint, answer) = asked(vec![text("I "), slow_down]).await;
    assert_eq!(answer.len(), 2, "{answer:?}");
    assert!(
        answer[1].starts_with("error partial_stream_error ")
            && answer[1].ends_with("Too many requests"),
        "{answer:?}"
    );
    assert_eq!(endpoint.requests().len(), 1);
}
