//! A conclusion whose tools are declared and may not be called: the form of each interface, and a gateway that refuses.

use serde_json::{Value, json};

use super::conversation::{ask, continued, error, lines, request};
use crate::proto::GenerateRequest;
use crate::service::declared_tools::resolved;
use crate::service::provider::tests::conversation::message;
use crate::service::provider::tests::endpoint::{Endpoint, Reply};

/// The requests of a step with calls, and of the conclusion after it, as they arrive.
async fn step_and_conclusion(first: &GenerateRequest, replies: [&str; 2]) -> [Value; 2] {
    let endpoint = Endpoint::start(replies.map(Reply::fixture).to_vec()).await;
    let looked = ask(&endpoint, first).await;
    ask(&endpoint, &conclusion(continued(first.clone(), &looked))).await;
    [0, 1].map(|at| serde_json::from_str(&endpoint.bodies()[at]).unwrap())
}

fn conclusion(mut request: GenerateRequest) -> GenerateRequest {
    request.messages.push(message("user", "Conclude."));
    request.declared_tools = std::mem::take(&mut request.tools);
    resolved(request)
}

/// Roles and texts of messages. A mark for the cache of Anthropic makes a text a list, and moves on.
fn shown(messages: &[Value]) -> Vec<[Value; 2]> {
    messages
        .iter()
        .map(|message| {
            let content = &message["content"];
            let text = content.pointer("/0/text").unwrap_or(content);
            [message["role"].clone(), text.clone()]
        })
        .collect()
}

#[tokio::test]
async fn a_conclusion_keeps_the_beginning_of_the_request_and_forbids_calls() {
    let none = json!("none");
    let typed = json!({ "type": "none" });
    for (provider, model, replies, messages, choice) in [
        (
            "anthropic",
            "claude-sonnet-4-5",
            ["anthropic/calls.sse", "anthropic/answer.sse"],
            "messages",
            &typed,
        ),
        (
            "openai",
            "gpt-5.1",
            ["openai/responses.sse", "openai/responses.sse"],
            "input",
            &none,
        ),
        (
            "openai",
            "gpt-oss-120b",
            ["openai/chat.sse", "openai/chat.sse"],
            "messages",
            &none,
        ),
    ] {
        let first = request(provider, model);
        let [step, end] = step_and_conclusion(&first, replies).await;
        assert_eq!(
            (&end["tools"], &end["system"]),
            (&step["tools"], &step["system"]),
            "{model}"
        );
        assert_eq!(
            (step.get("tool_choice"), &end["tool_choice"]),
            (None, choice),
            "{model}"
        );
        let known = step[messages].as_array().unwrap().clone();
        let all = end[messages].as_array().unwrap();
        assert_eq!(shown(&all[..known.len()]), shown(&known), "{model}");
        assert!(
            all.len() > known.len() + 1,
            "{model}: the calls and their results are no text"
        );
        assert_eq!(end.get("thinking"), step.get("thinking"), "{model}");
    }
}

#[tokio::test]
async fn a_gateway_that_refuses_the_word_gets_the_conclusion_without_tools() {
    let refusal = Reply::error(
        400,
        r#"{"error":{"message":"litellm.UnsupportedParamsError: tool_choice=none is not supported"}}"#,
    );
    let replies = vec![
        Reply::fixture("anthropic/calls.sse"),
        refusal.clone(),
        Reply::fixture("anthropic/answer.sse"),
    ];
    let endpoint = Endpoint::start(replies).await;
    let first = super::conversation::anthropic();
    let looked = ask(&endpoint, &first).await;
    let next = conclusion(continued(first, &looked));
    assert_eq!(lines(&ask(&endpoint, &next).await)[0], "text Healthy.");
    let bodies = endpoint.bodies();
    let sent: Value = serde_json::from_str(&bodies[2]).unwrap();
    assert_eq!((sent.get("tools"), sent.get("tool_choice")), (None, None));
    assert!(!bodies[2].contains("tool_use") && bodies[2].contains("I called server.get"));

    let endpoint = Endpoint::start(vec![refusal]).await;
    let failed = error(&ask(&endpoint, &super::conversation::anthropic()).await);
    assert_eq!(
        (failed.code.as_str(), endpoint.bodies().len()),
        ("invalid_request", 1)
    );
}
