//! How large a request is for a recording that has a context window: it counts as a model does, in its own way.

use crate::drill::transcript::{Chunk, Usage};
use crate::llm::proto::GenerateRequest;

const BYTES_PER_TOKEN: usize = 3;

/// Tokens of a request.
pub(super) fn tokens(request: &GenerateRequest) -> u64 {
    let messages = request.messages.iter().map(|message| {
        let calls = message.tool_calls.iter().map(|call| call.name.len() + call.arguments.len());
        message.content.len() + calls.sum::<usize>()
    });
    let tools =
        request.tools.iter().map(|tool| tool.name.len() + tool.description.len() + tool.parameters_schema.len());
    let bytes = messages.chain(tools).sum::<usize>();
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

/// What an answer to a request of so many tokens costs.
pub(super) fn usage(input: u64, chunks: &[Chunk]) -> Usage {
    let bytes = |thinking: bool| -> usize {
        let of = |chunk: &Chunk| match chunk {
            Chunk::Thinking(text) => {
                if thinking {
                    text.len()
                } else {
                    0
                }
            }
            Chunk::Text(text) => {
                if thinking {
                    0
                } else {
                    text.len()
                }
            }
            Chunk::Call(call) => {
                if thinking {
                    0
                } else {
                    call.tool.len() + call.arguments_text().len()
                }
            }
            Chunk::Wait(_) | Chunk::Gate(_) | Chunk::Cut(()) | Chunk::Hang(()) => 0,
        };
        chunks.iter().map(of).sum()
    };
    let tokens = |bytes: usize| u32::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u32::MAX);
    Usage {
        input: u32::try_from(input).unwrap_or(u32::MAX),
        cached: 0,
        output: tokens(bytes(false)),
        thinking: tokens(bytes(true)),
    }
}
