//! Streams that are not as their interface documents, and requests that a provider corrects.

use super::conversation::{anthropic, ask, lines, openai, request};
use crate::proto::GenerateRequest;
use crate::service::provider::tests::endpoint::{Ending, Endpoint, Reply};

fn chat() -> GenerateRequest {
    request("xai", "grok-4")
}

async fn answer_to(reply: Reply, request: &GenerateRequest) -> Vec<String> {
    lines(&ask(&Endpoint::start(vec![reply]).await, request).await)
}

const TEXT: &str =
    r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"The disk is full."}}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const DISCONNECTED: &str = concat!(
    r#"{"error":{"code":502,"message":"Provider disconnected"},"#,
    r#""choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#
);

#[tokio::test]
async fn an_answer_counts_in_every_form_of_its_stream() {
    let whole = concat!(
        r#"{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","#,
        r#""content":"The disk is full."},"finish_reason":"stop"}],"usage":{"prompt_tokens":5.0,"completion_tokens":2}}"#
    );
    let with_mark = format!("\u{FEFF}data: {TEXT}\n\ndata: {STOP}\n\ndata: [DONE]\n\n");
    let error = |error: &str, event: &str| event.replacen('{', &format!("{{\"error\":{error},"), 1);
    let json = |body: &str| Reply::stream(body).with_header("content-type: application/json");
    for (name, reply) in [
        ("without a reason", Reply::events(&[TEXT, "[DONE]"])),
        ("without a mark", Reply::events(&[TEXT, STOP])),
        ("behind a byte order mark", Reply::stream(with_mark)),
        ("in a JSON body", json(whole)),
        ("in a JSON body in pieces", json(whole).in_pieces_of(7)),
        (
            "in a JSON body behind a mark",
            json(&format!("\u{FEFF}{whole}")),
        ),
        ("in a JSON body without a type", Reply::stream(whole)),
        (
            "in an event that is whole",
            Reply::events(&[whole, "[DONE]"]),
        ),
        (
            "with an error that is null",
            Reply::events(&[&error("null", TEXT), &error("{}", STOP), "[DONE]"]),
        ),
    ] {
        let answer = answer_to(reply, &chat()).await;
        assert_eq!(
            answer.first().map(String::as_str),
            Some("text The disk is full."),
            "{name}: {answer:?}"
        );
        assert!(
            answer
                .get(1)
                .is_some_and(|finish| finish.starts_with("stop|")),
            "{name}: {answer:?}"
        );
        assert_eq!(
            answer.last().map(String::as_str),
            Some("end"),
            "{name}: {answer:?}"
        );
        if name.contains("JSON") {
            assert!(
                answer.contains(&"usage 5 2 7 0 0 0".to_owned()),
                "{name}: {answer:?}"
            );
        }
    }
}

#[tokio::test]
async fn events_without_an_empty_line_between_them_are_several() {
    let stream = Reply::stream(format!("data: {TEXT}\ndata: {STOP}\ndata: [DONE]\n"));
    let answer = answer_to(stream, &chat()).await;
    assert_eq!(answer[0], "text The disk is full.");
    assert!(answer[1].starts_with("stop|"), "{answer:?}");
}

#[tokio::test]
async fn a_text_before_a_call_that_never_came_is_no_answer() {
    for reason in ["tool_calls", "function_call"] {
        let stop = STOP.replace("stop\"", &format!("{reason}\""));
        let answer = answer_to(Reply::events(&[TEXT, &stop, "[DONE]"]), &chat()).await;
        assert!(answer[1].starts_with("malformed_tool_call|"), "{answer:?}");
    }
    let stop = r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}"#;
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hello"}}"#;
    let answer = answer_to(
        Reply::events(&[start, stop, r#"{"type":"message_stop"}"#]),
        &anthropic(),
    )
    .await;
    assert!(answer[1].starts_with("malformed_tool_call|"), "{answer:?}");
}

#[tokio::test]
async fn a_call_without_arguments_needs_a_reason_to_stop() {
    let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"server__get","arguments":""}}]}}]}"#;
    let answer = answer_to(Reply::events(&[call, STOP, "[DONE]"]), &chat()).await;
    assert_eq!(answer[0], "call 1 server.get {}");
    let cut = || Reply::events(&[call, "[DONE]"]);
    let answer = lines(&ask(&Endpoint::start(vec![cut(), cut(), cut()]).await, &chat()).await);
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

#[tokio::test]
async fn a_stream_that_only_ends_is_no_whole_answer() {
    let answer = answer_to(Reply::events(&[TEXT]), &chat()).await;
    assert!(
        answer[1].starts_with("error partial_stream_error"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn an_error_of_the_provider_wins_over_a_reason_to_stop() {
    let reason = r#"{"error":{"code":"server_error","message":"Provider disconnected"}}"#;
    for events in [
        vec![TEXT, DISCONNECTED, "[DONE]"],
        vec![TEXT, STOP, reason],
        vec![TEXT, reason, STOP, "[DONE]"],
    ] {
        for ending in [Ending::Whole, Ending::Cut, Ending::Hang] {
            let answer = answer_to(Reply::events(&events).ending(ending), &chat()).await;
            assert_eq!(answer.len(), 2, "{answer:?}");
            assert!(
                answer[1].starts_with("error partial_stream_error")
                    && answer[1].contains("Provider disconnected"),
                "{answer:?}"
            );
        }
    }
}

#[tokio::test]
async fn an_error_in_a_response_200_is_that_error() {
    let limited = r#"{"error":{"message":"Rate limit reached, try again in 0.01s","code":429}}"#;
    let long = r#"{"error":{"message":"prompt is too long: 9 tokens > 8 maximum","code":400}}"#;
    for (kind, code) in [
        ("application/json", "rate_limited"),
        ("text/event-stream", "rate_limited"),
    ] {
        let limited = Reply::stream(limited).with_header(&format!("content-type: {kind}"));
        let endpoint = Endpoint::start(vec![limited, Reply::events(&[TEXT, STOP])]).await;
        let answer = lines(&ask(&endpoint, &chat()).await);
        assert_eq!(
            answer[..2],
            [
                format!("retry 1 {code}"),
                "text The disk is full.".to_owned()
            ],
            "{kind}"
        );
    }
    for request in [chat(), anthropic(), openai()] {
        let answer = answer_to(
            Reply::stream(long).with_header("content-type: application/json"),
            &request,
        )
        .await;
        assert!(
            answer[0].starts_with("error context_window_exceeded"),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn a_refusal_is_blocked_with_its_words() {
    let piece = |text: &str| format!(r#"{{"choices":[{{"delta":{{"refusal":"{text}"}}}}]}}"#);
    let events = [piece("I cannot help "), piece("with that.")];
    let answer = answer_to(
        Reply::events(&[&events[0], &events[1], STOP, "[DONE]"]),
        &chat(),
    )
    .await;
    assert_eq!(
        answer,
        ["error blocked Generation failed: The model refused to answer: I cannot help with that."]
    );
}

#[tokio::test]
async fn half_a_letter_and_a_number_that_is_none_cost_no_answer() {
    let piece =
        |text: &str| format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}],"x":NaN}}"#);
    let events = [piece("a \\ud83d"), piece("\\ude00 b \\ud83d c")];
    let answer = answer_to(
        Reply::events(&[&events[0], &events[1], STOP, "[DONE]"]),
        &chat(),
    )
    .await;
    assert_eq!(answer[..2], ["text a ", "text 😀 b \u{FFFD} c"]);
    let call = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"server__get","arguments":"{\"name\":\"\\ud83d\",\"n\":NaN}"}}]}}]}"#;
    let answer = answer_to(Reply::events(&[call, STOP, "[DONE]"]), &chat()).await;
    assert_eq!(
        answer[0],
        "call 1 server.get {\"name\":\"\u{FFFD}\",\"n\":null}"
    );
}

#[tokio::test]
async fn whole_answers_of_the_other_interfaces_and_texts_at_the_start_of_blocks_count() {
    let message = concat!(
        r#"{"type":"message","id":"m1","model":"c","content":[{"type":"text","text":"Hello"},"#,
        r#"{"type":"tool_use","id":"1","name":"server__get","input":{"a":1}}],"stop_reason":"tool_use","usage":"#,
        r#"{"input_tokens":1,"output_tokens":2}}"#
    );
    let answer = answer_to(
        Reply::stream(message).with_header("content-type: application/json"),
        &anthropic(),
    )
    .await;
    assert_eq!(answer[..2], ["text Hello", "call 1 server.get {\"a\":1}"]);
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hello"}}"#;
    let stop = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#;
    let answer = answer_to(
        Reply::events(&[start, stop, r#"{"type":"message_stop"}"#]),
        &anthropic(),
    )
    .await;
    assert_eq!(answer[0], "text Hello");
    let response = concat!(
        r#"{"object":"response","id":"r","model":"m","status":"completed","output":[{"type":"message","content":"#,
        r#"[{"type":"output_text","text":"Hello"}]},{"type":"function_call","call_id":"1","name":"server__get","#,
        r#""arguments":"{}"}],"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}"#
    );
    let answer = answer_to(
        Reply::stream(response).with_header("content-type: application/json"),
        &openai(),
    )
    .await;
    assert_eq!(answer[..2], ["text Hello", "call 1 server.get {}"]);
}

#[tokio::test]
async fn a_refused_parameter_is_corrected_once() {
    let refusal = r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#;
    let asked = request("openai", "prod-5");
    let endpoint = Endpoint::start(vec![
        Reply::error(400, refusal),
        Reply::events(&[TEXT, STOP, "[DONE]"]),
    ])
    .await;
    let answer = lines(&ask(&endpoint, &asked).await);
    assert_eq!(answer[0], "text The disk is full.");
    let bodies = endpoint.bodies();
    assert!(
        bodies[0].contains("\"max_tokens\"") && !bodies[0].contains("max_completion_tokens"),
        "{}",
        bodies[0]
    );
    assert!(
        bodies[1].contains("\"max_completion_tokens\"") && !bodies[1].contains("\"max_tokens\""),
        "{}",
        bodies[1]
    );
    let endpoint = Endpoint::start(vec![Reply::error(400, refusal)]).await;
    let answer = lines(&ask(&endpoint, &asked).await);
    assert!(answer[0].starts_with("error invalid_request"), "{answer:?}");
    assert_eq!(endpoint.requests().len(), 2);
}

#[tokio::test]
async fn an_option_names_the_field_of_the_output_limit() {
    let mut asked = request("openai", "prod-5");
    let option = (
        "output_limit_field".to_owned(),
        "max_completion_tokens".to_owned(),
    );
    asked.llm_config.as_mut().unwrap().options.extend([option]);
    let endpoint = Endpoint::start(vec![Reply::events(&[TEXT, STOP, "[DONE]"])]).await;
    ask(&endpoint, &asked).await;
    let body = endpoint.bodies().remove(0);
    assert!(
        body.contains("\"max_completion_tokens\"") && !body.contains("\"max_tokens\""),
        "{body}"
    );
}
