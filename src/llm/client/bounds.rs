//! How large one answer may become. A stream that goes on beyond it is left: what it had sent is forgotten, and the call
//! has failed. So a provider that never stops costs a worker no more memory than [`ALL_BYTES`].

use prost::Message as _;

use crate::engine::ports::ModelError;
use crate::llm::proto::GenerateResponse;
use crate::llm::proto::generate_response::Content;

/// The code of such a failure.
const TOO_LARGE: &str = "answer_too_large";
/// Text and reasoning together.
const TEXT_BYTES: usize = 4 * MIB;
/// Of one call.
const ARGUMENT_BYTES: usize = MIB;
/// Calls of one answer that get a result each; the plan says how many of them are run.
const CALLS: usize = 256;
/// Pieces of what the provider's own tools did.
const NATIVE_PARTS: usize = 1024;
/// The whole answer, with what the provider wants back.
pub(super) const ALL_BYTES: usize = 32 * MIB;
/// What a chunk counts beside its bytes, so that empty ones come to an end as well.
const CHUNK_BYTES: usize = 16;
const MIB: usize = 1024 * 1024;

/// What has arrived of an answer.
#[derive(Debug, Default)]
pub(super) struct Size {
    all: usize,
    text: usize,
    calls: usize,
    native_parts: usize,
}

impl Size {
    /// Counts a chunk.
    ///
    /// # Errors
    /// When the answer is too large with it.
    pub(super) fn add(&mut self, chunk: &GenerateResponse) -> Result<(), ModelError> {
        self.all += chunk.encoded_len() + CHUNK_BYTES;
        let mut arguments = 0;
        match &chunk.content {
            Some(Content::Text(piece)) => self.text += piece.content.len(),
            Some(Content::Thinking(piece)) => self.text += piece.content.len(),
            Some(Content::ToolCall(call)) => {
                self.calls += 1;
                arguments = call.arguments.len();
            }
            Some(Content::CodeExecution(_) | Content::Grounding(_)) => self.native_parts += 1,
            Some(Content::Usage(_) | Content::Finish(_) | Content::ProviderData(_) | Content::Error(_)) | None => {}
        }
        let bounds = [
            (self.text, TEXT_BYTES, "4 MiB of text"),
            (arguments, ARGUMENT_BYTES, "1 MiB of arguments for one call"),
            (self.calls, CALLS, "256 calls"),
            (self.native_parts, NATIVE_PARTS, "1024 parts of the provider's own tools"),
            (self.all, ALL_BYTES, "32 MiB in all"),
        ];
        match bounds.into_iter().find(|(found, most, _)| found > most) {
            None => Ok(()),
            Some((_, _, most)) => Err(too_large(most)),
        }
    }
}

/// An answer that has more than `most`.
pub(super) fn too_large(most: &str) -> ModelError {
    metrics::counter!("tarsy_model_answers_too_large_total").increment(1);
    let message = format!("the answer is too large: at most {most}");
    ModelError::Failed { code: TOO_LARGE.to_owned(), message, timeout: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::proto::{CodeExecutionDelta, ProviderData, TextDelta, ThinkingDelta, ToolCallDelta};

    /// How many of these chunks are taken, and what is said of the next one.
    fn taken(contents: &[Content]) -> (usize, String) {
        let mut size = Size::default();
        let chunks = contents.iter().cycle().map(|content| {
            let content = Some(content.clone());
            size.add(&GenerateResponse { content, is_final: false })
        });
        let results: Vec<_> =
            chunks.enumerate().take(3_000_000).find(|(_, result)| result.is_err()).into_iter().collect();
        let [(count, Err(ModelError::Failed { code, message, timeout: false }))] = results.as_slice() else {
            panic!("no end: {results:?}")
        };
        assert_eq!(code, "answer_too_large");
        (*count, message.trim_start_matches("the answer is too large: at most ").to_owned())
    }

    #[test]
    fn each_bound_of_an_answer_is_kept_and_named() {
        let text = |bytes: usize| Content::Text(TextDelta { content: "x".repeat(bytes) });
        let thinking = |bytes: usize| Content::Thinking(ThinkingDelta { content: "x".repeat(bytes) });
        let call = |bytes: usize| {
            let (call_id, name) = (String::new(), "k8s.get".to_owned());
            Content::ToolCall(ToolCallDelta { call_id, name, arguments: "x".repeat(bytes) })
        };
        let data = |bytes: usize| Content::ProviderData(ProviderData { payload: vec![0; bytes], ..Default::default() });
        let code = Content::CodeExecution(CodeExecutionDelta::default());
        let cases = [
            (vec![text(MIB)], (4, "4 MiB of text")),
            (vec![thinking(MIB), text(MIB)], (4, "4 MiB of text")),
            (vec![call(MIB), call(MIB + 1)], (1, "1 MiB of arguments for one call")),
            (vec![call(10)], (256, "256 calls")),
            (vec![code], (1024, "1024 parts of the provider's own tools")),
            (vec![call(MIB)], (31, "32 MiB in all")),
            (vec![data(10 * MIB)], (3, "32 MiB in all")),
        ];
        for (contents, (count, most)) in cases {
            assert_eq!(taken(&contents), (count, most.to_owned()));
        }
        // Without any content: 16 bytes and the bytes on the wire, which are none.
        let mut size = Size::default();
        let empty = GenerateResponse::default();
        assert_eq!((1_u32..).find(|_| size.add(&empty).is_err()), Some(2 * 1024 * 1024 + 1));
    }
}
