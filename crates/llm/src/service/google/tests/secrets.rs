//! No key and no prompt leaves the service in a message or a log line, at any level.

use super::conversation::{KEY, PROMPT, ask, continued, error, request};
use crate::service::provider::tests::endpoint::{Ending, Endpoint, Reply};
use crate::service::provider::tests::log::Log;

/// Every failure, with the key in the words of the provider and the prompt where it could be repeated by accident.
fn failures() -> Vec<Vec<Reply>> {
    let api = |status, text: &str| {
        let details = r#"[{"@type":"google.rpc.RetryInfo","retryDelay":"0.001s"}]"#;
        let body =
            format!(r#"{{"error":{{"message":"{text} {KEY}","status":"S","details":{details}}}}}"#);
        Reply::error(status, &body)
    };
    let echo = format!("<html>{KEY} {PROMPT}</html>");
    let partial = format!("data: {{\"candidates\":[{{\"content\":\"{PROMPT} {KEY}\"}}]}}\n\n");
    let blocked =
        format!(r#"{{"promptFeedback":{{"blockReason":"{KEY}","blockReasonMessage":"{KEY}"}}}}"#);
    let hello = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\"}]}}]}\n\n";
    vec![
        vec![api(400, "Invalid thought signature")],
        vec![api(401, "bad key"), api(401, "bad key")],
        vec![api(429, "slow")],
        vec![api(400, PROMPT)],
        vec![api(503, "busy")],
        vec![Reply::events(&[&blocked])],
        vec![Reply::error(502, &echo)],
        vec![Reply::error(200, &echo)],
        vec![Reply::stream(partial)],
        vec![Reply::stream(format!("{hello}data: {PROMPT}\n\n"))],
        vec![Reply::stream(hello).ending(Ending::Cut)],
        vec![Reply::stream(hello).ending(Ending::Hang)],
        vec![Reply::stream("").ending(Ending::NoHeaders)],
        vec![Reply::error(302, "").with_header("location: http://127.0.0.1:1/?key=x")],
    ]
}

#[tokio::test]
async fn a_seeded_key_and_prompt_are_in_no_message_and_no_log() {
    let log = Log::default();
    let _guard = log.capture();
    let mut messages = String::new();
    for replies in failures() {
        let calls = Reply::fixture("gemini/calls.sse");
        let endpoint = Endpoint::start([vec![calls], replies].concat()).await;
        let first = ask(&endpoint, &request()).await;
        let found = error(&ask(&endpoint, &continued(request(), &first)).await);
        messages.push_str(&format!("{found:?}\n"));
    }
    let logged = log.text();
    assert!(
        logged.contains("model call failed") && logged.contains("model call repeated"),
        "{logged}"
    );
    for text in [messages, logged] {
        for secret in [KEY, PROMPT, "x-goog-api-key", "seeded"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}
