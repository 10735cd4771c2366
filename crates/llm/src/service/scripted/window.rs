//! Estimates the tokens of a request for a recording with a context window.

use crate::proto::GenerateRequest;
use tarsy_drill::transcript::{Chunk, Usage};

const BYTES_PER_TOKEN: usize = 3;

/// The estimated tokens of a request.
pub(super) fn tokens(request: &GenerateRequest) -> u64 {
    let messages = request.messages.iter().map(|message| {
        let calls = message
            .tool_calls
            .iter()
            .map(|call| call.name.len() + call.arguments.len());
        message.content.len() + calls.sum::<usize>()
    });
    let tools = request
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters_schema.len());
    let bytes = messages.chain(tools).sum::<usize>();
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

/// The usage of an answer to a request of `input` tokens.
pub(super) fn usage(input: u64, chunks: &[Chunk]) -> Usage {
    // Bytes of reasoning, and of everything else.
    let of = |chunk: &Chunk| match chunk {
        Chunk::Thinking(text) => (text.len(), 0),
        Chunk::Text(text) => (0, text.len()),
        Chunk::Call(call) => (0, call.tool.len() + call.arguments_text().len()),
        Chunk::Code(code) => (0, code.code.len()),
        Chunk::CodeResult(_)
        | Chunk::Grounding(_)
        | Chunk::Wait(_)
        | Chunk::Gate(_)
        | Chunk::Cut(())
        | Chunk::Hang(()) => (0, 0),
    };
    let (thinking, output) = chunks
        .iter()
        .map(of)
        .fold((0, 0), |sum, bytes| (sum.0 + bytes.0, sum.1 + bytes.1));
    let tokens = |bytes: usize| u32::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u32::MAX);
    Usage {
        input: u32::try_from(input).unwrap_or(u32::MAX),
        cached: 0,
        output: tokens(output),
        thinking: tokens(thinking),
    }
}
