//! Thought signatures over several requests, each of which may go to another replica.

use super::conversation::{ask, continued, error, lines, provider_data, request};
use crate::proto::{ConversationMessage, GenerateRequest, ProviderData, ToolCall};
use crate::service::provider::tests::conversation::message;
use crate::service::provider::tests::endpoint::{Endpoint, Reply};

const SENTINEL: &str = "skip_thought_signature_validator";
/// The parts of the fixture `calls.sse`, as they arrive; the last one is empty text without a signature.
const PARTS: &str = concat!(
    r#"{"parts":[{"text": "need data", "thought": true},"#,
    r#"{"functionCall": {"name": "server__get", "args": {"name": "web-1", "count": 1.0}, "id": "fc-1"}, "thoughtSignature": "c2lnLTE="},"#,
    r#"{"functionCall": {"name": "server__list"}},{"text": ""}],"role":"model"}"#
);
const RESULTS: &str = concat!(
    r#"{"parts":[{"functionResponse":{"id":"fc-1","name":"server__get","response":{"ok":true}}},"#,
    r#"{"functionResponse":{"name":"server__list","response":{"ok":true}}}],"role":"user"}"#
);

fn healthy() -> Reply {
    Reply::fixture("gemini/answer.sse")
}

#[tokio::test]
async fn an_answer_goes_back_byte_for_byte_from_another_process() {
    let endpoint = Endpoint::start(vec![Reply::fixture("gemini/calls.sse"), healthy()]).await;
    let first = ask(&endpoint, &request()).await;
    let data = provider_data(&first).unwrap();
    let fields = (
        data.provider.as_str(),
        data.model.as_str(),
        data.format.as_str(),
    );
    assert_eq!(
        fields,
        ("google", "gemini-3-flash-preview", "gemini.contents.v1")
    );
    assert_eq!(
        String::from_utf8(data.payload).unwrap(),
        format!("[{PARTS}]")
    );
    let second = lines(&ask(&endpoint, &continued(request(), &first)).await);
    assert_eq!(second[0], "text Healthy.");
    let body = &endpoint.bodies()[1];
    assert!(
        body.contains(&format!("{PARTS},{RESULTS}]")) && !body.contains(SENTINEL),
        "{body}"
    );
}

#[tokio::test]
async fn lost_and_foreign_data_is_replaced_by_the_documented_word() {
    let endpoint = Endpoint::start(vec![Reply::fixture("gemini/calls.sse"), healthy()]).await;
    let first = ask(&endpoint, &request()).await;
    let foreign = ProviderData {
        provider: "anthropic".into(),
        payload: b"foreign-signature".to_vec(),
        ..provider_data(&first).unwrap()
    };
    for data in [None, Some(foreign)] {
        let mut request = continued(request(), &first);
        request.messages[2].provider_data = data;
        ask(&endpoint, &request).await;
        let body = endpoint.bodies().pop().unwrap();
        assert!(
            !body.contains("c2lnLTE=")
                && !body.contains("foreign-signature")
                && !body.contains("fc-1"),
            "{body}"
        );
        assert_eq!(body.matches(SENTINEL).count(), 1, "{body}");
    }
}

/// An answer of Claude with a call, and everything in it that only Anthropic may get.
const BLOCKS: &str = r#"[{"type":"thinking","thinking":"bound thought","signature":"SECRET-1"},
    {"type":"redacted_thinking","data":"SECRET-2"},{"type":"server_tool_use","id":"SECRET-3","name":"web_search","input":{"query":"oom"}},
    {"type":"web_search_tool_result","content":[{"url":"https://a","title":"A","encrypted_content":"SECRET-4"}]},
    {"type":"text","text":"I look.","citations":[{"url":"https://a","encrypted_index":"SECRET-5"}]},
    {"type":"tool_use","id":"SECRET-6","name":"server__get","input":{"name":"web-1"}}]"#;

/// A request after an answer with this data and a call.
fn after(data: ProviderData) -> GenerateRequest {
    let call = ToolCall {
        id: "7".into(),
        name: "server.get".into(),
        arguments: "{}".into(),
    };
    let answer = ConversationMessage {
        tool_calls: vec![call],
        provider_data: Some(data),
        ..message("assistant", "I look.")
    };
    let result = ConversationMessage {
        tool_call_id: "7".into(),
        ..message("tool", "{}")
    };
    let mut request = request();
    request.messages.extend([answer, result]);
    request
}

#[tokio::test]
async fn work_of_another_provider_arrives_as_text_without_its_secrets() {
    let endpoint = Endpoint::start(vec![healthy()]).await;
    let data = ProviderData {
        provider: "anthropic".into(),
        model: "claude-sonnet-4-5".into(),
        format: "anthropic.blocks.v1".into(),
        payload: BLOCKS.into(),
    };
    ask(&endpoint, &after(data)).await;
    let body = &endpoint.bodies()[0];
    let answer = concat!(
        r#"{"parts":[{"text":"[Notes on this answer: work of the model's provider]\nSearched the web for: oom\nFound:\n"#,
        r#"- A: https://a\n[End of the notes]"},{"text":"I look."},{"functionCall":{"name":"server__get","args":{}},"#,
        r#""thoughtSignature":"skip_thought_signature_validator"}],"role":"model"}"#
    );
    assert!(body.contains(answer), "{body}");
    assert!(
        !body.contains("SECRET") && !body.contains("bound thought"),
        "{body}"
    );
    assert_eq!(body.matches(SENTINEL).count(), 1);
}

#[tokio::test]
async fn the_sources_of_an_answer_never_go_back_to_google_as_a_content() {
    let payload = r#"[{"parts":[{"functionCall":{"name":"server__get"},"thoughtSignature":"c2ln"}],"role":"model"},
        {"sources":{"queries":["oom"],"found":[{"title":"A","url":"https://a"}]}}]"#;
    let data = |model: &str| ProviderData {
        provider: "google".into(),
        model: model.into(),
        format: "gemini.contents.v1".into(),
        payload: payload.into(),
    };
    let endpoint = Endpoint::start(vec![healthy()]).await;
    ask(&endpoint, &after(data("gemini-3-flash-preview"))).await;
    ask(&endpoint, &after(data("gemini-2.5-flash"))).await;
    let bodies = endpoint.bodies();
    assert!(
        bodies[0].contains("c2ln") && !bodies[0].contains("https://a"),
        "{}",
        bodies[0]
    );
    assert!(
        !bodies[1].contains("c2ln") && bodies[1].contains("- A: https://a"),
        "{}",
        bodies[1]
    );
    assert!(
        bodies.iter().all(|body| !body.contains("sources")),
        "{bodies:?}"
    );
}

#[tokio::test]
async fn refused_signatures_are_answered_by_one_rebuilt_request() {
    let refused = |text: &str| {
        let body =
            format!(r#"{{"error":{{"code":400,"message":"{text}","status":"INVALID_ARGUMENT"}}}}"#);
        Reply::error(400, &body)
    };
    let missing = r#"{"candidates":[{"finishReason":"MISSING_THOUGHT_SIGNATURE"}]}"#;
    for refusal in [
        refused("Corrupted thought signature."),
        Reply::events(&[missing]),
    ] {
        let endpoint =
            Endpoint::start(vec![Reply::fixture("gemini/calls.sse"), refusal, healthy()]).await;
        let first = ask(&endpoint, &request()).await;
        let second = lines(&ask(&endpoint, &continued(request(), &first)).await);
        assert_eq!(second[0], "text Healthy.");
        let bodies = endpoint.bodies();
        assert!(
            bodies[1].contains("c2lnLTE=") && !bodies[2].contains("c2lnLTE="),
            "{bodies:?}"
        );
        assert_eq!((bodies.len(), bodies[2].matches(SENTINEL).count()), (3, 1));
    }
    let endpoint = Endpoint::start(vec![
        Reply::fixture("gemini/calls.sse"),
        refused("Invalid thought signature."),
    ])
    .await;
    let first = ask(&endpoint, &request()).await;
    let found = error(&ask(&endpoint, &continued(request(), &first)).await);
    let message = "Generation failed: 400 INVALID_ARGUMENT. Invalid thought signature.";
    assert_eq!(
        (found.code.as_str(), found.message.as_str()),
        ("thought_signature", message)
    );
    assert_eq!(endpoint.requests().len(), 3);
    let endpoint = Endpoint::start(vec![refused(
        "Function call is missing a thought_signature",
    )])
    .await;
    assert_eq!(
        error(&ask(&endpoint, &request()).await).code,
        "thought_signature"
    );
    assert_eq!(endpoint.requests().len(), 1);
}
