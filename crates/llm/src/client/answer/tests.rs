use parking_lot::Mutex;

use super::*;
use crate::proto::{
    CodeExecutionDelta, GroundingChunkInfo, GroundingDelta, GroundingSupport, RetryNotice,
    TextDelta, ThinkingDelta, ToolCallDelta, UrlRetrieval, UsageInfo,
};

fn chunk(content: Content) -> GenerateResponse {
    GenerateResponse {
        content: Some(content),
        is_final: false,
    }
}

#[test]
fn chunks_become_one_answer_without_nul_and_each_piece_is_emitted_once() {
    let shown = Mutex::new(Vec::new());
    let deltas = |kind, piece: &str| shown.lock().push((kind, piece.to_owned()));
    let mut assembly = Assembly::default();
    let notice = chunk(Content::Retry(RetryNotice {
        attempt: 1,
        ..RetryNotice::default()
    }));
    assert_eq!(assembly.push(notice, &deltas), Ok(false));
    assert!(
        !assembly.has_begun,
        "a notice about a retry is no part of the answer"
    );
    let chunks = [
        chunk(Content::Thinking(ThinkingDelta {
            content: "hm\0m".into(),
        })),
        chunk(Content::Text(TextDelta {
            content: "\0".into(),
        })),
        chunk(Content::Text(TextDelta {
            content: "a".into(),
        })),
        GenerateResponse::default(),
        chunk(Content::Text(TextDelta {
            content: "b".into(),
        })),
        chunk(Content::ToolCall(ToolCallDelta {
            call_id: "1".into(),
            name: "k8s.get".into(),
            arguments: "{}".into(),
        })),
        chunk(Content::Finish(proto::FinishInfo {
            reason: "tool_calls".into(),
            refused_tools: vec![proto::RefusedTool {
                name: "k8s.odd\0".into(),
                reason: "bad schema".into(),
            }],
            ..proto::FinishInfo::default()
        })),
        chunk(Content::Usage(UsageInfo {
            input_tokens: 9,
            output_tokens: -1,
            total_tokens: 12,
            thinking_tokens: 3,
            cache_read_tokens: 4,
            ..UsageInfo::default()
        })),
    ];
    for chunk in chunks {
        assert_eq!(assembly.push(chunk, &deltas), Ok(false));
    }
    assert_eq!(
        assembly.push(
            GenerateResponse {
                content: None,
                is_final: true
            },
            &deltas
        ),
        Ok(true)
    );
    assert!(assembly.has_begun);
    assert_eq!(
        assembly.finish(&|_, _| {}),
        Answer {
            text: "ab".into(),
            thinking: "hmm".into(),
            calls: vec![ToolCall {
                id: "1".into(),
                tool: "k8s.get".into(),
                arguments: "{}".into(),
                read_only: false
            }],
            usage: Usage {
                input_tokens: 9,
                cached_tokens: 4,
                output_tokens: 0,
                thinking_tokens: 3
            },
            finish: Finish::ToolCalls,
            is_signed: false,
            code_executions: vec![],
            groundings: vec![],
            reading: None,
            provider_data: None,
            masked_calls: vec![],
            refused_tools: vec![RefusedTool {
                tool: "k8s.odd".into(),
                reason: "bad schema".into()
            }],
            unmasked: None,
        }
    );
    assert_eq!(
        shown.into_inner(),
        [
            (DeltaKind::Thinking, "hmm".to_owned()),
            (DeltaKind::Text, "a".to_owned()),
            (DeltaKind::Text, "b".to_owned())
        ]
    );
}

#[test]
fn reports_of_provider_tools_are_kept_without_nul_and_negative_positions() {
    let code = |code: &str, result: &str| {
        let part = CodeExecutionDelta {
            code: code.into(),
            result: result.into(),
            ..Default::default()
        };
        chunk(Content::CodeExecution(part))
    };
    let support = GroundingSupport {
        start_index: -4,
        end_index: 2,
        text: "o\0k".into(),
        grounding_chunk_indices: vec![-1, 0, 7],
        confidence_scores: vec![0.1, 0.97],
        part_index: -1,
    };
    let grounding = GroundingDelta {
        web_search_queries: vec!["q\0".into()],
        grounding_chunks: vec![GroundingChunkInfo {
            uri: "https://a\0".into(),
            title: "a\0".into(),
        }],
        grounding_supports: vec![support],
        search_entry_point_html: "<b>\0".into(),
        url_retrievals: vec![UrlRetrieval {
            url: "https://b\0".into(),
            status: "PAYWALL\0".into(),
        }],
        other_sources: vec![proto::OtherSource {
            kind: "retrievedContext\0".into(),
            text: "a\0".into(),
            supports: vec![GroundingSupport {
                confidence_scores: vec![0.5],
                ..GroundingSupport::default()
            }],
            ..proto::OtherSource::default()
        }],
    };
    let ended = CodeExecutionDelta {
        outcome: "OUTCOME_OK\0".into(),
        language: "PYTHON\0".into(),
        id: "1\0".into(),
        ..Default::default()
    };
    let answer = assemble([
        code("print(1)\0", ""),
        chunk(Content::Text(TextDelta {
            content: "ok".into(),
        })),
        code("", "1\0"),
        chunk(Content::CodeExecution(ended)),
        chunk(Content::Grounding(grounding)),
        GenerateResponse {
            content: None,
            is_final: true,
        },
        code("behind the end", ""),
    ]);
    let part = |code: &str, result: &str| CodePart {
        code: code.into(),
        result: result.into(),
        ..Default::default()
    };
    let expected = Answer {
        text: "ok".into(),
        finish: Finish::Stop,
        code_executions: vec![
            part("print(1)", ""),
            part("", "1"),
            CodePart {
                outcome: "OUTCOME_OK".into(),
                language: "PYTHON".into(),
                id: "1".into(),
                ..part("", "")
            },
        ],
        groundings: vec![Grounding {
            queries: vec!["q".into()],
            sources: vec![Source {
                uri: "https://a".into(),
                title: "a".into(),
            }],
            supports: vec![Support {
                start_index: 0,
                end_index: 2,
                text: "ok".into(),
                grounding_chunk_indices: vec![0, 7],
                confidence_scores: vec![Confidence::from_score(0.97)],
                part_index: 0,
            }],
            retrievals: vec![Retrieval {
                url: "https://b".into(),
                status: "PAYWALL".into(),
            }],
            other_sources: vec![OtherSource {
                kind: "retrievedContext".into(),
                text: "a".into(),
                supports: vec![Support {
                    confidence_scores: vec![Confidence::from_score(0.5)],
                    ..Support::default()
                }],
                ..OtherSource::default()
            }],
            search_widget: "<b>".into(),
        }],
        ..Answer::default()
    };
    assert_eq!(answer, Ok(expected));
}
