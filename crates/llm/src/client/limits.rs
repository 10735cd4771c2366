//! Size limits of one answer. When an answer exceeds a limit, its stream is dropped and the call has failed. So a
//! provider that never stops costs a worker no more memory than [`MAX_ANSWER_BYTES`].

use prost::Message as _;

use super::failure::too_large;
use crate::proto::generate_response::Content;
use crate::proto::{GenerateResponse, MAX_ANSWER_BYTES};
use tarsy_engine::ports::ModelError;

/// The limit of text and reasoning together, in bytes.
const MAX_TEXT_BYTES: usize = 4 * MIB;
/// The limit of one call's arguments, in bytes.
const MAX_ARGUMENT_BYTES: usize = MIB;
/// Each of these calls gets a result. How many of them are run is a limit of the plan.
const MAX_CALLS: usize = 256;
/// The number of parts that report on the provider's own tools.
const MAX_NATIVE_PARTS: usize = 1024;
/// Added to the size of each chunk, so that a stream of empty chunks reaches a limit, too.
const CHUNK_OVERHEAD_BYTES: usize = 16;
const MIB: usize = 1024 * 1024;

/// The size of the part of an answer that has arrived.
#[derive(Debug, Default)]
pub(super) struct Size {
    all: usize,
    text: usize,
    calls: usize,
    native_parts: usize,
}

impl Size {
    /// Adds the size of a chunk.
    ///
    /// # Errors
    /// When the answer with this chunk exceeds a limit.
    pub(super) fn add(&mut self, chunk: &GenerateResponse) -> Result<(), ModelError> {
        self.all += chunk.encoded_len() + CHUNK_OVERHEAD_BYTES;
        let mut arguments = 0;
        match &chunk.content {
            Some(Content::Text(piece)) => self.text += piece.content.len(),
            Some(Content::Thinking(piece)) => self.text += piece.content.len(),
            Some(Content::ToolCall(call)) => {
                self.calls += 1;
                arguments = call.arguments.len();
            }
            Some(Content::CodeExecution(_) | Content::Grounding(_)) => self.native_parts += 1,
            Some(Content::Usage(_) | Content::Finish(_) | Content::ProviderData(_)) => {}
            Some(Content::Error(_) | Content::Retry(_)) | None => {}
        }
        let limits = [
            (self.text, MAX_TEXT_BYTES, "4 MiB of text"),
            (
                arguments,
                MAX_ARGUMENT_BYTES,
                "1 MiB of arguments for one call",
            ),
            (self.calls, MAX_CALLS, "256 calls"),
            (
                self.native_parts,
                MAX_NATIVE_PARTS,
                "1024 parts of the provider's own tools",
            ),
            (self.all, MAX_ANSWER_BYTES, "32 MiB in all"),
        ];
        match limits.into_iter().find(|(size, limit, _)| size > limit) {
            None => Ok(()),
            Some((_, _, limit)) => Err(too_large(limit)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{CodeExecutionDelta, ProviderData, TextDelta, ThinkingDelta, ToolCallDelta};

    /// The number of these chunks that are accepted, and the limit that the next one exceeds.
    fn accepted(contents: &[Content]) -> (usize, String) {
        let mut size = Size::default();
        let chunks = contents.iter().cycle().map(|content| {
            let content = Some(content.clone());
            size.add(&GenerateResponse {
                content,
                is_final: false,
            })
        });
        let results: Vec<_> = chunks
            .enumerate()
            .take(3_000_000)
            .find(|(_, result)| result.is_err())
            .into_iter()
            .collect();
        let [
            (
                count,
                Err(ModelError::Failed {
                    code,
                    message,
                    timeout: false,
                    ..
                }),
            ),
        ] = results.as_slice()
        else {
            panic!("no limit was reached: {results:?}")
        };
        assert_eq!(code, "answer_too_large");
        (
            *count,
            message
                .trim_start_matches("the answer is too large: at most ")
                .to_owned(),
        )
    }

    #[test]
    fn an_answer_over_a_limit_fails_with_the_name_of_the_limit() {
        let text = |bytes: usize| {
            Content::Text(TextDelta {
                content: "x".repeat(bytes),
            })
        };
        let thinking = Content::Thinking(ThinkingDelta {
            content: "x".repeat(MIB),
        });
        let call = |bytes: usize| {
            Content::ToolCall(ToolCallDelta {
                call_id: String::new(),
                name: "k8s.get".to_owned(),
                arguments: "x".repeat(bytes),
            })
        };
        let data = Content::ProviderData(ProviderData {
            payload: vec![0; 10 * MIB],
            ..Default::default()
        });
        let code = Content::CodeExecution(CodeExecutionDelta::default());
        let cases = [
            (vec![text(MIB)], (4, "4 MiB of text")),
            (vec![thinking, text(MIB)], (4, "4 MiB of text")),
            (
                vec![call(MIB), call(MIB + 1)],
                (1, "1 MiB of arguments for one call"),
            ),
            (vec![call(10)], (256, "256 calls")),
            (vec![code], (1024, "1024 parts of the provider's own tools")),
            (vec![call(MIB)], (31, "32 MiB in all")),
            (vec![data], (3, "32 MiB in all")),
        ];
        for (contents, (count, limit)) in cases {
            assert_eq!(accepted(&contents), (count, limit.to_owned()));
        }
        // A chunk without content counts 16 bytes: it has none on the wire.
        let mut size = Size::default();
        let empty = GenerateResponse::default();
        assert_eq!(
            (1_u32..).find(|_| size.add(&empty).is_err()),
            Some(2 * 1024 * 1024 + 1)
        );
    }
}
