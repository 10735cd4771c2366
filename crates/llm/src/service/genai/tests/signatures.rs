//! Signed and encrypted thoughts over several requests, each of which may go to another replica.

use serde_json::{Value, json};

use super::conversation::{
    PROMPT, anthropic, ask, continued, error, lines, openai, provider_data, request,
};
use crate::proto::{ConversationMessage, GenerateRequest, ProviderData};
use crate::service::provider::tests::endpoint::{Endpoint, Reply};

const SIGNATURE: &str = "c2lnLTE=";

fn body(endpoint: &Endpoint) -> Value {
    serde_json::from_str(&endpoint.bodies().pop().unwrap()).unwrap()
}

#[tokio::test]
async fn blocks_of_anthropic_go_back_before_their_results() {
    let endpoint = Endpoint::start(vec![
        Reply::fixture("anthropic/calls.sse"),
        Reply::fixture("anthropic/answer.sse"),
    ]);
    let endpoint = endpoint.await;
    let first = ask(&endpoint, &anthropic()).await;
    let data = provider_data(&first).unwrap();
    let fields = (
        data.provider.as_str(),
        data.model.as_str(),
        data.format.as_str(),
    );
    assert_eq!(
        fields,
        ("anthropic", "claude-sonnet-4-5", "anthropic.blocks.v1")
    );
    let second = lines(&ask(&endpoint, &continued(anthropic(), &first)).await);
    assert_eq!(second[0], "text Healthy.");
    let sent = body(&endpoint);
    let blocks: Value = serde_json::from_slice(&data.payload).unwrap();
    assert_eq!(
        sent["messages"][1],
        json!({ "role": "assistant", "content": blocks })
    );
    let result =
        |id: &str| json!({ "type": "tool_result", "content": r#"{"ok":true}"#, "tool_use_id": id });
    let mut last = result("toolu_2");
    last["cache_control"] = json!({ "type": "ephemeral" });
    assert_eq!(
        sent["messages"][2],
        json!({ "role": "user", "content": [result("toolu_1"), last] })
    );
    let before =
        json!({ "type": "text", "text": PROMPT, "cache_control": { "type": "ephemeral" } });
    assert_eq!(
        sent["messages"][0],
        json!({ "role": "user", "content": [before] })
    );
    assert_eq!(
        sent["thinking"],
        json!({ "type": "enabled", "budget_tokens": 32_000 })
    );
}

#[tokio::test]
async fn items_of_openai_go_back_in_their_order() {
    let endpoint = Endpoint::start(vec![Reply::fixture("openai/responses.sse")]).await;
    let first = ask(&endpoint, &openai()).await;
    ask(&endpoint, &continued(openai(), &first)).await;
    let sent = body(&endpoint);
    let output = |id: &str| json!({ "type": "function_call_output", "call_id": id, "output": r#"{"ok":true}"# });
    let mut expected: Vec<Value> =
        serde_json::from_slice(&provider_data(&first).unwrap().payload).unwrap();
    assert_eq!(
        (&expected[0]["encrypted_content"], expected.len()),
        (&json!("ZW5jcnlwdGVk"), 4)
    );
    expected.extend([output("tool-A"), output("tool-B")]);
    assert_eq!(sent["input"].as_array().unwrap()[2..], expected);
}

#[tokio::test]
async fn nothing_foreign_is_sent_and_anthropic_does_not_think_without_its_thoughts() {
    let endpoint = Endpoint::start(vec![Reply::fixture("anthropic/calls.sse")]).await;
    let first = ask(&endpoint, &anthropic()).await;
    let foreign = |provider: &str, model: &str| ProviderData {
        provider: provider.into(),
        model: model.into(),
        ..provider_data(&first).unwrap()
    };
    let data = [
        None,
        Some(foreign("google", "gemini-3-flash")),
        Some(foreign("anthropic", "claude-opus-4-5")),
    ];
    for data in data {
        let mut next = continued(anthropic(), &first);
        next.messages[2].provider_data = data;
        ask(&endpoint, &next).await;
        let sent = body(&endpoint);
        let text = sent.to_string();
        assert!(
            !text.contains(SIGNATURE) && !text.contains("restarts") && text.contains("toolu_1"),
            "{text}"
        );
        assert_eq!(sent.get("thinking"), None);
        next.llm_config.as_mut().unwrap().model = "claude-sonnet-5".into();
        ask(&endpoint, &next).await;
        assert_eq!(body(&endpoint)["thinking"]["type"], "adaptive");
    }
    let endpoint = Endpoint::start(vec![Reply::fixture("openai/chat.sse")]).await;
    for (provider, model) in [
        ("openai", "gpt-5.1"),
        ("xai", "grok-4"),
        ("openai", "qwen3-max"),
    ] {
        ask(
            &endpoint,
            &GenerateRequest {
                llm_config: request(provider, model).llm_config,
                ..continued(anthropic(), &first)
            },
        )
        .await;
        let text = body(&endpoint).to_string();
        assert!(text.contains(model) && text.contains("toolu_1"), "{text}");
        assert!(
            !text.contains(SIGNATURE)
                && !text.contains("cmVkYWN0ZWQ=")
                && !text.contains("restarts"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn the_work_of_gemini_reaches_another_provider_as_text() {
    let payload = r#"[{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1+1"},"thoughtSignature":"c2VjcmV0"},{"text":"t"}]},{"sources":{"queries":["pool size"],"pages":[{"url":"https://a.example","title":"Pools"}]}}]"#;
    let data = ProviderData {
        provider: "google".into(),
        model: "gemini-3-flash-preview".into(),
        format: "gemini.contents.v1".into(),
        payload: payload.into(),
    };
    let said = ConversationMessage {
        role: "assistant".into(),
        content: "The pool is small.".into(),
        provider_data: Some(data),
        ..ConversationMessage::default()
    };
    for (request, reply) in [
        (anthropic(), "anthropic/answer.sse"),
        (openai(), "openai/responses.sse"),
    ] {
        let endpoint = Endpoint::start(vec![Reply::fixture(reply)]).await;
        let mut request = request;
        request.messages.push(said.clone());
        ask(&endpoint, &request).await;
        let text = body(&endpoint).to_string();
        assert!(
            text.contains("1+1") && text.contains("The pool is small."),
            "{text}"
        );
        assert!(
            !text.contains("c2VjcmV0") && !text.contains("thoughtSignature"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn refused_signatures_are_answered_by_one_rebuilt_request() {
    let text = "messages.1.content.0: Invalid `signature` in `thinking` block";
    let refusal = Reply::error(
        400,
        &format!(
            r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{text}"}}}}"#
        ),
    );
    let replies = |last: Reply| vec![Reply::fixture("anthropic/calls.sse"), refusal.clone(), last];
    let endpoint = Endpoint::start(replies(Reply::fixture("anthropic/answer.sse"))).await;
    let first = ask(&endpoint, &anthropic()).await;
    let second = lines(&ask(&endpoint, &continued(anthropic(), &first)).await);
    assert_eq!(second[0], "text Healthy.");
    let bodies = endpoint.bodies();
    assert!(
        bodies[1].contains(SIGNATURE) && !bodies[2].contains(SIGNATURE),
        "{bodies:?}"
    );
    let endpoint = Endpoint::start(replies(refusal.clone())).await;
    let first = ask(&endpoint, &anthropic()).await;
    let found = error(&ask(&endpoint, &continued(anthropic(), &first)).await);
    assert_eq!(
        (found.code.as_str(), found.retryable),
        ("thought_signature", false)
    );
    assert_eq!(endpoint.requests().len(), 3);
}
