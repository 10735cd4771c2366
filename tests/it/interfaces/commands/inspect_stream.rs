//! `tarsy inspect stream` turns the chunks of an answer into timeline events.

use serde_json::{Value, json};

use super::run_with;

/// The printed events of these chunks.
async fn events(controller: &str, chunks: &[Value]) -> Vec<Value> {
    let lines: String = chunks.iter().map(|chunk| format!("{chunk}\n\n")).collect();
    let ran = run_with(
        &[],
        &["inspect", "stream", "--controller", controller],
        lines.as_bytes(),
    )
    .await
    .exits(0);
    let events = ran.json();
    let numbers: Vec<u64> = events
        .iter()
        .map(|event| event["sequence_number"].as_u64().unwrap())
        .collect();
    assert_eq!(
        numbers,
        (1..=u64::try_from(events.len()).unwrap()).collect::<Vec<_>>()
    );
    events
}

fn types(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["event_type"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn an_answer_becomes_the_events_of_the_agent_loop_in_order() {
    let mut chunks = vec![
        json!({"thinking": {"content": "Let me "}}),
        json!({"code_execution": {"code": "print(6 * 7)", "language": "PYTHON", "id": "c1"}}),
        json!({"text": {"content": "It is 42 — "}}),
        json!({"codeExecution": {"result": "42\n", "outcome": "OUTCOME_OK", "id": "c1"}}),
        json!({"thinking": {"content": "compute."}}),
        json!({"text": {"content": "as known."}}),
        json!({"grounding": {
            "web_search_queries": ["answer to everything"],
            "grounding_chunks": [{"uri": "https://a.example/1", "title": "a.example"}],
            "grounding_supports": [
                {"start_index": "0", "end_index": 9, "text": "as known.", "grounding_chunk_indices": [0, 3]},
            ],
            "search_entry_point_html": "<div>widget</div>",
        }}),
        json!({"usage": {"input_tokens": 30, "output_tokens": 40}}),
        json!({"is_final": true}),
    ];
    for controller in ["native-thinking", "synthesis", "single-call"] {
        let events = events(controller, &chunks).await;
        assert!(
            events.iter().all(|event| event["status"] == "completed"),
            "{events:?}"
        );
        let order = [
            "llm_thinking",
            "code_execution",
            "google_search_result",
            "final_analysis",
        ];
        assert_eq!(types(&events), order);
        assert_eq!(events[0]["content"], "Let me compute.");
        assert_eq!(
            events[1]["content"],
            "```python\nprint(6 * 7)\n```\n\nOutput:\n```\n42\n\n```"
        );
        assert_eq!(
            events[2]["content"],
            "Google Search: 'answer to everything' → Sources: a.example (https://a.example/1)"
        );
        let sources = json!([{"uri": "https://a.example/1", "title": "a.example"}]);
        assert_eq!(
            events[3]["metadata"]["citations"],
            json!([{"start": 13, "end": 22, "text": "as known.", "sources": sources}])
        );
        assert!(!json!(events).to_string().contains("widget"));
    }
    chunks.insert(2, json!({"tool_call": {"call_id": "1", "name": "k8s.get_pods", "arguments": "{\"all\":true}"}}));
    let events = events("native-thinking", &chunks).await;
    let order = [
        "llm_thinking",
        "code_execution",
        "google_search_result",
        "llm_response",
        "llm_tool_call",
    ];
    assert_eq!(types(&events), order);
    assert_eq!(
        (&events[4]["content"], &events[4]["metadata"]["tool_name"]),
        (&json!("{\"all\":true}"), &json!("k8s.get_pods"))
    );
}

#[tokio::test]
async fn native_parts_without_text_become_separate_events() {
    let code = |code: &str| json!({"code_execution": {"code": code}});
    let parts = [
        code("a"),
        code("b"),
        json!({"code_execution": {"result": "r"}}),
        json!({"is_final": true}),
    ];
    let events_seen = events("native-thinking", &parts).await;
    let contents: Vec<&Value> = events_seen.iter().map(|event| &event["content"]).collect();
    assert_eq!(
        contents,
        [
            "```python\na\n```\n",
            "```python\nb\n```\n\nOutput:\n```\nr\n```"
        ]
    );
    assert_eq!(events_seen[0]["metadata"], json!({"source": "gemini"}));
    let page = json!({"grounding": {"grounding_chunks": [{"uri": "https://a.example"}]}});
    let events_seen = events("synthesis", &[page.clone(), page]).await;
    let sources = json!([{"uri": "https://a.example", "title": ""}]);
    assert_eq!(
        events_seen,
        [json!({
            "event_type": "url_context_result", "status": "completed", "content": "URL Context → Sources: https://a.example",
            "metadata": {"source": "gemini", "sources": sources}, "sequence_number": 1,
        })]
    );
    assert_eq!(events("native-thinking", &[]).await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_react_answer_is_parsed_and_its_native_parts_cause_no_events() {
    let native = json!({"code_execution": {"code": "x", "result": "1"}});
    let text = "Thought: look\nAction: k8s.get_pods\nAction Input: {\"namespace\": \"shop\"}";
    let events_seen = events(
        "react",
        &[native.clone(), json!({"text": {"content": text}})],
    )
    .await;
    assert_eq!(types(&events_seen), ["llm_thinking", "llm_tool_call"]);
    assert_eq!(events_seen[1]["metadata"]["tool_name"], "k8s.get_pods");
    let events_seen = events(
        "react",
        &[native, json!({"text": {"content": "Final Answer: done"}})],
    )
    .await;
    assert_eq!(types(&events_seen), ["final_analysis"]);
}

#[tokio::test]
async fn an_error_chunk_is_an_error_event_and_an_invalid_line_is_reported() {
    let busy = json!({"error": {"message": "busy", "code": "max_retries", "retryable": true, "retry_after": "2.5s"}});
    let events_seen = events(
        "native-thinking",
        &[json!({"text": {"content": "half"}}), busy],
    )
    .await;
    assert_eq!(types(&events_seen), ["error"]);
    assert_eq!(
        (
            &events_seen[0]["content"],
            &events_seen[0]["metadata"]["kind"]
        ),
        (&json!("busy"), &json!("model"))
    );

    let wrong = b"{\"text\":{\"content\":\"a\"}}\n\n{\"txt\":{}}\n";
    let ran = run_with(&[], &["inspect", "stream", "--controller", "react"], wrong)
        .await
        .exits(1);
    let start =
        "tarsy: standard input: line 3: not a GenerateResponse: unrecognized field name 'txt'";
    assert!(ran.out.is_empty() && ran.err.starts_with(start), "{ran:#?}");
    run_with(&[], &["inspect", "stream"], b"").await.exits(2);
    run_with(
        &[],
        &[
            "inspect",
            "stream",
            "--controller",
            "synthesis",
            "/no/such/file",
        ],
        b"",
    )
    .await
    .exits(1);
}
