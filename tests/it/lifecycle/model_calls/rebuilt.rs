//! Tests of rebuilt requests on real processes: each request that is made again from the store is the one that the
//! LLM service has received.

use std::collections::BTreeMap;
use std::time::Duration;

use prost::Message as _;
use serde_json::{Value, json};
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use tarsy_engine::ports::ModelRequest;
use tarsy_llm::client::wire;
use tarsy_llm::proto::GenerateRequest;
use tarsy_reports::calls::{CallNumber, Rebuilt, RebuiltCall};
use uuid::Uuid;

use crate::support::grpc_recorder::GrpcRecorder;
use crate::support::http::provider::{FakeProvider, Reply};
use crate::support::process::Tarsy;
use crate::support::system::{Setup, TestSystem};

const TOO_LONG: &str = r#"{"error":{"code":400,"message":"The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#;
const REFUSED: &str =
    r#"{"error":{"code":403,"message":"not allowed","status":"PERMISSION_DENIED"}}"#;
const MARK: &str = "RebuiltDrill";
const LOOK: &str =
    "{tool: drill.describe_pod, arguments: {namespace: checkout, pod: checkout-7d9f8b6c5-x2x9p}}";
const TEAM: &str = "
agents: {native: {}, writer: {iteration_strategy: react}}
agent_chains:
  team:
    default: true
    stages: [{name: look, agents: [{name: native}, {name: writer}]}, {name: again, agents: [{name: native}]}]
";

/// A worker whose requests to the LLM service are recorded.
async fn worker(system: &TestSystem, recorder: &GrpcRecorder, name: &str) -> Tarsy {
    let environment = system.env(system.database.url());
    let mut environment = environment.each().to_vec();
    environment.push(("TARSY_LLM_ADDR", recorder.address()));
    let mut worker = Tarsy::spawn(name, &["worker", "--name", name], &environment);
    worker.ready().await;
    worker
}

async fn publish(system: &TestSystem) -> SessionId {
    let session = SessionId(Uuid::now_v7());
    let headers = json!({SESSION_ID: session.to_string()});
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: None,
        body: MARK.into(),
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    session
}

/// The calls of a session with their requests, as the commands and the pages read them.
async fn calls(system: &TestSystem, session: SessionId) -> Vec<RebuiltCall> {
    let store = system.database.store();
    let listed = store.model_calls(session).await.unwrap().unwrap();
    let mut calls = Vec::new();
    for number in 1..=u32::try_from(listed.len()).unwrap() {
        calls.push(
            store
                .model_call(session, CallNumber::Number(number))
                .await
                .unwrap()
                .unwrap(),
        );
    }
    let last = store.model_call(session, CallNumber::Last).await.unwrap();
    assert_eq!(last.as_ref(), calls.last());
    assert_eq!(
        store
            .model_call(session, CallNumber::Number(99))
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        calls
            .iter()
            .map(|call| call.call.clone())
            .collect::<Vec<_>>(),
        listed
    );
    calls
}

fn rebuilt(call: &RebuiltCall) -> &Rebuilt {
    call.rebuilt
        .as_ref()
        .unwrap_or_else(|reason| panic!("{reason}: {:?}", call.call))
}

/// Asserts that each stored call is the last message that the service got under its id, and that it got no other one.
async fn assert_rebuilt(
    system: &TestSystem,
    session: SessionId,
    recorder: &GrpcRecorder,
) -> Vec<RebuiltCall> {
    let mut last: BTreeMap<String, GenerateRequest> = BTreeMap::new();
    let received = recorder
        .messages()
        .into_iter()
        .filter_map(|bytes| GenerateRequest::decode(&bytes[..]).ok());
    // A request of the health check has none of these fields.
    for request in received.filter(|request| !request.request_id.is_empty()) {
        last.insert(request.request_id.clone(), request);
    }
    let calls = calls(system, session).await;
    for call in &calls {
        let body = rebuilt(call).request.clone();
        let request = wire(&ModelRequest::new(
            session,
            call.call.call.execution_id,
            body,
            Duration::ZERO,
        ));
        let sent = last.remove(&request.request_id);
        assert_eq!(sent.as_ref(), Some(&request), "{:?}", call.call);
        assert_eq!(
            sent.map(|sent| sent.encoded_len()),
            Some(request.encoded_len())
        );
    }
    assert!(
        last.is_empty(),
        "each request has its row: {:?}",
        last.keys()
    );
    calls
}

fn recording(agent: &str, answers: &str) -> String {
    format!("name: team\nmatch: {MARK}\nagent: {agent}\nprovider_state: true\nanswers:\n{answers}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rebuilt_request_is_the_one_that_the_llm_service_has_received() {
    let written = "Thought: look\\nAction: drill.describe_pod\\nAction Input: {\\\"namespace\\\": \\\"checkout\\\", \
                   \\\"pod\\\": \\\"checkout-7d9f8b6c5-x2x9p\\\"}";
    let fails = "fail: {code: max_retries, message: busy, times: 1}";
    let recordings = [
        recording(
            "native",
            &format!(
                "  - {{chunks: [{{thinking: hm}}, {{text: löök}}, {{call: {LOOK}}}]}}\n  \
                   - {{chunks: [{{text: 'Cause: a'}}], {fails}}}\n"
            ),
        ),
        recording(
            "writer",
            &format!(
                "  - chunks: [{{text: \"{written}\"}}]\n  - chunks: [{{text: \"Thought: enough\\nFinal Answer: Cause: b\"}}]\n"
            ),
        ),
        recording("synthesis", "  - chunks: [{text: 'Cause: a and b'}]\n"),
    ];
    let transcripts = recordings.each_ref().map(String::as_str);
    let setup = Setup {
        watched: &["tool-describe_pod-end"],
        sections: TEAM,
        transcripts: &transcripts,
        ..Setup::default()
    };
    let mut system = TestSystem::start_with(setup).await;
    let recorder = GrpcRecorder::before(system.llm_addr()).await;
    let mut one = worker(&system, &recorder, "one").await;
    let session = publish(&system).await;
    let held = system.gates.next().await;
    one.kill().await;
    system.gates.open_all();
    drop(held);
    let _two = worker(&system, &recorder, "two").await;
    let mut timeline = system.follow(session).await;
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted,
        "{:#?}",
        timeline.seen
    );

    let calls = assert_rebuilt(&system, session, &recorder).await;
    let has = |wanted: fn(&RebuiltCall) -> bool| calls.iter().any(wanted);
    assert!(has(|call| call.call.call.error.is_some()), "a failed call");
    assert!(
        has(|call| call.call.call.purpose == "synthesis"),
        "a synthesis"
    );
    let own = |call: &RebuiltCall| {
        rebuilt(call)
            .request
            .messages
            .iter()
            .any(|message| message.provider_data.is_some())
    };
    assert!(has(own), "an answer in the form of its provider");
    assert!(
        has(|call| !rebuilt(call).request.tools.is_empty())
            && has(|call| rebuilt(call).request.tools.is_empty())
    );
    assert_shown(&system, session, &calls).await;
}

/// The commands show the same.
async fn assert_shown(system: &TestSystem, session: SessionId, calls: &[RebuiltCall]) {
    let id = session.to_string();
    let (code, list) = system
        .tarsy("prompts", &["sessions", "show", &id, "--prompts", "--json"])
        .finished()
        .await;
    let listed: Vec<Value> = list
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected: Vec<Value> = calls.iter().map(|call| json!(call.call)).collect();
    assert_eq!((code, listed), (0, expected));
    let (code, shown) = system
        .tarsy(
            "prompt",
            &["sessions", "show", &id, "--prompt", "last", "--json"],
        )
        .finished()
        .await;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let last = calls.last().unwrap();
    let request = &rebuilt(last).request;
    assert_eq!(
        (code, &shown["number"], &shown["calls"]),
        (0, &json!(calls.len()), &json!(calls.len()))
    );
    let contents: Vec<&Value> = shown["request"]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["content"])
        .collect();
    assert_eq!(
        contents,
        request
            .messages
            .iter()
            .map(|message| &*message.content)
            .collect::<Vec<_>>()
    );
    let native = calls
        .iter()
        .find(|call| !rebuilt(call).request.tools.is_empty())
        .unwrap()
        .call
        .number
        .to_string();
    let (code, text) = system
        .tarsy("text", &["sessions", "show", &id, "--prompt", &native])
        .finished()
        .await;
    assert!(
        code == 0
            && text.contains("1 system\n    ")
            && text.contains("may call drill.describe_pod"),
        "{text}"
    );
    let (code, _) = system
        .tarsy("none", &["sessions", "show", &id, "--prompt", "99"])
        .finished()
        .await;
    assert_eq!(code, 1);
}

/// An answer of Gemini with these parts.
fn answer(parts: &Value) -> Reply {
    let usage =
        json!({"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110});
    let candidate = json!({"content": {"role": "model", "parts": parts}, "finishReason": "STOP"});
    Reply::events(&[json!({"candidates": [candidate], "usageMetadata": usage})])
}

fn looks(pod: &str) -> Reply {
    let call =
        json!({"name": "drill__describe_pod", "args": {"namespace": "checkout", "pod": pod}});
    answer(&json!([{"functionCall": call, "thoughtSignature": "c2lnbmF0dXJlLW9mLWdlbWluaQ=="}]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuilt_request_is_the_sent_one_after_a_summary_a_blanked_result_and_a_switch() {
    let (first, other) = (looks("checkout-7d9f8b6c5-x2x9p"), looks("checkout-8e0a"));
    let replies = vec![
        first,
        other,
        Reply::Error(400, TOO_LONG),
        Reply::Error(403, REFUSED),
    ];
    let large = FakeProvider::start(replies).await;
    let second = FakeProvider::start(vec![
        answer(
            &json!([{"text": "Cause: the heap is too large"}])
        );
        3
    ])
    .await;
    let cheap = FakeProvider::start(vec![
        answer(
            &json!([{"text": "Killed for its memory. ".repeat(400)}])
        );
        3
    ])
    .await;
    let provider = |name: &str, fake: &FakeProvider, more: &str| {
        let url = fake.url();
        format!(
            "  {name}: {{provider: google, model: gemini-2.5-{name}, api_key_env: FAKE_KEY, base_url: '{url}'{more}}}\n"
        )
    };
    let sections = format!(
        "llm_providers:\n{}{}{}defaults: {{llm_provider: large, fallback_providers: [second], summarize_over: 100, summarize_with: cheap}}\n",
        provider("large", &large, ""),
        provider("second", &second, ", max_output_tokens: 512"),
        provider("cheap", &cheap, ""),
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
    let recorder = GrpcRecorder::before(system.llm_addr()).await;
    let _worker = worker(&system, &recorder, "one").await;
    let session = publish(&system).await;
    let mut timeline = system.follow(session).await;
    timeline.finish().await;

    let calls = assert_rebuilt(&system, session, &recorder).await;
    let purposes: Vec<&str> = calls
        .iter()
        .map(|call| call.call.call.purpose.as_str())
        .collect();
    assert!(purposes.contains(&"summary"), "{purposes:?}");
    let summary = calls
        .iter()
        .find(|call| call.call.call.purpose == "summary")
        .unwrap();
    assert!(
        rebuilt(summary)
            .summary
            .as_ref()
            .unwrap()
            .content
            .starts_with("Killed for its memory.")
    );
    let switched = calls
        .iter()
        .find(|call| rebuilt(call).request.clear_cache)
        .unwrap();
    assert_eq!(
        (
            switched.call.call.provider.as_str(),
            rebuilt(switched).request.provider.max_output_tokens
        ),
        ("second", Some(512))
    );
    let is_blanked =
        |call: &&RebuiltCall| format!("{:?}", rebuilt(call).sources).contains("Blanked");
    assert!(
        calls.iter().any(|call| is_blanked(&call)),
        "{purposes:?} {:#?}",
        timeline.seen
    );

    // Without the stored result the request for its summary cannot be made again, and says so.
    system
        .database
        .execute("UPDATE tool_interactions SET result = NULL");
    let number = CallNumber::Number(summary.call.number);
    let lost = system
        .database
        .store()
        .model_call(session, number)
        .await
        .unwrap()
        .unwrap()
        .rebuilt;
    assert!(
        lost.as_ref()
            .is_err_and(|reason| reason.ends_with("is not stored")),
        "{lost:?}"
    );
}
