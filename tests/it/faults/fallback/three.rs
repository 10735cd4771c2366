//! Tests of one session over three providers: no provider receives data of another one.

use serde_json::{Value, json};
use tarsy_core::timeline::EventType;

use super::fallbacks;
use crate::support::http;
use crate::support::http::provider::{FakeProvider, Received, Reply};
use crate::support::system::{Setup, TestSystem};

/// Gemini's private data, with an id that no other provider accepts.
const OF_GEMINI: [&str; 3] = [
    "c2lnbmF0dXJlLW9mLWdlbWluaQ==",
    "gemini thinks",
    "gemini.call:1",
];
/// Claude's private data.
const OF_CLAUDE: [&str; 2] = ["c2lnbmF0dXJlLW9mLWNsYXVkZQ==", "claude thinks"];
const KEYS: [(&str, &str); 3] = [
    ("GEMINI_FAKE_KEY", "key-of-gemini"),
    ("CLAUDE_FAKE_KEY", "key-of-claude"),
    ("GPT_FAKE_KEY", "key-of-gpt"),
];

/// A thought with a call of a tool.
fn gemini() -> Reply {
    let [signature, thought, id] = OF_GEMINI;
    let arguments = json!({"namespace": "checkout", "pod": "checkout-7d9f"});
    let call = json!({"id": id, "name": "drill__describe_pod", "args": arguments});
    let parts = json!([{"text": thought, "thought": true}, {"functionCall": call, "thoughtSignature": signature}]);
    let usage =
        json!({"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110});
    let candidate = json!({"content": {"role": "model", "parts": parts}, "finishReason": "STOP"});
    Reply::events(&[json!({"candidates": [candidate], "usageMetadata": usage})])
}

/// The same.
fn claude() -> Reply {
    let [signature, thought] = OF_CLAUDE;
    let usage = json!({"input_tokens": 200, "output_tokens": 1});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [], "stop_reason": null, "usage": usage});
    let start = |index: u32, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u32, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u32| json!({"type": "content_block_stop", "index": index});
    let arguments = json!({"namespace": "checkout", "pod": "checkout-8e0a"}).to_string();
    Reply::typed(&[
        json!({"type": "message_start", "message": message}),
        start(
            0,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        delta(0, json!({"type": "thinking_delta", "thinking": thought})),
        delta(
            0,
            json!({"type": "signature_delta", "signature": signature}),
        ),
        stop(0),
        start(
            1,
            json!({"type": "tool_use", "id": "toolu_1", "name": "drill__describe_pod", "input": {}}),
        ),
        delta(
            1,
            json!({"type": "input_json_delta", "partial_json": arguments}),
        ),
        stop(1),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
            "usage": {"output_tokens": 20}}),
        json!({"type": "message_stop"}),
    ])
}

/// The final answer.
fn gpt() -> Reply {
    let text = "Cause: the heap is larger than the limit [drill.describe_pod]";
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    let item = json!({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content});
    let response = |status: &str, output: Value, usage: Value| {
        json!({"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5.1", "output": output,
            "status": status, "error": null, "incomplete_details": null, "usage": usage})
    };
    let usage = json!({"input_tokens": 300, "output_tokens": 30, "total_tokens": 330});
    Reply::typed(&[
        json!({"type": "response.created", "response": response("in_progress", json!([]), Value::Null)}),
        json!({"type": "response.output_item.added", "output_index": 0, "item":
            {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}}),
        json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0,
            "delta": text}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response("completed", json!([item]), usage)}),
    ])
}

async fn start(fakes: [&FakeProvider; 3]) -> TestSystem {
    let models = [
        ("gemini", "google", "gemini-3-flash-preview"),
        ("claude", "anthropic", "claude-sonnet-4-5"),
        ("gpt", "openai", "gpt-5.1"),
    ];
    let providers = models.iter().zip(fakes).zip(KEYS).map(|(((name, provider, model), fake), (key, _))| {
        let url = fake.url();
        format!("  {name}: {{provider: {provider}, model: {model}, api_key_env: {key}, base_url: '{url}'}}\n")
    });
    let providers: String = providers.collect();
    let defaults = "defaults: {llm_provider: gemini, fallback_providers: [claude, gpt]}\n";
    let sections = format!("llm_providers:\n{providers}{defaults}");
    let mut system = TestSystem::start_with(Setup {
        sections: &sections,
        ..Setup::default()
    })
    .await;
    let options = [
        "--allow-key-env",
        "*_FAKE_KEY",
        "--allow-base-url",
        "http://127.0.0.1:*",
    ];
    system.replace_llm_service(&options, &KEYS).await;
    system
}

fn assert_without(request: &Received, foreign: &[&str]) {
    let everything = format!("{}{}", request.head, request.body);
    let found: Vec<_> = foreign
        .iter()
        .filter(|text| everything.contains(**text))
        .collect();
    assert!(found.is_empty(), "{found:?}: {everything}");
}

/// Every value of the key, at any depth, in order.
fn values<'a>(json: &'a Value, key: &str) -> Vec<&'a Value> {
    match json {
        Value::Object(fields) => {
            let each = fields.iter().flat_map(|(name, value)| {
                let own = (name == key).then_some(value);
                own.into_iter().chain(values(value, key))
            });
            each.collect()
        }
        Value::Array(items) => items.iter().flat_map(|item| values(item, key)).collect(),
        _scalar => Vec::new(),
    }
}

/// The ids of calls, each a word that Anthropic and OpenAI accept.
fn ids(json: &Value, key: &str) -> Vec<String> {
    let ids: Vec<String> = values(json, key)
        .iter()
        .map(|id| id.as_str().unwrap().to_owned())
        .collect();
    let is_word = |id: &String| {
        (1..=64).contains(&id.len())
            && id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    assert!(ids.iter().all(is_word), "{ids:?}");
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_from_google_to_anthropic_to_openai_and_none_sees_foreign_data() {
    let overloaded = r#"{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}"#;
    let refused =
        r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
    let google = [vec![gemini()], vec![Reply::Error(503, overloaded); 3]].concat();
    let google = FakeProvider::start(google).await;
    let anthropic = FakeProvider::start(vec![claude(), Reply::Error(401, refused)]).await;
    let openai = FakeProvider::start(vec![gpt()]).await;
    let system = start([&google, &anthropic, &openai]).await;
    let (mut worker, metrics) = system.worker("one").await;
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    let end = timeline.finish().await;
    assert_eq!(
        end.event_type,
        EventType::SessionCompleted,
        "{:#?}",
        timeline.seen
    );

    let shown: Vec<Value> = fallbacks(&timeline.seen)
        .iter()
        .map(|f| json!([f["from"], f["to"], f["code"]]))
        .collect();
    assert_eq!(
        shown,
        [
            json!(["gemini", "claude", "unavailable"]),
            json!(["claude", "gpt", "credentials"])
        ]
    );
    let analysis = timeline
        .seen
        .iter()
        .find(|event| event.event_type == EventType::FinalAnalysis)
        .unwrap();
    assert_eq!(
        analysis.content,
        "Cause: the heap is larger than the limit [drill.describe_pod]"
    );

    let (of_google, of_anthropic, of_openai) =
        (google.requests(), anthropic.requests(), openai.requests());
    assert_eq!(
        (of_google.len(), of_anthropic.len(), of_openai.len()),
        (4, 2, 1)
    );
    for request in &of_google[1..] {
        assert!(
            request.body.contains(OF_GEMINI[0]),
            "its own signature goes back: {}",
            request.body
        );
    }
    for request in &of_anthropic {
        assert_without(
            request,
            &[
                &OF_GEMINI[..],
                &["thoughtSignature", "functionCall", KEYS[0].1, KEYS[2].1],
            ]
            .concat(),
        );
        let messages = &request.json()["messages"];
        assert_eq!(
            values(messages, "name")[0],
            "drill__describe_pod",
            "{messages:#}"
        );
        let asked: Vec<String> = messages
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|message| {
                let blocks = message["content"].as_array().cloned().unwrap_or_default();
                blocks
                    .into_iter()
                    .filter(|block| block["type"] == "tool_use")
                    .map(|block| block["id"].as_str().unwrap().to_owned())
            })
            .collect();
        assert_eq!(
            asked,
            ids(messages, "tool_use_id"),
            "every call has its result: {messages:#}"
        );
    }
    for own in ["toolu_1", OF_CLAUDE[0], OF_CLAUDE[1]] {
        assert!(
            of_anthropic[1].body.contains(own),
            "its own answer goes back: {}",
            of_anthropic[1].body
        );
    }
    let request = &of_openai[0];
    let blocks = [
        "thoughtSignature",
        "functionCall\"",
        "tool_use",
        "redacted_thinking",
        KEYS[0].1,
        KEYS[1].1,
    ];
    assert_without(
        request,
        &[&OF_GEMINI[..], &OF_CLAUDE[..], &blocks[..]].concat(),
    );
    let called = ids(&request.json()["input"], "call_id");
    assert_eq!(
        called.len(),
        4,
        "two calls with their results: {}",
        request.body
    );
    assert_eq!((&called[0], &called[2]), (&called[1], &called[3]));

    let row = format!("session_id = '{}'", session.0);
    for (provider, calls, tokens) in [("gemini", 2, 100), ("claude", 2, 200), ("gpt", 1, 300)] {
        let of_provider = format!("FROM llm_interactions WHERE provider = '{provider}' AND {row}");
        assert_eq!(
            system
                .database
                .number(&format!("SELECT count(*) {of_provider}")),
            calls,
            "{provider}"
        );
        assert_eq!(
            system
                .database
                .number(&format!("SELECT sum(input_tokens)::bigint {of_provider}")),
            tokens,
            "{provider}"
        );
    }
    let metrics = http::get(&metrics, "/metrics").await.body;
    for line in [
        r#"tarsy_provider_fallbacks_total{provider="gemini",code="unavailable"} 1"#,
        r#"tarsy_provider_fallbacks_total{provider="claude",code="credentials"} 1"#,
        r#"tarsy_model_retries_total{provider="gemini"} 2"#,
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    worker
        .logged("the LLM service asks the provider again")
        .await;
    system.assert_invariants(session, &timeline.seen).await;
    worker.terminate();
    worker.ended().await;
    let log = worker.log();
    assert!(
        KEYS.iter().all(|(_, key)| !log.contains(key)) && !system.llm.log().contains("key-of-"),
        "{log}"
    );
}
