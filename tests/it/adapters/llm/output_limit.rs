//! The output limit of the request after an answer that was cut off at it, in a session whose worker is killed.

use tarsy_core::timeline::EventType;

use crate::support::http::provider::{FakeProvider, Received, Reply};
use crate::support::system::{Setup, TestSystem};

const LOOK: &str = r#"{"functionCall":{"name":"drill__describe_pod","args":{"namespace":"checkout","pod":"checkout-7d9f"}}}"#;

fn answer(part: &str, finish: &str) -> Reply {
    let usage = r#"{"promptTokenCount":9,"totalTokenCount":9}"#;
    Reply::events(&[format!(
        r#"{{"candidates":[{{"content":{{"role":"model","parts":[{part}]}},"finishReason":"{finish}"}}],"usageMetadata":{usage}}}"#
    )])
}

fn limit(request: &Received) -> u64 {
    request.json()["generationConfig"]["maxOutputTokens"]
        .as_u64()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_after_a_cut_answer_has_the_raised_limit_also_for_the_conclusion() {
    let replies = vec![
        answer(r#"{"text":"I look at"}"#, "MAX_TOKENS"),
        answer(LOOK, "STOP"),
        answer(r#"{"text":"Cause: the"}"#, "MAX_TOKENS"),
        Reply::Held,
        answer(
            r#"{"text":"Cause: the heap is larger than the limit"}"#,
            "STOP",
        ),
    ];
    let gemini = FakeProvider::start(replies).await;
    let sections = format!(
        "llm_providers:\n  gemini: {{provider: google, model: gemini-2.5-pro, api_key_env: FIRST_KEY, base_url: '{}', \
         max_output_tokens: 8k, max_output_tokens_after_cut: 32k}}\n\
         defaults: {{llm_provider: gemini, max_iterations: 2}}\n",
        gemini.url()
    );
    let mut system = TestSystem::start_with(Setup {
        sections: &sections,
        ..Setup::default()
    })
    .await;
    let options = [
        "--allow-key-env",
        "*_KEY",
        "--allow-base-url",
        "http://127.0.0.1:*",
    ];
    system
        .replace_llm_service(&options, &[("FIRST_KEY", "key-of-the-first")])
        .await;
    let (mut one, _) = system.worker("one").await;
    let session = system.publish().await;
    gemini.asked(4).await;
    one.kill().await;
    let (_two, _) = system.worker("two").await;
    let mut timeline = system.follow(session).await;
    let end = timeline.finish().await;
    assert_eq!(
        end.event_type,
        EventType::SessionCompleted,
        "{:#?}",
        timeline.seen
    );
    assert_ne!(end.metadata["mark"], "incomplete", "{end:#?}");
    let requests = gemini.requests();
    let limits: Vec<u64> = requests.iter().map(limit).collect();
    assert_eq!(limits, [8_000, 32_000, 8_000, 32_000, 32_000]);
    assert_eq!(
        requests[3].body, requests[4].body,
        "another worker sends the same bytes"
    );
    system.assert_invariants(session, &timeline.seen).await;
}
