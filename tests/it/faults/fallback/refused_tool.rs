//! A provider that refuses one tool: the investigation continues without it, also with another worker.

use serde_json::Value;
use tarsy_core::timeline::EventType;

use super::{CALL, FOUND, parsed};
use crate::support::http::provider::{FakeProvider, Received, Reply};
use crate::support::system::{Setup, TestSystem};

const REFUSED: &str = r#"{"error":{"code":400,"message":"Unable to submit request because `drill__pod_logs` functionDeclaration `parameters.previous` schema didn't specify the schema type field.","status":"INVALID_ARGUMENT"}}"#;

fn offers_logs(request: &Received) -> bool {
    let tools = request.json()["tools"].to_string();
    assert!(tools.contains("drill__describe_pod"), "{tools}");
    tools.contains("drill__pod_logs")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_investigation_goes_on_without_the_tool_that_its_provider_refuses() {
    let replies = vec![
        Reply::Error(400, REFUSED),
        Reply::events(&[parsed(CALL)]),
        Reply::Held,
        Reply::events(&[parsed(FOUND)]),
    ];
    let gemini = FakeProvider::start(replies).await;
    let sections = format!(
        "llm_providers:\n  gemini: {{provider: google, model: gemini-2.5-pro, api_key_env: FIRST_KEY, base_url: \
         '{}'}}\ndefaults: {{llm_provider: gemini}}\n",
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
    gemini.asked(3).await;
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

    let requests = gemini.requests();
    assert_eq!(
        requests.iter().map(offers_logs).collect::<Vec<_>>(),
        [true, false, false, false]
    );
    let [refused, _, held, again] = &*requests else {
        panic!("{requests:#?}")
    };
    assert_eq!(held.body, again.body, "another worker sends the same bytes");
    let system_message = |request: &Received| request.json()["systemInstruction"].to_string();
    assert!(
        system_message(again).contains("refuses their definitions: drill__pod_logs. "),
        "{}",
        system_message(again)
    );
    assert!(
        !system_message(refused).contains("drill__pod_logs."),
        "{}",
        system_message(refused)
    );

    let is_refusal = |metadata: &Value| metadata["kind"] == "refused_tools";
    let shown: Vec<_> = timeline
        .seen
        .iter()
        .filter(|event| is_refusal(&event.metadata))
        .collect();
    let [event] = &*shown else {
        panic!("{:#?}", timeline.seen)
    };
    assert_eq!(
        event.content,
        "gemini refuses the definition of drill.pod_logs: the investigation goes on without"
    );
    let reason = event.metadata["tools"][0]["reason"]
        .as_str()
        .unwrap_or_default();
    assert!(
        reason.contains("schema didn't specify the schema type field"),
        "{reason}"
    );
    system.assert_invariants(session, &timeline.seen).await;
}
