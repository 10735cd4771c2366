//! Tests of the requests that providers receive.

use serde_json::{Value, json};

use super::conversation::{KEY, PROMPT, anthropic, ask, openai, request};
use crate::proto::GenerateRequest;
use crate::service::provider::tests::endpoint::{Endpoint, Received, Reply};

async fn sent(reply: &str, request: &GenerateRequest) -> (Received, Value) {
    let endpoint = Endpoint::start(vec![Reply::fixture(reply)]).await;
    ask(&endpoint, request).await;
    let received = endpoint.requests().remove(0);
    let body = serde_json::from_str(&received.body).unwrap();
    (received, body)
}

fn schema() -> Value {
    json!({ "type": "object", "properties": {} })
}

#[tokio::test]
async fn anthropic_gets_a_limit_a_budget_and_marks_for_its_cache() {
    let (received, body) = sent("anthropic/answer.sse", &anthropic()).await;
    assert_eq!(received.target, "POST /v1/messages");
    let headers = received.headers.to_lowercase();
    assert!(
        headers.contains(&format!("x-api-key: {KEY}\r\n"))
            && headers.contains("anthropic-version: "),
        "{headers}"
    );
    assert!(!headers.contains("accept-encoding"), "{headers}");
    let tool = |name: &str| json!({ "name": name, "input_schema": schema(), "description": "" });
    let cached = |text: &str| json!([{ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } }]);
    let expected = json!({
        "model": "claude-sonnet-4-5",
        "stream": true,
        "system": cached("You are an SRE."),
        "tools": [tool("server__get"), tool("server__list")],
        "messages": [{ "role": "user", "content": cached(PROMPT) }],
        "max_tokens": 64_000,
        "thinking": { "type": "enabled", "budget_tokens": 32_000 },
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn openai_gets_an_effort_a_limit_and_asks_for_encrypted_thoughts() {
    let (received, body) = sent("openai/responses.sse", &openai()).await;
    assert_eq!(received.target, "POST /v1/responses");
    assert!(
        received
            .headers
            .to_lowercase()
            .contains(&format!("authorization: bearer {KEY}\r\n"))
    );
    let tool = |name: &str| json!({ "type": "function", "name": name, "description": "", "parameters": schema(), "strict": false });
    let message =
        |role: &str, text: &str| json!({ "type": "message", "role": role, "content": text });
    let expected = json!({
        "store": false,
        "model": "gpt-5.1",
        "stream": true,
        "reasoning": { "effort": "high", "summary": "auto" },
        "include": ["reasoning.encrypted_content"],
        "tools": [tool("server__get"), tool("server__list")],
        "input": [message("system", "You are an SRE."), message("user", PROMPT)],
        "max_output_tokens": 128_000,
        "prompt_cache_key": "execution-1",
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn the_name_of_a_model_is_sent_as_it_is() {
    for model in [
        "qwen3-max",
        "deepseek-r1-zero",
        "a::b",
        "claude-sonnet-4-5",
        "gemini-4-argon",
    ] {
        let mut request = request("xai", model);
        request.max_output_tokens = 77;
        let (received, body) = sent("openai/chat.sse", &request).await;
        assert_eq!(received.target, "POST /v1/chat/completions");
        let found = (
            &body["model"],
            &body["max_tokens"],
            body.get("reasoning_effort"),
        );
        assert_eq!(found, (&json!(model), &json!(77), None), "{body}");
    }
}

#[tokio::test]
async fn a_server_without_a_key_gets_no_header_for_one() {
    let mut request = request("ollama", "qwen3:8b");
    request.llm_config.as_mut().unwrap().api_key_env.clear();
    let (received, body) = sent("openai/chat.sse", &request).await;
    assert_eq!(received.target, "POST /v1/chat/completions");
    assert!(
        !received.headers.to_lowercase().contains("authorization"),
        "{}",
        received.headers
    );
    assert_eq!(
        (&body["max_tokens"], &body["stream_options"]),
        (&json!(8_192), &json!({ "include_usage": true }))
    );
}

#[tokio::test]
async fn a_path_with_two_slashes_reaches_no_other_host() {
    let reply = || vec![Reply::fixture("anthropic/answer.sse")];
    let own = Endpoint::start(reply()).await;
    let other = Endpoint::start(reply()).await;
    for base_url in [
        format!("http://{}//{}", own.address, other.address),
        format!("http://{}/v1//{}", own.address, other.address),
    ] {
        let mut request = anthropic();
        request.llm_config.as_mut().unwrap().base_url = base_url;
        ask(&own, &request).await;
        assert_eq!(other.requests().len(), 0);
    }
}
