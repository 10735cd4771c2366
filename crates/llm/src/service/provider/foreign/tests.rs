use super::short_text;
use crate::proto::{ConversationMessage, ProviderData, ToolCall};

fn message(provider: &str, format: &str, payload: &str, calls: &[&str]) -> ConversationMessage {
    let data = ProviderData {
        provider: provider.into(),
        format: format.into(),
        payload: payload.into(),
        ..ProviderData::default()
    };
    ConversationMessage {
        tool_calls: calls
            .iter()
            .map(|name| ToolCall {
                name: (*name).into(),
                ..ToolCall::default()
            })
            .collect(),
        provider_data: Some(data),
        ..ConversationMessage::default()
    }
}

fn gemini(payload: &str, calls: &[&str]) -> Option<String> {
    short_text(
        &message("google", "gemini.contents.v1", payload, calls),
        "anthropic",
    )
}

fn notes(lines: &[&str]) -> Option<String> {
    let lines = lines.join("\n");
    Some(format!(
        "[Notes on this answer: work of the model's provider]\n{lines}\n[End of the notes]"
    ))
}

const GEMINI: &str = r#"[{"parts":[
    {"text":"secret thought","thought":true,"thoughtSignature":"SIGNATURE-1"},
    {"toolCall":{"toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["oom killed"]}},"thoughtSignature":"SIGNATURE-2"},
    {"toolResponse":{"toolType":"GOOGLE_SEARCH_WEB","response":{"search_suggestions":"<div/>"}}},
    {"executableCode":{"language":"PYTHON","code":"print(6*7)","id":"1"},"thoughtSignature":"SIGNATURE-3"},
    {"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"42\n","id":"1"}},
    {"text":"the answer"},{"functionCall":{"name":"s__a","args":{}},"thoughtSignature":"SIGNATURE-4"}],"role":"model"},
    {"sources":{"queries":["oom killed","limits"],"found":[{"title":"A [page]\n","url":"https://redirect/1"}],
    "read":[{"url":"https://b","status":"URL_RETRIEVAL_STATUS_PAYWALL"}]}}]"#;

#[test]
fn searches_pages_and_code_of_gemini_become_notes_without_signatures_and_thoughts() {
    let expected = notes(&[
        "Searched the web for: oom killed; limits",
        "Found:",
        "- A (page): https://redirect/1",
        "Read:",
        "- https://b (paywall)",
        "Ran code:",
        "```python",
        "print(6*7)",
        "```",
        "",
        "Output:",
        "```",
        "42",
        "",
        "```",
    ]);
    assert_eq!(gemini(GEMINI, &["s.a"]), expected);
}

#[test]
fn blocks_of_anthropic_become_notes_without_encrypted_results() {
    let payload = r#"[{"type":"thinking","thinking":"bound","signature":"SIGNATURE-1"},
        {"type":"redacted_thinking","data":"ENCRYPTED-1"},{"type":"thinking","thinking":"free"},
        {"type":"server_tool_use","id":"1","name":"web_search","input":{"query":"q"}},
        {"type":"web_search_tool_result","tool_use_id":"1","content":[
            {"type":"web_search_result","url":"https://a","title":"A","encrypted_content":"ENCRYPTED-2"}]},
        {"type":"web_fetch_tool_result","content":{"type":"web_fetch_result","url":"https://c"}},
        {"type":"server_tool_use","id":"2","name":"bash_code_execution","input":{"command":"ls"}},
        {"type":"bash_code_execution_tool_result","tool_use_id":"2","content":{"stdout":"x","stderr":"y","return_code":1}},
        {"type":"text","text":"t","citations":[{"url":"https://a","title":"A","encrypted_index":"ENCRYPTED-3"},
            {"url":"https://b","title":""}]},
        {"type":"tool_use","id":"3","name":"s__a","input":{}}]"#;
    let message = message("anthropic", "anthropic.blocks.v1", payload, &["s.a"]);
    let work = [
        "Searched the web for: q",
        "Found:",
        "- A: https://a",
        "- https://b",
        "Read:",
        "- https://c",
        "Ran code, which failed:",
        "```bash",
        "ls",
        "```",
        "",
        "Output:",
        "```",
        "x",
        "y",
        "```",
    ];
    assert_eq!(
        short_text(&message, "google"),
        notes(&[&work[..], &["Thought:", "> free"]].concat())
    );
    assert_eq!(short_text(&message, "anthropic"), notes(&work));
}

#[test]
fn items_of_openai_become_notes_without_encrypted_reasoning() {
    let payload = r#"[{"type":"reasoning","encrypted_content":"ENCRYPTED-1","summary":[{"text":"bound"}]},
        {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"free"}]},
        {"type":"web_search_call","status":"completed","action":{"type":"search","query":"q","sources":[{"url":"https://a"}]}},
        {"type":"web_search_call","status":"completed","action":{"type":"open_page","url":"https://b"}},
        {"type":"code_interpreter_call","status":"completed","code":"1+1","outputs":[{"type":"logs","logs":"2"}]},
        {"type":"message","content":[{"type":"output_text","text":"t","annotations":[{"url":"https://c","title":"C"}]}]},
        {"type":"function_call","call_id":"1","name":"s__a","arguments":"{}"}]"#;
    let expected = notes(&[
        "Searched the web for: q",
        "Found:",
        "- https://a",
        "- C: https://c",
        "Read:",
        "- https://b (completed)",
        "Ran code:",
        "```python",
        "1+1",
        "```",
        "",
        "Output:",
        "```",
        "2",
        "```",
        "Thought:",
        "> free",
    ]);
    assert_eq!(
        short_text(
            &message("openai", "openai.items.v1", payload, &["s.a"]),
            "google"
        ),
        expected
    );
}

#[test]
fn thoughts_without_a_signature_become_text_only_for_another_provider() {
    let plain = r#"[{"reasoning":"one\ntwo","details":[]}]"#;
    let of = |payload: &str, asked: &str| {
        short_text(
            &message("deepseek", "openai.reasoning.v1", payload, &["s.a"]),
            asked,
        )
    };
    assert_eq!(of(plain, "google"), notes(&["Thought:", "> one", "> two"]));
    assert_eq!(of(plain, "deepseek"), None);
    assert_eq!(
        of(
            r#"[{"reasoning":"one","details":[{"text":"one","signature":"s"}]}]"#,
            "google"
        ),
        None
    );
    let unsigned = r#"[{"parts":[{"text":"hm","thought":true},{"text":"a"}],"role":"model"}]"#;
    assert_eq!(gemini(unsigned, &[]), notes(&["Thought:", "> hm"]));
}

#[test]
fn data_of_another_answer_or_of_an_unknown_format_is_ignored() {
    assert_eq!(gemini(GEMINI, &["s.b"]), None);
    assert_eq!(gemini(GEMINI, &[]), None);
    assert_eq!(gemini("no json", &[]), None);
    assert_eq!(
        gemini(r#"[1,{"parts":7},{"parts":[{"text":null}]}]"#, &[]),
        None
    );
    assert_eq!(
        short_text(
            &message("google", "gemini.contents.v9", GEMINI, &["s.a"]),
            "openai"
        ),
        None
    );
    assert_eq!(short_text(&ConversationMessage::default(), "google"), None);
}

#[test]
fn notes_are_bounded_and_secrets_in_them_are_masked() {
    let pages: Vec<String> = (0..40)
        .map(|n| {
            format!(
                r#"{{"title":"{}","url":"https://h/{n}/{}"}}"#,
                "t".repeat(900),
                "p".repeat(900)
            )
        })
        .collect();
    let run = format!(
        r#"{{"executableCode":{{"code":"{}"}}}},{{"codeExecutionResult":{{"output":"{}"}}}}"#,
        "c".repeat(100_000),
        "é".repeat(100_000)
    );
    let payload = format!(
        r#"[{{"parts":[{run},{run}]}},{{"sources":{{"queries":["q"],"found":[{}]}}}}]"#,
        pages.join(",")
    );
    let text = gemini(&payload, &[]).unwrap();
    assert!(
        text.len() <= 8 * 1024 && text.ends_with("(more was left out)\n[End of the notes]"),
        "{text}"
    );
    let payload = r#"[{"parts":[{"executableCode":{"code":"x"}},
        {"codeExecutionResult":{"output":"password: hunter2hunter2"}}]}]"#;
    let text = gemini(payload, &[]).unwrap();
    assert!(
        text.contains("password: [masked]") && !text.contains("hunter2"),
        "{text}"
    );
}
