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
    let mut thinking = 0;
    let mut output = 0;
    for chunk in chunks {
        match chunk {
            Chunk::Thinking(text) => thinking += text.len(),
            Chunk::Text(text) => output += text.len(),
            Chunk::Call(call) => output += call.tool.len() + call.arguments_text().len(),
            Chunk::Code(code) => output += code.code.len(),
            Chunk::CodeResult(_) | Chunk::Grounding(_) => {}
            Chunk::Wait(_) | Chunk::Gate(_) | Chunk::Cut(()) | Chunk::Hang(()) => {}
        }
    }
    let tokens = |bytes: usize| u32::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u32::MAX);
    Usage {
        input: u32::try_from(input).unwrap_or(u32::MAX),
        cached: 0,
        output: tokens(output),
        thinking: tokens(thinking),
    }
}
