//! Assembles an answer from the chunks of its stream.

use std::time::Duration;

use super::failure::reported;
use super::limits::Size;
use crate::proto::generate_response::Content;
use crate::proto::{self, GenerateResponse};
use tarsy_core::execution::entry::{Answer, Finish, ProviderData, RefusedTool, ToolCall, Usage};
use tarsy_core::native::{
    CodePart, Confidence, Grounding, OtherSource, Retrieval, Source, Support,
};
use tarsy_core::reasoning::{Piece, PieceKind, Split, Splitter};
use tarsy_core::timeline::DeltaKind;
use tarsy_engine::ports::ModelError;

/// Assembles these chunks, up to the final one if there is one.
///
/// # Errors
/// When a chunk is an error: the error that a call would return.
pub fn assemble(chunks: impl IntoIterator<Item = GenerateResponse>) -> Result<Answer, ModelError> {
    let mut assembly = Assembly::default();
    for chunk in chunks {
        if assembly.push(chunk, &|_, _| {})? {
            break;
        }
    }
    Ok(assembly.finish(&|_, _| {}))
}

/// An answer, and the observations of its stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    pub answer: Answer,
    /// The time from the request to the first chunk.
    pub first_chunk: Option<Duration>,
    /// The first tag around reasoning that the server has left in the text.
    pub reasoning_tag: Option<String>,
    /// Whether the tags have no certain reading.
    pub is_unsure: bool,
}

/// The part of an answer that has arrived.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// Whether the answer has begun. A notice about a retry does not begin it: the provider has not answered.
    pub(super) has_begun: bool,
    /// The time from the request to the first chunk of the answer.
    pub(super) first_chunk: Option<Duration>,
    size: Size,
    /// The text, without the reasoning that a server has left in it.
    text: Splitter,
    answer: Answer,
}

impl Assembly {
    /// Adds a chunk. Returns whether it is the last one.
    pub(super) fn push(
        &mut self,
        chunk: GenerateResponse,
        deltas: &(impl Fn(DeltaKind, &str) + Send + Sync),
    ) -> Result<bool, ModelError> {
        self.has_begun |= is_of_answer(&chunk);
        self.size.add(&chunk)?;
        match chunk.content {
            Some(Content::Text(piece)) => show(self.text.push(&clean(piece.content)), deltas),
            Some(Content::Thinking(piece)) => {
                let piece = clean(piece.content);
                if !piece.is_empty() {
                    deltas(DeltaKind::Thinking, &piece);
                    self.answer.thinking.push_str(&piece);
                }
            }
            Some(Content::ToolCall(call)) => self.answer.calls.push(ToolCall {
                id: clean(call.call_id),
                tool: clean(call.name),
                arguments: clean(call.arguments),
                read_only: false,
            }),
            Some(Content::Usage(usage)) => self.answer.usage = tokens(usage),
            Some(Content::Finish(finish)) => {
                self.answer.finish = Finish::parse(&finish.reason);
                self.answer.refused_tools =
                    finish.refused_tools.into_iter().map(refused_tool).collect();
                self.answer.is_signed = finish.signed_reasoning;
            }
            Some(Content::ProviderData(data)) => {
                self.answer.provider_data = Some(Box::new(provider_data(data)))
            }
            Some(Content::Error(error)) => return Err(reported(clean_error(error))),
            Some(Content::CodeExecution(part)) => self.answer.code_executions.push(code_part(part)),
            Some(Content::Grounding(part)) => self.answer.groundings.push(grounding(part)),
            // The client reports a retry; a newer service may send content of an unknown kind.
            Some(Content::Retry(_)) | None => {}
        }
        Ok(chunk.is_final)
    }

    /// The whole answer. The reason to stop is inferred if the service did not send one.
    ///
    /// Where the tags of reasoning have no certain reading, the answer does not count as one that ended by itself.
    pub(super) fn finish(self, deltas: &(impl Fn(DeltaKind, &str) + Send + Sync)) -> Answer {
        self.observed(deltas).answer
    }

    /// The whole answer, with the observations that are not in the journal.
    pub(super) fn observed(
        mut self,
        deltas: &(impl Fn(DeltaKind, &str) + Send + Sync),
    ) -> Observed {
        let (rest, split) = self.text.finish();
        show(rest, deltas);
        let Split {
            text,
            reasoning,
            is_unsure,
            tag,
        } = split;
        self.answer.text = text;
        if !reasoning.is_empty() {
            if !self.answer.thinking.is_empty() {
                self.answer.thinking.push('\n');
            }
            self.answer.thinking.push_str(&reasoning);
            // The provider's own form still has the reasoning as text.
            if self.answer.calls.is_empty() {
                self.answer.provider_data = None;
            }
        }
        if is_unsure && self.answer.calls.is_empty() && self.answer.finish == Finish::Stop {
            self.answer.finish = Finish::Other;
        }
        if self.answer.finish == Finish::Stop && !self.answer.calls.is_empty() {
            self.answer.finish = Finish::ToolCalls;
        }
        Observed {
            answer: self.answer,
            first_chunk: self.first_chunk,
            reasoning_tag: tag,
            is_unsure,
        }
    }
}

/// Whether a chunk is a part of the answer or its failure.
pub(super) fn is_of_answer(chunk: &GenerateResponse) -> bool {
    !matches!(chunk.content, Some(Content::Retry(_)))
}

/// Emits the pieces of a text by their kind.
fn show(pieces: Vec<Piece>, deltas: &(impl Fn(DeltaKind, &str) + Send + Sync)) {
    for Piece { kind, text } in pieces {
        let kind = match kind {
            PieceKind::Text => DeltaKind::Text,
            PieceKind::Reasoning => DeltaKind::Thinking,
        };
        deltas(kind, &text);
    }
}

/// Removes NUL characters, which the store cannot keep in text.
fn clean(mut text: String) -> String {
    text.retain(|character| character != '\0');
    text
}

fn clean_error(error: proto::ErrorInfo) -> proto::ErrorInfo {
    proto::ErrorInfo {
        message: clean(error.message),
        code: clean(error.code),
        provider_status: clean(error.provider_status),
        ..error
    }
}

fn refused_tool(refused: proto::RefusedTool) -> RefusedTool {
    RefusedTool {
        tool: clean(refused.name),
        reason: clean(refused.reason),
    }
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

fn code_part(part: proto::CodeExecutionDelta) -> CodePart {
    CodePart {
        code: clean(part.code),
        result: clean(part.result),
        outcome: clean(part.outcome),
        language: clean(part.language),
        id: clean(part.id),
    }
}

fn grounding(part: proto::GroundingDelta) -> Grounding {
    Grounding {
        queries: part.web_search_queries.into_iter().map(clean).collect(),
        sources: part.grounding_chunks.into_iter().map(source).collect(),
        supports: part.grounding_supports.into_iter().map(support).collect(),
        retrievals: part.url_retrievals.into_iter().map(retrieval).collect(),
        other_sources: part.other_sources.into_iter().map(other_source).collect(),
        search_widget: clean(part.search_entry_point_html),
    }
}

fn source(source: proto::GroundingChunkInfo) -> Source {
    Source {
        uri: clean(source.uri),
        title: clean(source.title),
    }
}

fn retrieval(page: proto::UrlRetrieval) -> Retrieval {
    Retrieval {
        url: clean(page.url),
        status: clean(page.status),
    }
}

fn other_source(source: proto::OtherSource) -> OtherSource {
    OtherSource {
        kind: clean(source.kind),
        uri: clean(source.uri),
        title: clean(source.title),
        text: clean(source.text),
        supports: source.supports.into_iter().map(support).collect(),
    }
}

/// A negative position becomes 0; a negative index of a source is dropped with its score.
fn support(support: proto::GroundingSupport) -> Support {
    let position = |index: i32| u32::try_from(index).unwrap_or(0);
    let mut grounding_chunk_indices = Vec::with_capacity(support.grounding_chunk_indices.len());
    // A source other than a page has a score and no index.
    let mut scores = support
        .confidence_scores
        .into_iter()
        .map(Confidence::from_score);
    let mut confidence_scores = Vec::new();
    for index in support.grounding_chunk_indices {
        let score = scores.next();
        if let Ok(index) = u32::try_from(index) {
            grounding_chunk_indices.push(index);
            confidence_scores.extend(score);
        }
    }
    if grounding_chunk_indices.is_empty() {
        confidence_scores.extend(scores);
    }
    Support {
        start_index: position(support.start_index),
        end_index: position(support.end_index),
        text: clean(support.text),
        grounding_chunk_indices,
        confidence_scores,
        part_index: position(support.part_index),
    }
}

#[cfg(test)]
mod tests;
