//! An answer, put together from the chunks of its stream.

use crate::engine::ports::ModelError;
use crate::investigation::entry::{Answer, ProviderData, ToolCall, Usage};
use crate::investigation::timeline::DeltaKind;
use crate::llm::proto::generate_response::Content;
use crate::llm::proto::{self, GenerateResponse};

/// The code of an error that stands for too much time.
const DEADLINE_CODE: &str = "deadline_exceeded";

/// What has arrived so far.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    begun: bool,
    answer: Answer,
}

impl Assembly {
    /// Whether there was a first chunk.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Takes a chunk and says whether it is the last one.
    pub(super) fn push(
        &mut self,
        chunk: GenerateResponse,
        deltas: &(impl Fn(DeltaKind, &str) + Send + Sync),
    ) -> Result<bool, ModelError> {
        self.begun = true;
        match chunk.content {
            Some(Content::Text(piece)) => append(&mut self.answer.text, piece.content, DeltaKind::Text, deltas),
            Some(Content::Thinking(piece)) => {
                append(&mut self.answer.thinking, piece.content, DeltaKind::Thinking, deltas);
            }
            Some(Content::ToolCall(call)) => self.answer.calls.push(ToolCall {
                id: clean(call.call_id),
                tool: clean(call.name),
                arguments: clean(call.arguments),
                read_only: false,
            }),
            Some(Content::Usage(usage)) => self.answer.usage = tokens(usage),
            Some(Content::Finish(finish)) => self.answer.finish = clean(finish.reason),
            Some(Content::ProviderData(data)) => self.answer.provider_data = Some(provider_data(data)),
            Some(Content::Error(error)) => return Err(failed(error)),
            // The journal has no place for these yet; `None` is a chunk of a newer service.
            Some(Content::CodeExecution(_) | Content::Grounding(_)) | None => {}
        }
        Ok(chunk.is_final)
    }

    /// The whole answer. A service that does not say why the model stopped leaves that to be seen.
    pub(super) fn finish(mut self) -> Answer {
        if self.answer.finish.is_empty() {
            let reason = if self.answer.calls.is_empty() { "stop" } else { "tool_calls" };
            reason.clone_into(&mut self.answer.finish);
        }
        self.answer
    }
}

fn append(whole: &mut String, piece: String, kind: DeltaKind, deltas: &(impl Fn(DeltaKind, &str) + Send + Sync)) {
    let piece = clean(piece);
    if !piece.is_empty() {
        deltas(kind, &piece);
        whole.push_str(&piece);
    }
}

/// No store takes a NUL in text, and no text needs one.
fn clean(mut text: String) -> String {
    text.retain(|letter| letter != '\0');
    text
}

fn tokens(usage: proto::UsageInfo) -> Usage {
    let count = |tokens: i32| u64::try_from(tokens).unwrap_or(0);
    Usage {
        input_tokens: count(usage.input_tokens),
        cached_tokens: count(usage.cache_read_tokens),
        output_tokens: count(usage.output_tokens),
        thinking_tokens: count(usage.thinking_tokens),
    }
}

fn provider_data(data: proto::ProviderData) -> ProviderData {
    ProviderData {
        provider: clean(data.provider),
        model: clean(data.model),
        format: clean(data.format),
        payload: data.payload,
    }
}

fn failed(error: proto::ErrorInfo) -> ModelError {
    let timeout = error.code == DEADLINE_CODE;
    ModelError::Failed { code: clean(error.code), message: clean(error.message), timeout }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::llm::proto::{TextDelta, ThinkingDelta, ToolCallDelta, UsageInfo};

    fn chunk(content: Content) -> GenerateResponse {
        GenerateResponse { content: Some(content), is_final: false }
    }

    #[test]
    fn chunks_become_one_answer_without_nul_and_every_piece_is_shown_once() {
        let shown = Mutex::new(Vec::new());
        let deltas = |kind, piece: &str| shown.lock().unwrap().push((kind, piece.to_owned()));
        let mut assembly = Assembly::default();
        assert!(!assembly.has_begun());
        let chunks = [
            chunk(Content::Thinking(ThinkingDelta { content: "hm\0m".into() })),
            chunk(Content::Text(TextDelta { content: "\0".into() })),
            chunk(Content::Text(TextDelta { content: "a".into() })),
            GenerateResponse::default(),
            chunk(Content::Text(TextDelta { content: "b".into() })),
            chunk(Content::ToolCall(ToolCallDelta {
                call_id: "1".into(),
                name: "k8s.get".into(),
                arguments: "{}".into(),
            })),
            chunk(Content::Usage(UsageInfo {
                input_tokens: 9,
                output_tokens: -1,
                total_tokens: 12,
                thinking_tokens: 3,
                cache_read_tokens: 4,
                cache_creation_tokens: 0,
            })),
        ];
        for chunk in chunks {
            assert_eq!(assembly.push(chunk, &deltas), Ok(false));
        }
        assert_eq!(assembly.push(GenerateResponse { content: None, is_final: true }, &deltas), Ok(true));
        assert!(assembly.has_begun());
        assert_eq!(
            assembly.finish(),
            Answer {
                text: "ab".into(),
                thinking: "hmm".into(),
                calls: vec![ToolCall {
                    id: "1".into(),
                    tool: "k8s.get".into(),
                    arguments: "{}".into(),
                    read_only: false
                }],
                usage: Usage { input_tokens: 9, cached_tokens: 4, output_tokens: 0, thinking_tokens: 3 },
                finish: "tool_calls".into(),
                code_executions: vec![],
                groundings: vec![],
                reading: None,
                provider_data: None,
            }
        );
        assert_eq!(
            shown.into_inner().unwrap(),
            [
                (DeltaKind::Thinking, "hmm".to_owned()),
                (DeltaKind::Text, "a".to_owned()),
                (DeltaKind::Text, "b".to_owned())
            ]
        );
    }
}
