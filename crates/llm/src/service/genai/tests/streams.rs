//! Answers of every interface.

use super::conversation::{anthropic, ask, lines, openai, request};
use crate::proto::GenerateRequest;
use crate::service::provider::tests::endpoint::{Ending, Endpoint, Reply};

async fn answer_to(reply: Reply, request: &GenerateRequest) -> Vec<String> {
    lines(&ask(&Endpoint::start(vec![reply]).await, request).await)
}

const CALLS: [&str; 2] = [r#"{"name":"web-1","count":1.0}"#, "{}"];

fn calls(ids: [&str; 2]) -> [String; 2] {
    [
        format!("call {} server.get {}", ids[0], CALLS[0]),
        format!("call {} server.list {}", ids[1], CALLS[1]),
    ]
}

#[tokio::test]
async fn anthropic_answers_are_the_same_at_any_size_of_reads() {
    for piece in [1, 3, 4_096] {
        let answer = answer_to(
            Reply::fixture("anthropic/calls.sse").in_pieces_of(piece),
            &anthropic(),
        )
        .await;
        assert_eq!(
            answer[..4],
            [
                "thinking The pod ",
                "thinking restarts.",
                "text I look → ",
                "text both."
            ]
        );
        assert_eq!(answer[4..6], calls(["toolu_1", "toolu_2"]));
        assert_eq!(
            answer[6],
            "tool_calls|tool_use||msg_01|claude-sonnet-4-5-20250929"
        );
        let data = concat!(
            r#"data [{"type":"thinking","thinking":"The pod restarts.","signature":"c2lnLTE="},"#,
            r#"{"type":"redacted_thinking","data":"cmVkYWN0ZWQ="},{"type":"text","text":"I look → both."},"#,
            r#"{"type":"tool_use","id":"toolu_1","name":"server__get","input":{"name":"web-1","count":1.0}},"#,
            r#"{"type":"tool_use","id":"toolu_2","name":"server__list","input":{}}]"#
        );
        assert_eq!(answer[7], data);
        assert_eq!(answer[8..], ["usage 56 90 146 0 11 0", "end"]);
    }
}

#[tokio::test]
async fn answers_of_both_interfaces_of_openai_are_the_same() {
    let text = ["text I look → ", "text both."];
    let responses = answer_to(Reply::fixture("openai/responses.sse"), &openai()).await;
    assert_eq!(responses[..2], ["thinking The pod ", "thinking restarts."]);
    assert_eq!(responses[2..4], text);
    assert_eq!(responses[4..6], calls(["tool-A", "tool-B"]));
    assert_eq!(
        responses[6],
        "tool_calls|completed||resp_1|gpt-5.1-2025-11-13"
    );
    assert!(
        responses[7].starts_with("data ")
            && responses[7].contains(r#""encrypted_content":"ZW5jcnlwdGVk""#)
    );
    assert_eq!(responses[8..], ["usage 30 12 42 5 4 0", "end"]);
    let chat = answer_to(Reply::fixture("openai/chat.sse"), &request("xai", "grok-4")).await;
    assert_eq!(chat[0], "thinking The pod restarts.");
    assert_eq!(chat[1..3], text);
    assert_eq!(chat[3..5], calls(["tool-A", "tool-B"]));
    assert_eq!(
        chat[5..7],
        [
            "tool_calls|tool_calls||chatcmpl-1|qwen3",
            r#"data [{"reasoning":"The pod restarts.","details":[],"field":"reasoning_content"}]"#
        ]
    );
    // The crate adds the thoughts of xAI to its output.
    assert_eq!(chat[7..], ["usage 30 17 42 5 4 0", "end"]);
}

#[tokio::test]
async fn an_answer_that_reached_its_limit_says_so() {
    let answer = answer_to(Reply::fixture("openai/incomplete.sse"), &openai()).await;
    assert_eq!(
        answer[..2],
        [
            "text Hal",
            "max_tokens|max_output_tokens||resp_1|gpt-5.1-2025-11-13"
        ]
    );
}

#[tokio::test]
async fn a_complete_answer_counts_although_its_response_does_not_end() {
    let chat =
        String::from_utf8(std::fs::read("../../tests/fixtures/openai/chat.sse").unwrap()).unwrap();
    let without_end = chat.replace("data: [DONE]\n\n", "");
    for ending in [Ending::Whole, Ending::Hang, Ending::Cut] {
        let reply = Reply::stream(without_end.clone()).ending(ending);
        let answer = answer_to(reply, &request("openai", "qwen3")).await;
        assert_eq!(answer[3..5], calls(["tool-A", "tool-B"]));
        assert_eq!(answer[answer.len() - 2..], ["usage 30 12 42 5 4 0", "end"]);
    }
}

#[tokio::test]
async fn a_client_that_accepts_nothing_gets_only_what_it_knows() {
    let old = GenerateRequest {
        accept: Vec::new(),
        ..anthropic()
    };
    let answer = answer_to(Reply::fixture("anthropic/answer.sse"), &old).await;
    assert_eq!(answer, ["text Healthy.", "usage 56 3 59 0 11 0", "end"]);
}
