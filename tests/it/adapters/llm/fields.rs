//! The field numbers of the protocol against those of the existing service.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Every field of the existing service.
const EXISTING: [(&str, &[(i32, &str)]); 14] = [
    (
        "GenerateRequest",
        &[
            (1, "session_id"),
            (2, "messages"),
            (3, "llm_config"),
            (4, "tools"),
            (5, "execution_id"),
            (6, "clear_cache"),
        ],
    ),
    (
        "GenerateResponse",
        &[
            (1, "text"),
            (2, "thinking"),
            (3, "tool_call"),
            (4, "usage"),
            (5, "error"),
            (6, "code_execution"),
            (7, "grounding"),
            (10, "is_final"),
        ],
    ),
    (
        "ConversationMessage",
        &[
            (1, "role"),
            (2, "content"),
            (3, "tool_calls"),
            (4, "tool_call_id"),
            (5, "tool_name"),
        ],
    ),
    (
        "ToolDefinition",
        &[(1, "name"), (2, "description"), (3, "parameters_schema")],
    ),
    ("ToolCall", &[(1, "id"), (2, "name"), (3, "arguments")]),
    ("TextDelta", &[(1, "content")]),
    ("ThinkingDelta", &[(1, "content")]),
    (
        "ToolCallDelta",
        &[(1, "call_id"), (2, "name"), (3, "arguments")],
    ),
    ("CodeExecutionDelta", &[(1, "code"), (2, "result")]),
    (
        "GroundingDelta",
        &[
            (1, "web_search_queries"),
            (2, "grounding_chunks"),
            (3, "grounding_supports"),
            (4, "search_entry_point_html"),
        ],
    ),
    ("GroundingChunkInfo", &[(1, "uri"), (2, "title")]),
    (
        "GroundingSupport",
        &[
            (1, "start_index"),
            (2, "end_index"),
            (3, "text"),
            (4, "grounding_chunk_indices"),
        ],
    ),
    (
        "UsageInfo",
        &[
            (1, "input_tokens"),
            (2, "output_tokens"),
            (3, "total_tokens"),
            (4, "thinking_tokens"),
            (5, "cache_read_tokens"),
            (6, "cache_creation_tokens"),
        ],
    ),
    (
        "ErrorInfo",
        &[(1, "message"), (2, "code"), (3, "retryable")],
    ),
];

const EXISTING_CONFIG: [(i32, &str); 9] = [
    (1, "provider"),
    (2, "model"),
    (3, "api_key_env"),
    (4, "credentials_env"),
    (5, "base_url"),
    (7, "native_tools"),
    (8, "project"),
    (9, "location"),
    (10, "backend"),
];

/// Lower numbers belong to the existing service.
const MIN_ADDED_NUMBER: i32 = 20;

#[test]
fn the_protocol_keeps_all_field_numbers_of_the_existing_service() {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let files = protox::compile(["llm/v1/llm_service.proto"], [proto]).unwrap();
    let file = files
        .file
        .iter()
        .find(|file| file.package() == "llm.v1")
        .unwrap();
    let ours: BTreeMap<&str, BTreeSet<(i32, &str)>> = file
        .message_type
        .iter()
        .map(|message| {
            (
                message.name(),
                message
                    .field
                    .iter()
                    .map(|field| (field.number(), field.name()))
                    .collect(),
            )
        })
        .collect();
    let existing = EXISTING
        .into_iter()
        .chain([("LLMConfig", EXISTING_CONFIG.as_slice())]);
    for (message, fields) in existing {
        let kept: Vec<_> = ours[message]
            .iter()
            .copied()
            .filter(|(number, _)| *number < MIN_ADDED_NUMBER)
            .collect();
        assert_eq!(kept, fields, "{message}");
    }
    let config = file
        .message_type
        .iter()
        .find(|message| message.name() == "LLMConfig")
        .unwrap();
    assert_eq!(config.reserved_name, ["max_tool_result_tokens"]);
    assert!(
        config
            .reserved_range
            .iter()
            .any(|range| (range.start(), range.end()) == (6, 7))
    );
    let service = file.service.first().unwrap();
    assert_eq!(
        (service.name(), service.method[0].name()),
        ("LLMService", "Generate")
    );
    assert!(service.method[0].server_streaming());
}
