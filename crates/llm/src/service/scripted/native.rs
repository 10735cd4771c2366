//! Converts recorded work of a provider's own tools into messages of the protocol.

use crate::proto::{CodeExecutionDelta, GroundingChunkInfo, GroundingDelta, GroundingSupport};
use tarsy_drill::transcript::{Code, CodeResult, Research};

pub(super) fn code(code: &Code) -> CodeExecutionDelta {
    let Code { code, language, id } = code.clone();
    CodeExecutionDelta {
        code,
        language,
        id,
        ..CodeExecutionDelta::default()
    }
}

pub(super) fn code_result(result: &CodeResult) -> CodeExecutionDelta {
    let CodeResult {
        result,
        outcome,
        id,
    } = result.clone();
    CodeExecutionDelta {
        result,
        outcome,
        id,
        ..CodeExecutionDelta::default()
    }
}

/// `text` is the text of the answer so far: providers send positions as byte offsets in it.
pub(super) fn grounding(research: &Research, text: &str) -> GroundingDelta {
    let mut grounding = GroundingDelta {
        web_search_queries: research.queries.clone(),
        search_entry_point_html: research.search_widget.clone(),
        ..GroundingDelta::default()
    };
    for source in &research.sources {
        grounding.grounding_chunks.push(GroundingChunkInfo {
            uri: source.uri.clone(),
            title: source.title.clone(),
        });
    }
    let mut after = 0;
    for resting in &research.supports {
        let (start_index, end_index) = resting
            .bytes
            .unwrap_or_else(|| position(text, &resting.text, &mut after));
        grounding.grounding_supports.push(GroundingSupport {
            start_index,
            end_index,
            text: resting.text.clone(),
            grounding_chunk_indices: resting.sources.clone(),
            ..GroundingSupport::default()
        });
    }
    grounding
}

/// The byte range of a piece. The search starts after the previous piece, then again at the beginning.
fn position(text: &str, piece: &str, after: &mut usize) -> (i32, i32) {
    let later = text
        .get(*after..)
        .and_then(|rest| rest.find(piece))
        .map(|at| at + *after);
    let Some(start) = later.or_else(|| text.find(piece)) else {
        return (0, 0);
    };
    *after = start + piece.len();
    let wire = |at: usize| i32::try_from(at).unwrap_or(i32::MAX);
    (wire(start), wire(*after))
}
