//! Failures of the provider and of the way to it.

use std::time::{Duration, Instant};

use super::conversation::{ask, ask_until, error, lines, request, without_id};
use crate::proto::generate_response::Content;
use crate::proto::{ErrorInfo, GenerateRequest};
use crate::service::call::Deadline;
use crate::service::provider::tests::endpoint::{Ending, Endpoint, Reply};

const OVERLOADED: &str = r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE","details":
    [{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"0.01s"}]}}"#;
const HELLO: &str = r#"{"candidates":[{"content":{"parts":[{"text":"Hello"}]}}]}"#;

fn overloaded() -> Reply {
    Reply::error(503, OVERLOADED)
}

fn healthy() -> Reply {
    Reply::fixture("gemini/answer.sse")
}

#[tokio::test]
async fn a_rate_limit_and_a_lost_connection_are_repeated_before_the_first_part() {
    let limited = Reply::error(
        429,
        &OVERLOADED.replace("UNAVAILABLE", "RESOURCE_EXHAUSTED"),
    );
    let endpoint = Endpoint::start(vec![
        limited,
        Reply::events(&[]).ending(Ending::NoHeaders),
        healthy(),
    ])
    .await;
    let answer = lines(&ask(&endpoint, &request()).await);
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
    let endpoint = Endpoint::start(vec![overloaded()]).await;
    let message = "Generation failed after 3 attempts: [id] Google API server error: 503 UNAVAILABLE. The model is overloaded.";
    let found = error(&ask(&endpoint, &request()).await);
    let expected = ErrorInfo {
        message: message.into(),
        code: "unavailable".into(),
        retryable: true,
        retry_after: Some(prost_types::Duration {
            seconds: 0,
            nanos: 10_000_000,
        }),
        provider_status: "503 UNAVAILABLE".into(),
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
    let old = GenerateRequest {
        accept: Vec::new(),
        ..request()
    };
    assert_eq!(
        lines(&ask(&endpoint, &old).await),
        [format!("error max_retries {message}")]
    );
}

#[tokio::test]
async fn a_failure_that_would_come_again_is_not_repeated() {
    let day = r#"{"error":{"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"PerDay"}]}]}}"#;
    let context = r#"{"error":{"message":"The input token count (9) exceeds the maximum number of tokens allowed (8)","status":"INVALID_ARGUMENT"}}"#;
    let key = r#"[{"error":{"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]"#;
    for (reply, expected) in [
        (
            Reply::error(429, day),
            "error rate_limited Generation failed: 429 RESOURCE_EXHAUSTED. quota",
        ),
        (
            Reply::error(400, key),
            "error credentials Generation failed: 400 INVALID_ARGUMENT. API key not valid.",
        ),
        (
            Reply::error(400, context),
            "error context_window_exceeded Generation failed: 400 INVALID_ARGUMENT. The input token count (9) exceeds \
             the maximum number of tokens allowed (8)",
        ),
        (
            Reply::error(404, "<html>"),
            "error model_not_found Generation failed: 404.",
        ),
        (
            Reply::error(307, "").with_header("location: http://127.0.0.1:1/"),
            "error provider_error Generation failed: 307.",
        ),
        (
            Reply::events(&[r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}"#]),
            "error blocked Generation failed: The prompt was blocked: PROHIBITED_CONTENT",
        ),
        (
            Reply::events(&[r#"{"candidates":[{"finishReason":"SAFETY"}]}"#]),
            "error blocked Generation failed: The answer was blocked: SAFETY",
        ),
        (
            Reply::events(&[
                r#"{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"MAX_TOKENS"}]}"#,
            ]),
            "error max_tokens Generation failed: The output limit was reached before the first word of the answer",
        ),
    ] {
        let endpoint = Endpoint::start(vec![reply, healthy()]).await;
        assert_eq!(lines(&ask(&endpoint, &request()).await), [expected]);
        assert_eq!(endpoint.requests().len(), 1, "{expected}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_after_its_first_part_is_a_partial_answer() {
    let server_error = "Google API server error: 500 INTERNAL. Internal error.";
    let raw = "{\n  \"error\": {\n    \"code\": 500,\n    \"message\": \"Internal error.\",\n    \"status\": \"INTERNAL\"\n  }\n}\n";
    let framed = format!("data: {}\n\n", raw.replace('\n', " "));
    let hello = format!("data: {HELLO}\n\n");
    for (reply, reason) in [
        (Reply::stream(hello.clone() + raw), server_error),
        (
            Reply::stream(hello.clone() + raw).ending(Ending::Hang),
            server_error,
        ),
        (Reply::stream(hello.clone() + &framed), server_error),
        (
            Reply::stream(hello.clone()),
            "the stream of the provider ended without a finish reason",
        ),
        (
            Reply::stream(hello.clone()).ending(Ending::Hang),
            "Generation timed out after 400ms: the provider sent no further part of its answer (stall_timeout)",
        ),
        (
            Reply::stream(hello.clone() + "data: {\"candid"),
            "Failed to parse response as JSON: Eof at line 1 column 8",
        ),
    ] {
        let endpoint = Endpoint::start(vec![reply, healthy()]).await;
        let answer = lines(&ask(&endpoint, &request()).await);
        let expected = format!(
            "error partial_stream_error Stream failed after partial output (1 chunks): [id] {reason}"
        );
        assert_eq!(answer, ["text Hello".to_owned(), expected]);
        assert_eq!(endpoint.requests().len(), 1, "{reason}");
    }
    let endpoint = Endpoint::start(vec![Reply::stream(hello).ending(Ending::Cut)]).await;
    let found = error(&ask(&endpoint, &request()).await);
    assert!(
        found.code == "partial_stream_error" && found.message.contains("connection failed"),
        "{found:?}"
    );
}

#[tokio::test]
async fn an_answer_without_content_is_repeated() {
    let empty = r#"{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}]}"#;
    let malformed = r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}"#;
    let endpoint = Endpoint::start(vec![
        Reply::events(&[empty]),
        Reply::events(&[malformed]),
        healthy(),
    ])
    .await;
    let answer = lines(&ask(&endpoint, &request()).await);
    assert_eq!(
        answer[..3],
        [
            "retry 1 empty_response",
            "retry 2 malformed_tool_call",
            "text Healthy."
        ]
    );
}

#[tokio::test]
async fn no_attempt_begins_after_the_deadline_of_the_client() {
    let began = Instant::now();
    let endpoint = Endpoint::start(vec![Reply::events(&[]).ending(Ending::Silent)]).await;
    let deadline = Deadline::after(Duration::from_millis(300));
    let answer = lines(&ask_until(&endpoint, &request(), deadline).await);
    let late = "error deadline_exceeded Generation failed: Generation timed out: the deadline of the caller passed";
    assert_eq!(answer, [late]);
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    let slow = Reply::error(
        429,
        r#"{"error":{"message":"Please retry in 48.8s.","status":"RESOURCE_EXHAUSTED"}}"#,
    );
    let endpoint = Endpoint::start(vec![slow, healthy()]).await;
    let found = error(
        &ask_until(
            &endpoint,
            &request(),
            Deadline::after(Duration::from_secs(20)),
        )
        .await,
    );
    let wait = prost_types::Duration {
        seconds: 48,
        nanos: 800_000_000,
    };
    assert_eq!(
        (found.code.as_str(), found.retryable, found.retry_after),
        ("rate_limited", true, Some(wait))
    );
    assert_eq!(endpoint.requests().len(), 1);
}

#[tokio::test]
async fn a_silent_provider_is_asked_again() {
    let endpoint =
        Endpoint::start(vec![Reply::events(&[]).ending(Ending::Silent), healthy()]).await;
    let answer = lines(&ask(&endpoint, &request()).await);
    assert_eq!(answer[..2], ["retry 1 deadline_exceeded", "text Healthy."]);
}

#[tokio::test]
async fn a_refused_function_is_left_out_and_the_answer_names_it() {
    let refused = r#"{"error":{"code":400,"message":"* GenerateContentRequest.tools[0].function_declarations[1].parameters.properties: should be non-empty for OBJECT type\n","status":"INVALID_ARGUMENT"}}"#;
    let answered =
        r#"{"candidates":[{"content":{"parts":[{"text":"ok"}]},"finishReason":"STOP"}]}"#;
    let endpoint =
        Endpoint::start(vec![Reply::error(400, refused), Reply::events(&[answered])]).await;
    let answer = ask(&endpoint, &request()).await;
    assert_eq!(lines(&answer)[..1], ["text ok"]);
    let has = |name: &str| {
        endpoint
            .bodies()
            .iter()
            .map(|body| body.contains(name))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (has("server__get"), has("server__list")),
        (vec![true, true], vec![true, false])
    );
    let named = answer.iter().find_map(|response| match &response.content {
        Some(Content::Finish(finish)) => Some(finish.refused_tools.clone()),
        _ => None,
    });
    let [tool] = &*named.unwrap() else {
        panic!("{answer:?}")
    };
    assert_eq!(tool.name, "server.list");
    assert!(
        tool.reason
            .starts_with("400 INVALID_ARGUMENT. * GenerateContentRequest.tools[0]"),
        "{}",
        tool.reason
    );

    let both = refused.replace(
        "[1].parameters",
        "[0].x: bad, tools[0].function_declarations[1]",
    );
    let endpoint =
        Endpoint::start(vec![Reply::error(400, &both), Reply::events(&[answered])]).await;
    assert_eq!(
        error(&ask(&endpoint, &request()).await).code,
        "invalid_request"
    );
    assert_eq!(
        endpoint.requests().len(),
        1,
        "an investigation without tools proves nothing"
    );
}

#[tokio::test]
async fn a_call_in_pieces_that_was_not_asked_for_is_no_call() {
    let call = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"s__get","willContinue":true}}]}}]}"#;
    let stop = r#"{"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}]}"#;
    let cut = || Reply::events(&[call, stop]);
    let answer = lines(
        &ask(
            &Endpoint::start(vec![cut(), cut(), cut()]).await,
            &request(),
        )
        .await,
    );
    assert!(
        answer.iter().all(|line| !line.starts_with("call")),
        "{answer:?}"
    );
    assert!(
        answer
            .last()
            .is_some_and(|line| line.starts_with("error malformed_tool_call")),
        "{answer:?}"
    );
}
