//! Failures of the providers and of the way to them.

use std::time::Duration;

use super::conversation::{anthropic, ask, ask_until, error, lines, openai, request};
use crate::proto::ErrorInfo;
use crate::service::call::Deadline;
use crate::service::provider::tests::conversation::without_id;
use crate::service::provider::tests::endpoint::{Ending, Endpoint, Reply};

fn limited() -> Reply {
    let body = r#"{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}"#;
    Reply::error(429, body).with_header("retry-after-ms: 10")
}

fn healthy() -> Reply {
    Reply::fixture("anthropic/answer.sse")
}

#[tokio::test]
async fn a_rate_limit_and_a_lost_connection_are_repeated_before_the_first_part() {
    let lost = Reply::events(&[]).ending(Ending::NoHeaders);
    let endpoint = Endpoint::start(vec![limited(), lost, healthy()]).await;
    let answer = lines(&ask(&endpoint, &anthropic()).await);
    assert_eq!(
        answer[..3],
        [
            "retry 1 rate_limited",
            "retry 2 unavailable",
            "text Healthy."
        ]
    );
    let bodies = endpoint.bodies();
    assert_eq!(bodies, vec![bodies[0].clone(); 3]);
}

#[tokio::test]
async fn an_exhausted_request_says_how_often_and_why() {
    let endpoint = Endpoint::start(vec![limited()]).await;
    let found = error(&ask(&endpoint, &openai()).await);
    let expected = ErrorInfo {
        message: "Generation failed after 3 attempts: [id] Error code: 429 - rate_limit_exceeded. Rate limit reached"
            .into(),
        code: "rate_limited".into(),
        retryable: true,
        retry_after: Some(prost_types::Duration { seconds: 0, nanos: 10_000_000 }),
        provider_status: "429 rate_limit_exceeded".into(),
        attempts: 3,
    };
    assert_eq!(
        ErrorInfo {
            message: without_id(&found.message),
            ..found
        },
        expected
    );
    assert_eq!(endpoint.requests().len(), 3);
}

#[tokio::test]
async fn a_failure_that_would_come_again_is_not_repeated() {
    let long = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}"#;
    let refusal = "data: {\"type\":\"response.refusal.done\",\"refusal\":\"no\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"model\":\"m\"}}\n\n";
    for (reply, expected) in [
        (
            Reply::error(400, long),
            "error context_window_exceeded Generation failed: Error code: 400 - invalid_request_error. prompt is too long: 9 tokens \
             > 8 maximum",
        ),
        (
            Reply::error(401, "<html>"),
            "error credentials Generation failed: Error code: 401",
        ),
        (
            Reply::error(307, "").with_header("location: http://127.0.0.1:1/"),
            "error provider_error Generation failed: Error code: 307",
        ),
        (
            Reply::stream(refusal),
            "error blocked Generation failed: The model refused to answer: no",
        ),
    ] {
        let endpoint = Endpoint::start(vec![reply, healthy()]).await;
        assert_eq!(lines(&ask(&endpoint, &openai()).await), [expected]);
        assert_eq!(endpoint.requests().len(), 1, "{expected}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_after_its_first_part_is_a_partial_answer() {
    let overloaded = || Reply::fixture("anthropic/overloaded.sse");
    let calls = std::fs::read_to_string("../../tests/fixtures/anthropic/overloaded.sse").unwrap();
    let (hello, _) = calls.split_once("event: error").unwrap();
    for (reply, reason) in [
        (overloaded(), "overloaded_error. Overloaded"),
        (
            overloaded().ending(Ending::Hang),
            "overloaded_error. Overloaded",
        ),
        (
            Reply::stream(hello),
            "the stream of the provider ended without a finish reason",
        ),
        (
            Reply::stream(hello).ending(Ending::Hang),
            "Generation timed out after 400ms: the provider sent no further part of its answer (stall_timeout)",
        ),
        (
            Reply::stream(format!(
                "{hello}event: content_block_delta\ndata: {{\"delta\"\n\n"
            )),
            "Failed to parse response as JSON: Eof at line 1 column 8",
        ),
    ] {
        let endpoint = Endpoint::start(vec![reply, healthy()]).await;
        let answer = lines(&ask(&endpoint, &anthropic()).await);
        let expected = format!(
            "error partial_stream_error Stream failed after partial output (1 chunks): [id] {reason}"
        );
        assert_eq!(answer, ["text Hello".to_owned(), expected]);
        assert_eq!(endpoint.requests().len(), 1, "{reason}");
    }
    let endpoint = Endpoint::start(vec![Reply::stream(hello).ending(Ending::Cut)]).await;
    let found = error(&ask(&endpoint, &anthropic()).await);
    assert!(
        found.code == "partial_stream_error" && found.message.contains("connection failed"),
        "{found:?}"
    );
}

#[tokio::test]
async fn an_answer_without_content_and_a_failed_one_are_repeated() {
    let empty = r#"{"choices":[{"delta":{"content":""},"finish_reason":"stop"}]}"#;
    let replies = vec![
        Reply::events(&[empty, "[DONE]"]),
        Reply::events(&["[DONE]"]),
        Reply::fixture("openai/chat.sse"),
    ];
    let answer = lines(&ask(&Endpoint::start(replies).await, &request("xai", "grok-4")).await);
    assert_eq!(
        answer[..3],
        [
            "retry 1 empty_response",
            "retry 2 empty_response",
            "thinking The pod restarts."
        ]
    );
    let replies = vec![
        Reply::fixture("openai/failed.sse"),
        Reply::fixture("openai/responses.sse"),
    ];
    let answer = lines(&ask(&Endpoint::start(replies).await, &openai()).await);
    assert_eq!(answer[..2], ["retry 1 unavailable", "thinking The pod "]);
}

#[tokio::test]
async fn no_attempt_begins_after_the_deadline_and_a_silent_provider_is_asked_again() {
    let silent = || Reply::events(&[]).ending(Ending::Silent);
    let endpoint = Endpoint::start(vec![silent()]).await;
    let deadline = Deadline::after(Duration::from_millis(300));
    let answer = lines(&ask_until(&endpoint, &anthropic(), deadline).await);
    let late = "error deadline_exceeded Generation failed: Generation timed out: the deadline of the caller passed";
    assert_eq!(answer, [late]);
    let endpoint = Endpoint::start(vec![silent(), healthy()]).await;
    let answer = lines(&ask(&endpoint, &anthropic()).await);
    assert_eq!(answer[..2], ["retry 1 deadline_exceeded", "text Healthy."]);
}
