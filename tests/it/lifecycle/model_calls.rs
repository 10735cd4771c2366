//! The rows of model calls: each call is stored, whether it succeeded or failed.

mod rebuilt;

use serde_json::{Value, json};
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use uuid::Uuid;

use crate::support::system::{Setup, TestSystem};

const MARK: &str = "InteractionDrill";
const LOOK: &str = "{call: {tool: drill.describe_pod, arguments: {namespace: checkout, pod: checkout-7d9f8b6c5-x2x9p}}}";

/// An empty answer, one failed call, the same tool call four times, and a conclusion that is empty at first.
fn transcript() -> String {
    let usage = "usage: {input: 10, cached: 4, output: 3, thinking: 2}";
    format!(
        "name: calls\nmatch: {MARK}\nprovider_state: true\nanswers:\n  \
         - {{chunks: [], {usage}}}\n  \
         - {{chunks: [{{thinking: hm}}, {{text: löök}}, {LOOK}], {usage}, fail: {{code: max_retries, message: busy, times: 1}}}}\n  \
         - {{chunks: [{LOOK}], {usage}}}\n  \
         - {{chunks: [{LOOK}], {usage}}}\n  \
         - {{chunks: [{LOOK}], {usage}}}\n  \
         - {{chunks: [], {usage}}}\n  \
         - {{chunks: [{{text: \"Cause: a drill.\"}}], {usage}}}\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_model_call_is_stored_with_its_tokens_and_its_place_in_the_journal() {
    let system = TestSystem::start_with(Setup {
        transcript: Some(transcript()),
        ..Setup::default()
    })
    .await;
    let (_worker, _) = system.worker("w1").await;
    let session = SessionId(Uuid::now_v7());
    let headers = json!({SESSION_ID: session.to_string()});
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: None,
        body: MARK.into(),
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    let mut timeline = system.follow(session).await;
    timeline.finish().await;
    let end = timeline.seen.last().unwrap();
    assert_eq!(
        (&end.event_type, &end.metadata["stop_reason"]),
        (&EventType::SessionCompleted, &json!("repeated_calls"))
    );

    let report = system
        .database
        .store()
        .report(session)
        .await
        .unwrap()
        .unwrap()
        .session
        .unwrap();
    let stored: Vec<Value> = report
        .model_calls
        .iter()
        .map(|call| {
            let usage = call
                .usage
                .map(|usage| [usage.input, usage.cached, usage.output, usage.thinking]);
            json!([
                call.iteration,
                call.purpose,
                call.entries_upto,
                usage,
                call.response,
                call.error
            ])
        })
        .collect();
    let cost = [10, 4, 3, 2];
    let response = |text_length: usize, thinking: &str, calls: u32, finish: &str| {
        json!({
            "text_length": text_length, "thinking": thinking, "tool_calls_count": calls, "code_executions": [],
            "groundings_count": 0, "finish_reason": finish,
        })
    };
    let failed = json!({"code": "max_retries", "retryable": false, "provider_status": "", "retry_after_ms": null});
    let one_call = response(0, "", 1, "tool_calls");
    let expected = [
        json!([1, "iteration", 2, cost, response(0, "", 0, "stop"), null]),
        json!([2, "iteration", 4, null, failed, "max_retries: busy"]),
        json!([
            3,
            "iteration",
            6,
            cost,
            response(6, "hm", 1, "tool_calls"),
            null
        ]),
        json!([4, "iteration", 8, cost, one_call, null]),
        json!([5, "iteration", 10, cost, one_call, null]),
        json!([6, "iteration", 13, cost, one_call, null]),
        json!([
            7,
            "forced_conclusion",
            17,
            cost,
            response(0, "", 0, "stop"),
            null
        ]),
        json!([
            8,
            "forced_conclusion",
            19,
            cost,
            response(15, "", 0, "stop"),
            null
        ]),
    ];
    assert_eq!(stored, expected);
    assert_eq!(report.tool_calls.len(), 3, "the fourth call was not sent");

    let kinds = "SELECT string_agg(kind, ' ' ORDER BY entry_no) FROM entries";
    assert_eq!(
        system.database.text(kinds),
        "prompt prompt answer feedback failed feedback answer tool_result answer tool_result answer tool_result feedback \
         answer tool_result concluding feedback answer feedback answer ended"
    );
    let (code, shown) = system
        .tarsy(
            "show",
            &["sessions", "show", &session.to_string(), "--json"],
        )
        .finished()
        .await;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (code, &shown["session"]["model_calls"]),
        (0, &json!(report.model_calls))
    );
}

/// Two agents, one of which writes its calls as text; each has a program and sources in its first answer.
const TEAM: &str = "
agents: {native: {}, writer: {iteration_strategy: react}}
agent_chains: {team: {stages: [{name: look, agents: [{name: native}, {name: writer}]}]}}
";
const PARTS: &str = "{code: {code: print(6 * 7), id: c1}}, {code_result: {result: '42', outcome: OUTCOME_OK, id: c1}}";
const SOURCES: &str = "{grounding: {queries: [q], sources: [{uri: 'https://a.example', title: a}], supports: [{text: It is 42., sources: [0]}]}}";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn native_parts_of_an_answer_are_stored_with_its_call_in_every_strategy() {
    let transcript = |agent: &str, answers: &str| {
        format!(
            "name: team\nmatch: {MARK}\nagent: {agent}\nprovider_state: true\nanswers:\n{answers}"
        )
    };
    let transcripts = [
        transcript(
            "native",
            &format!(
                "  - chunks: [{PARTS}, {{text: It is 42.}}, {SOURCES}, {LOOK}]\n  - chunks: [{{text: 'Cause: a'}}]\n"
            ),
        ),
        transcript(
            "writer",
            &format!(
                "  - chunks: [{PARTS}, {{text: \"Thought: It is 42.\\nFinal Answer: Cause: b\"}}, {SOURCES}]\n"
            ),
        ),
        transcript("synthesis", "  - chunks: [{text: 'Cause: a and b'}]\n"),
    ];
    let transcripts = transcripts.each_ref().map(String::as_str);
    let system = TestSystem::start_with(Setup {
        sections: TEAM,
        transcripts: &transcripts,
        ..Setup::default()
    })
    .await;
    let (_worker, _) = system.worker("w1").await;
    let session = SessionId(Uuid::now_v7());
    let headers = json!({SESSION_ID: session.to_string()});
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: None,
        body: MARK.into(),
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    let mut timeline = system.follow(session).await;
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );

    let report = system
        .database
        .store()
        .report(session)
        .await
        .unwrap()
        .unwrap()
        .session
        .unwrap();
    let code = json!([{"code": "print(6 * 7)", "result": ""}, {"code": "", "result": "42"}]);
    for agent in ["native", "writer"] {
        let first = report
            .model_calls
            .iter()
            .find(|call| call.agent == agent)
            .unwrap();
        let response = first.response.as_ref().unwrap();
        assert_eq!(
            (&response["code_executions"], &response["groundings_count"]),
            (&code, &json!(1)),
            "{agent}"
        );
    }
    let of = |agent: &str, event_type: EventType| {
        let mut events = timeline
            .seen
            .iter()
            .filter(|event| event.agent.as_deref() == Some(agent));
        events.find(|event| event.event_type == event_type)
    };
    let text = of("native", EventType::LlmResponse).unwrap();
    assert_eq!(
        text.metadata["citations"][0]["text"], "It is 42.",
        "text beside a call cites its sources"
    );
    assert!(of("native", EventType::CodeExecution).is_some());
    assert_eq!(
        of("writer", EventType::CodeExecution),
        None,
        "a react model has no native tools"
    );
}
