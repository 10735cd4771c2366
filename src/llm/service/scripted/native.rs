//! Recorded work of a provider's own tools, as it goes over the wire.

use crate::drill::transcript::{Code, CodeResult, Research, Resting};
use crate::llm::proto::{CodeExecutionDelta, GroundingChunkInfo, GroundingDelta, GroundingSupport};

pub(super) fn code(code: &Code) -> CodeExecutionDelta {
    let Code { code, language, id } = code.clone();
    CodeExecutionDelta { code, language, id, ..CodeExecutionDelta::default() }
}

pub(super) fn code_result(result: &CodeResult) -> CodeExecutionDelta {
    let CodeResult { result, outcome, id } = result.clone();
    CodeExecutionDelta { result, outcome, id, ..CodeExecutionDelta::default() }
}

/// `said` is the text so far: providers give places in bytes of it.
pub(super) fn grounding(research: &Research, said: &str) -> GroundingDelta {
    let mut behind = 0;
    let mut support = |resting: &Resting| {
        let (start_index, end_index) = resting.bytes.unwrap_or_else(|| place(said, &resting.text, &mut behind));
        GroundingSupport {
            start_index,
            end_index,
            text: resting.text.clone(),
            grounding_chunk_indices: resting.sources.clone(),
        }
    };
    let source = |source: &crate::investigation::native::Source| GroundingChunkInfo {
        uri: source.uri.clone(),
        title: source.title.clone(),
    };
    GroundingDelta {
        web_search_queries: research.queries.clone(),
        grounding_chunks: research.sources.iter().map(source).collect(),
        grounding_supports: research.supports.iter().map(&mut support).collect(),
        search_entry_point_html: research.search_widget.clone(),
    }
}

/// First and last byte of a piece; from the beginning again if it is not found behind the one before it.
fn place(said: &str, piece: &str, behind: &mut usize) -> (i32, i32) {
    let later = said.get(*behind..).and_then(|rest| rest.find(piece)).map(|at| at + *behind);
    let Some(start) = later.or_else(|| said.find(piece)) else { return (0, 0) };
    *behind = start + piece.len();
    let wire = |at: usize| i32::try_from(at).unwrap_or(i32::MAX);
    (wire(start), wire(*behind))
}
