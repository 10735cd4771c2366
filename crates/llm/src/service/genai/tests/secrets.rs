//! No key and no prompt leaves the service in a message or a log line, at any level.

use super::conversation::{KEY, PROMPT, anthropic, ask, continued, error, openai};
use crate::service::provider::tests::endpoint::{Ending, Endpoint, Reply};
use crate::service::provider::tests::log::Log;

/// Every failure, with the key in the words of the provider and the prompt where it could be repeated by accident.
fn failures() -> Vec<Vec<Reply>> {
    let api = |status, text: &str| {
        let body = format!(r#"{{"error":{{"message":"{text} {KEY}","type":"S {KEY}"}}}}"#);
        Reply::error(status, &body).with_header("retry-after-ms: 1")
    };
    let echo = format!("<html>{KEY} {PROMPT}</html>");
    let hello = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n";
    let event = |text: &str| Reply::stream(format!("{hello}event: error\ndata: {text}\n\n"));
    vec![
        vec![api(400, "Invalid `signature`")],
        vec![api(400, PROMPT)],
        vec![api(429, "slow")],
        vec![Reply::error(502, &echo).with_header("retry-after-ms: 1")],
        vec![Reply::error(200, &echo)],
        vec![event(&format!("{{\"error\":{{\"message\":\"{KEY}\"}}}}"))],
        vec![event(&format!("{PROMPT} {KEY}"))],
        vec![Reply::stream(format!(
            "{hello}event: unknown\ndata: {PROMPT} {KEY}\n\n"
        ))],
        vec![Reply::stream(format!(
            "{hello}event: content_block_delta\ndata: {{\"delta\":\"{PROMPT} {KEY}\"}}\n\n"
        ))],
        vec![Reply::stream(format!(
            "data: {{\"type\":\"response.failed\",\"response\":\"{PROMPT} {KEY}\"}}\n\n"
        ))],
        vec![Reply::stream(hello).ending(Ending::Cut)],
        vec![Reply::error(302, "").with_header("location: http://127.0.0.1:1/?key=x")],
    ]
}

#[tokio::test]
async fn a_seeded_key_and_prompt_are_in_no_message_and_no_log() {
    let log = Log::default();
    let _guard = log.capture();
    let mut messages = String::new();
    for (request, calls) in [
        (anthropic(), "anthropic/calls.sse"),
        (openai(), "openai/responses.sse"),
    ] {
        for replies in failures() {
            let endpoint = Endpoint::start([vec![Reply::fixture(calls)], replies].concat()).await;
            let first = ask(&endpoint, &request).await;
            let found = error(&ask(&endpoint, &continued(request.clone(), &first)).await);
            messages.push_str(&format!("{found:?}\n"));
        }
    }
    let logged = log.text();
    assert!(
        logged.contains("model call failed") && logged.contains("model call repeated"),
        "{logged}"
    );
    for text in [messages, logged] {
        for secret in [KEY, PROMPT, "x-api-key", "seeded"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}
