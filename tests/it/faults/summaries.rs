//! Summaries of long results on real processes: a worker, the LLM service, and a provider for each of the two models.

use std::sync::Arc;

use diesel::connection::SimpleConnection as _;
use serde_json::{Value, json};
use tarsy_core::timeline::{EventStatus, EventType, TimelineEvent};
use tokio::sync::Notify;

use crate::support::http::provider::{FakeProvider, Received, Reply};
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

const REFUSED: &str =
    r#"{"error":{"code":403,"message":"not allowed","status":"PERMISSION_DENIED"}}"#;
/// At the beginning, in the middle and at the end of the result.
const OF_RESULT: [&str; 3] = [
    "Service Account:  checkout",
    "Reason:       OOMKilled",
    "PodReadyToStartContainers   True",
];
const FOUND: &str = "Cause: the heap is larger than the limit [drill.describe_pod]";

/// An answer with these parts that costs so many tokens.
fn answer(parts: &Value, input: u32, output: u32) -> Reply {
    let usage = json!({"promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output});
    let candidate = json!({"content": {"role": "model", "parts": parts}, "finishReason": "STOP"});
    Reply::events(&[json!({"candidates": [candidate], "usageMetadata": usage})])
}

fn says(text: &str, input: u32, output: u32) -> Reply {
    answer(&json!([{"text": text}]), input, output)
}

fn looks() -> Reply {
    let arguments = json!({"namespace": "checkout", "pod": "checkout-7d9f8b6c5-x2x9p"});
    answer(
        &json!([{"functionCall": {"name": "drill__describe_pod", "args": arguments}}]),
        100,
        10,
    )
}

/// A system whose agent asks `large` and whose results of more than 100 tokens are summarised by `cheap`.
async fn start(large: &FakeProvider, cheap: &FakeProvider, defaults: &str) -> TestSystem {
    let provider = |name: &str, fake: &FakeProvider| {
        format!(
            "  {name}: {{provider: google, model: gemini-2.5-{name}, api_key_env: FAKE_KEY, base_url: '{}'}}\n",
            fake.url()
        )
    };
    let sections = format!(
        "llm_providers:\n{}{}defaults: {{llm_provider: large, summarize_over: 100, summarize_with: cheap{defaults}}}\n",
        provider("large", large),
        provider("cheap", cheap),
    );
    let mut system = TestSystem::start_with(Setup {
        sections: &sections,
        ..Setup::default()
    })
    .await;
    let options = [
        "--allow-key-env",
        "FAKE_KEY",
        "--allow-base-url",
        "http://127.0.0.1:*",
    ];
    system
        .replace_llm_service(&options, &[("FAKE_KEY", "key-of-the-fakes")])
        .await;
    system
}

/// The result in the last request, as the model gets it.
fn shown_result(request: &Received) -> String {
    let parts = request.json();
    let contents = parts["contents"].as_array().unwrap();
    let results: Vec<&Value> = contents
        .iter()
        .flat_map(|content| content["parts"].as_array().unwrap())
        .map(|part| &part["functionResponse"])
        .filter(|result| !result.is_null())
        .collect();
    let [result] = results[..] else {
        panic!("{parts:#}")
    };
    let texts: Vec<&str> = result["response"]
        .as_object()
        .unwrap()
        .values()
        .filter_map(Value::as_str)
        .collect();
    texts.concat()
}

fn summaries(seen: &[TimelineEvent]) -> Vec<&TimelineEvent> {
    seen.iter()
        .filter(|event| event.event_type == EventType::McpToolSummary)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_summary_survives_its_worker_once_it_is_committed_and_is_made_again_before() {
    let gate = Arc::new(Notify::new());
    let large = FakeProvider::start(vec![looks(), Reply::Held, says(FOUND, 200, 20)]).await;
    let lost = says("the first one", 900, 90).behind(&gate);
    let cheap = FakeProvider::start(vec![lost, says("Killed for its memory.", 1_000, 50)]).await;
    let system = start(&large, &cheap, "").await;
    let (mut one, _) = system.worker("one").await;
    let session = system.publish().await;
    cheap.asked(1).await;

    // The summary arrives, but its checkpoint waits for a lock; then the worker and its statement are lost.
    let mut lock = system.database.connection();
    lock.batch_execute("BEGIN; LOCK TABLE entries IN SHARE ROW EXCLUSIVE MODE")
        .unwrap();
    gate.notify_one();
    let waiting = "FROM pg_stat_activity WHERE application_name = 'tarsy worker one' AND wait_event_type = 'Lock' \
                   AND datname = current_database()";
    let is_waiting = format!("SELECT count(*) > 0 {waiting}");
    eventually("the checkpoint of the summary waits", async || {
        system.database.holds(&is_waiting)
    })
    .await;
    one.kill().await;
    system.database.number(&format!(
        "SELECT count(pg_terminate_backend(pid)) {waiting}"
    ));
    eventually("no statement of the worker waits", async || {
        !system.database.holds(&is_waiting)
    })
    .await;
    lock.batch_execute("ROLLBACK").unwrap();

    let (mut two, _) = system.worker("two").await;
    large.asked(2).await;
    assert_eq!(cheap.requests().len(), 2, "a lost summary is made again");
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
        (large.requests().len(), cheap.requests().len()),
        (3, 2),
        "a committed summary is not made again"
    );
    assert_eq!(
        system.tool_calls().into_values().collect::<Vec<_>>(),
        [1],
        "the result was committed before"
    );

    let asked = cheap.requests()[1].json();
    let asked_text = asked["contents"].to_string();
    let asks_for = |text: &str| asked_text.contains(text.trim());
    assert!(
        OF_RESULT.iter().all(|text| asks_for(text)) && asked["tools"].is_null(),
        "{asked:#}"
    );
    assert_eq!(cheap.requests()[0].body, cheap.requests()[1].body);
    let shown = shown_result(&large.requests()[2]);
    assert!(
        shown.contains(
            "[a summary of the result by a model; tarsy__read_result shows the whole result]"
        ),
        "{shown}"
    );
    assert!(
        shown.contains("Killed for its memory.")
            && !OF_RESULT.iter().any(|text| shown.contains(text)),
        "{shown}"
    );

    let [summary] = summaries(&timeline.seen)[..] else {
        panic!("{:#?}", timeline.seen)
    };
    assert_eq!(
        (summary.content.as_str(), &summary.status),
        ("Killed for its memory.", &EventStatus::Completed)
    );
    let facts = &summary.metadata;
    assert_eq!(
        (&facts["provider"], &facts["tokens"]),
        (&json!("cheap"), &json!(1_050))
    );
    // Without the masked password in it.
    assert_eq!(
        (&facts["tool_name"], &facts["bytes"]),
        (&json!("drill.describe_pod"), &json!(2_500))
    );
    let tokens = (
        &end.metadata["input_tokens"],
        &end.metadata["output_tokens"],
    );
    assert_eq!(
        tokens,
        (&json!(100 + 1_000 + 200), &json!(10 + 50 + 20)),
        "{:#}",
        end.metadata
    );
    let stored = "SELECT count(*) FROM llm_interactions WHERE purpose = 'summary' AND model = 'gemini-2.5-cheap'";
    assert_eq!(system.database.number(stored), 1);
    system.assert_invariants(session, &timeline.seen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_makes_no_summary_leaves_the_cut_result() {
    let large = FakeProvider::start(vec![looks(), says(FOUND, 200, 20)]).await;
    let cheap = FakeProvider::start(vec![Reply::Error(403, REFUSED)]).await;
    let system = start(&large, &cheap, ", max_tool_result_tokens: 100").await;
    let (_worker, _) = system.worker("one").await;
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    let end = timeline.finish().await;
    assert_eq!(
        end.event_type,
        EventType::SessionCompleted,
        "{:#?}",
        timeline.seen
    );
    assert_eq!((large.requests().len(), cheap.requests().len()), (2, 1));
    let shown = shown_result(&large.requests()[1]);
    let [first, middle, last] = OF_RESULT.map(|text| shown.contains(text));
    assert!(
        (first || shown.contains("Name: ")) && !middle && !last,
        "{shown}"
    );
    assert!(!shown.contains("a summary of the result"), "{shown}");
    let [summary] = summaries(&timeline.seen)[..] else {
        panic!("{:#?}", timeline.seen)
    };
    assert_eq!(summary.status, EventStatus::Failed);
    assert!(
        summary
            .content
            .starts_with("no summary, the result stays cut: credentials: "),
        "{}",
        summary.content
    );
    assert_eq!(
        (&summary.metadata["tokens"], &end.metadata["input_tokens"]),
        (&json!(0), &json!(300))
    );
    system.assert_invariants(session, &timeline.seen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tokens_of_a_summary_use_up_the_budget() {
    let large = FakeProvider::start(vec![looks(), says(FOUND, 200, 20)]).await;
    let cheap = FakeProvider::start(vec![says("Killed for its memory.", 9_000, 50)]).await;
    let system = start(&large, &cheap, ", max_tokens: 9000").await;
    let (_worker, _) = system.worker("one").await;
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    let end = timeline.finish().await;
    assert_eq!(
        end.event_type,
        EventType::SessionCompleted,
        "{:#?}",
        timeline.seen
    );
    assert!(
        large.requests()[1].json()["tools"].is_null(),
        "the agent has to conclude"
    );
    let reason = format!(
        "SELECT count(*) FROM entries WHERE kind = 'ended' AND body::text LIKE '%\"budget\"%' AND session_id = '{}'",
        session.0
    );
    assert_eq!(system.database.number(&reason), 1);
    assert_eq!(
        end.metadata["input_tokens"],
        json!(100 + 9_000 + 200),
        "{:#}",
        end.metadata
    );
}
