//! A conversation with Gemini that continues with another worker and another LLM service, in the middle of a turn.

use std::collections::BTreeMap;

use tarsy_core::timeline::EventType;

use super::FOUND;
use crate::support::http::provider::{FakeProvider, Reply};
use crate::support::system::{Setup, TestSystem};

/// The parts of three answers with calls, as the model spells them; only the first call of an answer is signed.
const ANSWERS: [&[&str]; 3] = [
    &[
        r#"{"text":"look first","thought":true}"#,
        r#"{"functionCall":{"id":"fc-1","name":"drill__describe_pod","args":{"pod":"checkout-7d9f8b6c5-x2x9p", "namespace":"checkout"}},"thoughtSignature":"c2lnbmF0dXJlLTE="}"#,
    ],
    &[
        r#"{"functionCall":{"name":"drill__pod_events","args":{"namespace":"checkout","pod":"checkout-7d9f8b6c5-x2x9p"}},"thoughtSignature":"c2lnbmF0dXJlLTI=","newField":1.50}"#,
        r#"{"functionCall":{"name":"drill__pod_logs","args":{"namespace":"checkout","pod":"checkout-7d9f8b6c5-x2x9p","previous":true}}}"#,
    ],
    &[
        r#"{"text":"","thoughtSignature":"c2lnbmF0dXJlLTM="}"#,
        r#"{"functionCall":{"name":"drill__deployment_history","args":{"namespace":"checkout","deployment":"checkout"}},"thoughtSignature":"c2lnbmF0dXJlLTQ="}"#,
    ],
];

/// An answer as a stream with one event for each part.
fn answer(parts: &[&str]) -> Reply {
    let event = |part: &&str| {
        format!(r#"{{"candidates":[{{"content":{{"role":"model","parts":[{part}]}}}}]}}"#)
    };
    let end = r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9}}"#;
    let events: Vec<String> = parts.iter().map(event).chain([end.to_owned()]).collect();
    Reply::events(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gemini_conversation_goes_on_with_another_worker_and_service() {
    let [one, two, three] = ANSWERS;
    let replies = vec![
        answer(one),
        answer(two),
        Reply::Held,
        answer(three),
        Reply::events(&[FOUND]),
    ];
    let gemini = FakeProvider::start(replies).await;
    let sections = format!(
        "llm_providers:\n  gemini: {{provider: google, model: gemini-3-flash-preview, api_key_env: FIRST_KEY, \
         base_url: '{}'}}\ndefaults: {{llm_provider: gemini}}\n",
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
    let keys = [("FIRST_KEY", "key-of-the-first")];
    system.replace_llm_service(&options, &keys).await;
    let (mut first, _) = system.worker("one").await;
    let session = system.publish().await;
    gemini.asked(3).await;
    first.kill().await;
    system.llm.kill().await;
    system.replace_llm_service(&options, &keys).await;
    let (_second, _) = system.worker("two").await;
    let mut timeline = system.follow(session).await;
    let end = timeline.finish().await;
    assert_eq!(
        end.event_type,
        EventType::SessionCompleted,
        "{:#?}",
        timeline.seen
    );
    let requests = gemini.requests();
    assert_eq!(requests.len(), 5, "only the unanswered request is repeated");
    assert_eq!(
        requests[2].body, requests[3].body,
        "the other replica sends the same conversation"
    );
    assert!(
        requests[2].body.contains("It is now "),
        "{}",
        requests[2].body
    );
    for (request, known) in requests.iter().zip([0, 1, 2, 2, 3]) {
        let signatures = request.body.matches("thoughtSignature").count();
        let expected: usize = ANSWERS
            .iter()
            .take(known)
            .map(|parts| parts.concat().matches("thoughtSignature").count())
            .sum();
        assert_eq!(signatures, expected, "{}", request.body);
        for parts in ANSWERS.iter().take(known) {
            let content = format!(r#"{{"parts":[{}],"role":"model"}}"#, parts.join(","));
            assert_eq!(
                request.body.matches(&content).count(),
                1,
                "{content}: {}",
                request.body
            );
        }
        assert!(
            !request.body.contains("skip_thought_signature_validator"),
            "{}",
            request.body
        );
    }
    assert!(
        requests[1]
            .body
            .contains(r#"{"functionResponse":{"id":"fc-1","name":"drill__describe_pod""#)
    );
    let calls: BTreeMap<String, u32> = system.tool_calls();
    assert!(
        calls.len() == 4 && calls.values().all(|count| *count == 1),
        "{calls:?}"
    );
    system.assert_invariants(session, &timeline.seen).await;
}
