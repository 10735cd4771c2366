//! A provider that refuses a tool is asked again without it.

use serde_json::Value;

use super::conversation::{anthropic, ask, error, lines, openai};
use crate::proto::generate_response::Content;
use crate::proto::{GenerateRequest, GenerateResponse, RefusedTool};
use crate::service::provider::tests::conversation::{PROMPT, tool};
use crate::service::provider::tests::endpoint::{Endpoint, Reply};

fn refusal(message: &str) -> Reply {
    let body = serde_json::json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
    Reply::error(400, &body.to_string())
}

fn with_three_tools(request: GenerateRequest) -> GenerateRequest {
    GenerateRequest {
        tools: ["server.get", "server.odd", "server.list"]
            .map(tool)
            .to_vec(),
        ..request
    }
}

/// The names of the tools of each request.
fn offered(endpoint: &Endpoint) -> Vec<Vec<String>> {
    endpoint
        .bodies()
        .iter()
        .map(|body| {
            let body: Value = serde_json::from_str(body).unwrap();
            body["tools"]
                .as_array()
                .unwrap()
                .iter()
                .map(|tool| tool["name"].as_str().unwrap().to_owned())
                .collect()
        })
        .collect()
}

fn refused(answer: &[GenerateResponse]) -> Vec<RefusedTool> {
    let finish = answer.iter().find_map(|response| match &response.content {
        Some(Content::Finish(finish)) => Some(finish.refused_tools.clone()),
        _ => None,
    });
    finish.unwrap_or_default()
}

#[tokio::test]
async fn a_refused_tool_is_left_out_and_the_answer_names_it() {
    let limited =
        Reply::error(429, r#"{"error":{"message":"x"}}"#).with_header("retry-after-ms: 10");
    let replies = vec![
        refusal(
            "tools.1.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12.",
        ),
        limited,
        Reply::fixture("anthropic/answer.sse"),
    ];
    let endpoint = Endpoint::start(replies).await;
    let answer = ask(&endpoint, &with_three_tools(anthropic())).await;
    assert_eq!(
        lines(&answer)[..2],
        ["retry 1 rate_limited", "text Healthy."]
    );
    let all = ["server__get", "server__odd", "server__list"];
    let without = ["server__get", "server__list"];
    assert_eq!(
        offered(&endpoint),
        [all.to_vec(), without.to_vec(), without.to_vec()]
    );
    let reason = "Error code: 400 - invalid_request_error. tools.1.custom.input_schema: JSON schema is invalid. It must \
                  match JSON Schema draft 2020-12.";
    assert_eq!(
        refused(&answer),
        [RefusedTool {
            name: "server.odd".into(),
            reason: reason.into()
        }]
    );
}

#[tokio::test]
async fn a_provider_may_refuse_one_tool_after_the_other_but_not_the_last_one() {
    let named = |name: &str| {
        refusal(&format!(
            "Invalid schema for function '{name}': In context=(), bad."
        ))
    };
    let replies = vec![
        named("server__list"),
        named("server__get"),
        Reply::fixture("openai/responses.sse"),
    ];
    let endpoint = Endpoint::start(replies).await;
    let answer = ask(&endpoint, &with_three_tools(openai())).await;
    let names: Vec<String> = refused(&answer).into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["server.list", "server.get"]);
    assert_eq!(
        offered(&endpoint)[1..],
        [vec!["server__get", "server__odd"], vec!["server__odd"]]
    );

    let replies = vec![
        named("server__list"),
        named("server__get"),
        named("server__odd"),
    ];
    let endpoint = Endpoint::start(replies).await;
    let found = error(&ask(&endpoint, &with_three_tools(openai())).await);
    assert_eq!(
        (found.code.as_str(), endpoint.requests().len()),
        ("invalid_request", 3)
    );
    assert!(
        found
            .message
            .contains("Invalid schema for function 'server__odd'"),
        "{}",
        found.message
    );
}

#[tokio::test]
async fn a_refusal_without_the_name_of_a_tool_stands() {
    for message in [
        "tools: bad",
        "messages.1.content: bad",
        "Invalid schema for function 'server__other': bad",
    ] {
        let endpoint = Endpoint::start(vec![
            refusal(message),
            Reply::fixture("anthropic/answer.sse"),
        ])
        .await;
        assert_eq!(
            error(&ask(&endpoint, &with_three_tools(anthropic())).await).code,
            "invalid_request"
        );
        assert_eq!(endpoint.requests().len(), 1, "{message}");
    }
}

#[tokio::test]
async fn the_place_in_a_field_of_its_own_counts_and_no_reason_repeats_the_conversation() {
    let message = format!("Invalid value near {PROMPT}");
    let body = serde_json::json!({"error": {"message": message, "param": "tools[1].parameters", "type": "x"}});
    let replies = vec![
        Reply::error(400, &body.to_string()),
        Reply::fixture("openai/responses.sse"),
    ];
    let endpoint = Endpoint::start(replies).await;
    let answer = ask(&endpoint, &with_three_tools(openai())).await;
    let [tool] = &*refused(&answer) else {
        panic!("{answer:?}")
    };
    assert_eq!(tool.name, "server.odd");
    assert!(
        !tool.reason.contains("seeded") && tool.reason.starts_with("400 x"),
        "{}",
        tool.reason
    );
}
