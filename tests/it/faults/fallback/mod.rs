//! A session whose providers fail one after another, on real processes and fake providers, with a worker that is killed
//! before and after a switch.

mod refused_tool;
mod resume;
mod three;

use serde_json::Value;
use tarsy_core::timeline::{EventType, TimelineEvent};

use crate::support::http::provider::{FakeProvider, Received, Reply};
use crate::support::system::{Setup, TestSystem};

const CALL: &str = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"I should look","thought":true},{"functionCall":{"id":"fc-1","name":"drill__describe_pod","args":{"namespace":"checkout","pod":"checkout-7d9f"}},"thoughtSignature":"Z29vZ2xlLXNpZ25hdHVyZQ=="}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":10,"totalTokenCount":110},"modelVersion":"gemini-2.5-pro"}"#;
const FOUND: &str = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Cause: the heap is larger than the limit [drill.describe_pod]"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":200,"candidatesTokenCount":20,"totalTokenCount":220}}"#;
const REFUSED: &str =
    r#"{"error":{"code":403,"message":"not allowed","status":"PERMISSION_DENIED"}}"#;

/// A provider `first` with these replies and a provider `second` of another generation of models.
async fn start(first: &FakeProvider, second: &FakeProvider) -> TestSystem {
    let provider = |name: &str, model: &str, fake: &FakeProvider| {
        format!(
            "  {name}: {{provider: google, model: {model}, api_key_env: {}_KEY, base_url: '{}'}}\n",
            name.to_uppercase(),
            fake.url()
        )
    };
    let sections = format!(
        "llm_providers:\n{}{}defaults: {{llm_provider: first, fallback_providers: [second]}}\n",
        provider("first", "gemini-2.5-pro", first),
        provider("second", "gemini-3-flash-preview", second),
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
    let keys = [
        ("FIRST_KEY", "key-of-the-first"),
        ("SECOND_KEY", "key-of-the-second"),
    ];
    system.replace_llm_service(&options, &keys).await;
    system
}

/// The conversation of a request, without what belongs to the other provider.
fn assert_nothing_foreign(request: &Received) -> Value {
    let everything = format!("{}{}", request.head, request.body);
    for foreign in [
        "Z29vZ2xlLXNpZ25hdHVyZQ==",
        "fc-1",
        "I should look",
        "key-of-the-first",
    ] {
        assert!(!everything.contains(foreign), "{foreign}: {everything}");
    }
    let contents = request.json()["contents"].clone();
    let call = &contents[1]["parts"][0];
    assert_eq!(
        call["functionCall"]["name"], "drill__describe_pod",
        "{contents:#}"
    );
    assert_eq!(
        contents[2]["parts"][0]["functionResponse"]["name"], "drill__describe_pod",
        "{contents:#}"
    );
    contents
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

fn fallbacks(seen: &[TimelineEvent]) -> Vec<Value> {
    let shown = seen
        .iter()
        .filter(|event| event.event_type == EventType::ProviderFallback);
    shown.map(|event| event.metadata.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_provider_goes_on_after_a_failure_and_is_sent_nothing_foreign() {
    let first = FakeProvider::start(vec![
        Reply::events(&[parsed(CALL)]),
        Reply::Error(403, REFUSED),
    ])
    .await;
    let second = FakeProvider::start(vec![Reply::events(&[parsed(FOUND)])]).await;
    let system = start(&first, &second).await;
    let (mut worker, _) = system.worker("one").await;
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    let end = timeline.finish().await;
    assert_eq!(
        end.event_type,
        EventType::SessionCompleted,
        "{:#?}",
        timeline.seen
    );
    assert_eq!((first.requests().len(), second.requests().len()), (2, 1));
    let contents = assert_nothing_foreign(&second.requests()[0]);
    assert_eq!(contents.as_array().map(Vec::len), Some(3), "{contents:#}");
    assert!(second.requests()[0].head.contains("key-of-the-second"));
    let [fallback] = &*fallbacks(&timeline.seen) else {
        panic!("{:#?}", timeline.seen)
    };
    assert_eq!(
        (&fallback["from"], &fallback["to"], &fallback["code"]),
        (&"first".into(), &"second".into(), &"credentials".into())
    );
    system.assert_invariants(session, &timeline.seen).await;
    worker.terminate();
    worker.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_before_or_after_a_switch_leaves_one_switch() {
    // The first provider's failure is still on its way, and the second provider's first answer is, when a worker dies.
    let first = FakeProvider::start(vec![
        Reply::events(&[parsed(CALL)]),
        Reply::Held,
        Reply::Error(403, REFUSED),
    ])
    .await;
    let second = FakeProvider::start(vec![Reply::Held, Reply::events(&[parsed(FOUND)])]).await;
    let system = start(&first, &second).await;
    let (mut one, _) = system.worker("one").await;
    let session = system.publish().await;
    first.asked(2).await;
    one.kill().await;
    let (mut two, _) = system.worker("two").await;
    second.asked(1).await;
    two.kill().await;
    let (_three, _) = system.worker("three").await;
    let mut timeline = system.follow(session).await;
    let end = timeline.finish().await;
    assert_eq!(
        end.event_type,
        EventType::SessionCompleted,
        "{:#?}",
        timeline.seen
    );
    assert_eq!(
        (first.requests().len(), second.requests().len()),
        (3, 2),
        "only unanswered requests are repeated"
    );
    let [taken_over, again] = &*second.requests() else {
        panic!("two requests")
    };
    assert_eq!(
        assert_nothing_foreign(taken_over),
        assert_nothing_foreign(again)
    );
    assert_eq!(fallbacks(&timeline.seen).len(), 1);
    let row = format!("session_id = '{}'", session.0);
    let switches = format!("SELECT count(*) FROM entries WHERE kind = 'switched' AND {row}");
    assert_eq!(system.database.number(&switches), 1);
    system.assert_invariants(session, &timeline.seen).await;
}
