//! Thought signatures over several requests, each of which may go to another replica.

use super::conversation::{ask, continued, error, lines, provider_data, request};
use crate::llm::proto::ProviderData;
use crate::llm::service::provider::tests::endpoint::{Endpoint, Reply};

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
    let fields = (data.provider.as_str(), data.model.as_str(), data.format.as_str());
    assert_eq!(fields, ("google", "gemini-3-flash-preview", "gemini.contents.v1"));
    assert_eq!(String::from_utf8(data.payload).unwrap(), format!("[{PARTS}]"));
    let second = lines(&ask(&endpoint, &continued(request(), &first)).await);
    assert_eq!(second[0], "text Healthy.");
    let body = &endpoint.bodies()[1];
    assert!(body.contains(&format!("{PARTS},{RESULTS}]")) && !body.contains(SENTINEL), "{body}");
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
        assert!(!body.contains("c2lnLTE=") && !body.contains("foreign-signature") && !body.contains("fc-1"), "{body}");
        assert_eq!(body.matches(SENTINEL).count(), 1, "{body}");
    }
}

#[tokio::test]
async fn refused_signatures_are_answered_by_one_rebuilt_request() {
    let refused = |text: &str| {
        let body = format!(r#"{{"error":{{"code":400,"message":"{text}","status":"INVALID_ARGUMENT"}}}}"#);
        Reply::error(400, &body)
    };
    let missing = r#"{"candidates":[{"finishReason":"MISSING_THOUGHT_SIGNATURE"}]}"#;
    for refusal in [refused("Corrupted thought signature."), Reply::events(&[missing])] {
        let endpoint = Endpoint::start(vec![Reply::fixture("gemini/calls.sse"), refusal, healthy()]).await;
        let first = ask(&endpoint, &request()).await;
        let second = lines(&ask(&endpoint, &continued(request(), &first)).await);
        assert_eq!(second[0], "text Healthy.");
        let bodies = endpoint.bodies();
        assert!(bodies[1].contains("c2lnLTE=") && !bodies[2].contains("c2lnLTE="), "{bodies:?}");
        assert_eq!((bodies.len(), bodies[2].matches(SENTINEL).count()), (3, 1));
    }
    let endpoint =
        Endpoint::start(vec![Reply::fixture("gemini/calls.sse"), refused("Invalid thought signature.")]).await;
    let first = ask(&endpoint, &request()).await;
    let found = error(&ask(&endpoint, &continued(request(), &first)).await);
    let message = "Generation failed: 400 INVALID_ARGUMENT. Invalid thought signature.";
    assert_eq!((found.code.as_str(), found.message.as_str()), ("thought_signature", message));
    assert_eq!(endpoint.requests().len(), 3);
    let endpoint = Endpoint::start(vec![refused("Function call is missing a thought_signature")]).await;
    assert_eq!(error(&ask(&endpoint, &request()).await).code, "thought_signature");
    assert_eq!(endpoint.requests().len(), 1);
}
