//! Tests of the time in real requests to a provider.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tarsy_bus::{NewAlert, PARENT_ID, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use uuid::Uuid;

use crate::support::http::provider::{FakeProvider, Received, Reply};
use crate::support::system::{Setup, TestSystem};

fn answer(part: &Value) -> Reply {
    let candidate = json!({"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"});
    Reply::events(&[
        json!({"candidates": [candidate], "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9}}),
    ])
}

fn replies() -> Vec<Reply> {
    let arguments = json!({"namespace": "checkout", "pod": "checkout-7d9f8b6c5-x2x9p"});
    let call = json!({"functionCall": {"name": "drill__describe_pod", "args": arguments}});
    vec![
        answer(&call),
        answer(&json!({"text": "Cause: the heap [drill.describe_pod]"})),
        answer(&json!({"text": "Yes."})),
    ]
}

/// The text of the n-th message of a request.
fn message(request: &Received, at: usize) -> String {
    let contents = request.json()["contents"].clone();
    let parts = contents[at]["parts"]
        .as_array()
        .unwrap_or_else(|| panic!("{contents:#}"))
        .clone();
    let text = |part: &Value| {
        part["text"]
            .as_str()
            .map_or_else(|| part.to_string(), str::to_owned)
    };
    parts.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// The time that a message states after these words.
fn stated(message: &str, before: &str) -> DateTime<Utc> {
    let (_, after) = message
        .split_once(before)
        .unwrap_or_else(|| panic!("no {before:?}: {message}"));
    let at = after.get(..19).unwrap_or_default().replace(' ', "T");
    format!("{at}Z")
        .parse()
        .unwrap_or_else(|error| panic!("{error}: {message}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_prompt_says_what_time_it_is_behind_the_prefix_that_sessions_share() {
    let gemini = FakeProvider::start(replies()).await;
    let sections = format!(
        "llm_providers:\n  gemini: {{provider: google, model: gemini-3-flash-preview, api_key_env: FIRST_KEY, \
         base_url: '{}'}}\ndefaults: {{llm_provider: gemini, max_iterations: 1}}\n",
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
    let began = Utc::now();
    let (_worker, _) = system.worker("one").await;
    let session = system.publish().await;
    assert_eq!(
        system.follow(session).await.finish().await.event_type,
        EventType::SessionCompleted
    );
    let question = SessionId(Uuid::now_v7());
    let headers = json!({SESSION_ID: question.to_string(), PARENT_ID: session.to_string()});
    let asked = NewAlert {
        priority: Priority::High,
        suffix: None,
        body: b"Is it over?".to_vec(),
        headers,
    };
    system
        .connect()
        .await
        .publish_question(asked)
        .await
        .unwrap();
    assert_eq!(
        system.follow(question).await.finish().await.event_type,
        EventType::SessionCompleted
    );

    let requests = gemini.requests();
    let [first, conclusion, asked] = requests.as_slice() else {
        panic!("{requests:#?}")
    };
    let opening = message(first, 0);
    let shown = stated(&opening, "\n\nIt is now ");
    assert!(
        shown >= began - chrono::TimeDelta::seconds(1) && shown <= Utc::now(),
        "{opening}"
    );
    assert!(
        opening.contains("The alert has been firing since 2026-11-20 14:07:31 UTC, for "),
        "{opening}"
    );
    assert!(
        opening.trim_end().ends_with("ago.") || opening.ends_with("tarsy received it just now."),
        "{opening}"
    );
    assert_eq!(message(conclusion, 0), opening, "the prefix stays the same");
    let result = message(conclusion, 2);
    assert!(
        result.contains("[event ") && result.contains(&format!("] {}", shown.format("%H:"))),
        "{result}"
    );
    let last = conclusion.json()["contents"].as_array().unwrap().len() - 1;
    assert!(
        stated(&message(conclusion, last), "It is now ") >= shown,
        "{}",
        message(conclusion, last)
    );
    let question = message(asked, 0);
    assert!(
        stated(&question, "\n\nIt is now ") >= shown
            && question.contains("The investigation ended "),
        "{question}"
    );
    for request in &requests {
        let request = request.json();
        let shared = format!("{}{}", request["systemInstruction"], request["tools"]);
        assert!(
            !shared.contains(&shown.format("%Y-%m-%d").to_string()),
            "{shared}"
        );
    }
}
