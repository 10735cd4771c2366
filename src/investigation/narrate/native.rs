//! What the provider's own tools did, told before what the model says of it.

use serde_json::{Value, json};

use crate::investigation::entry::{Answer, Entry};
use crate::investigation::native::{Reference, Run, Source, Support, citations, references, runs};
use crate::investigation::plan::Strategy;
use crate::investigation::state::State;
use crate::investigation::timeline::{EventDraft, EventType};

/// Whose tools they are, in every event of them.
const SOURCE: &str = "gemini";

/// The events of an answer's code and sources, in this order. A model that writes its calls down has no such tools:
/// what comes with its answer is in the record of the call only.
pub(super) fn events(strategy: Strategy, answer: &Answer) -> Vec<EventDraft> {
    if !is_told(strategy) {
        return Vec::new();
    }
    let runs = runs(&answer.code_executions);
    runs.iter().map(run).chain(references(&answer.groundings).iter().map(reference)).collect()
}

/// The events of an answer that none of `entries` holds, because it says nothing: its tools have done something all
/// the same.
pub fn unanswered(state: &State, entries: &[Entry], answer: &Answer) -> Vec<EventDraft> {
    if entries.iter().any(|entry| matches!(entry, Entry::Answer(_))) {
        return Vec::new();
    }
    events(state.plan().strategy, answer)
}

/// Adds which words of `analysis` rest on which pages.
pub(super) fn cite(strategy: Strategy, answer: &Answer, analysis: &str, metadata: &mut Value) {
    let cited = if is_told(strategy) { citations(analysis, &answer.groundings) } else { Vec::new() };
    if let (false, Value::Object(metadata)) = (cited.is_empty(), metadata) {
        metadata.insert("citations".to_owned(), json!(cited));
    }
}

fn is_told(strategy: Strategy) -> bool {
    match strategy {
        Strategy::React => false,
        Strategy::SingleCall
        | Strategy::NativeThinking
        | Strategy::Synthesis
        | Strategy::SynthesisNativeThinking => true,
    }
}

fn run(run: &Run<'_>) -> EventDraft {
    let mut metadata = json!({"source": SOURCE});
    if let (false, Value::Object(metadata)) = (run.outcome.is_empty(), &mut metadata) {
        metadata.insert("outcome".to_owned(), run.outcome.into());
    }
    let event = EventDraft::new(EventType::CodeExecution, run.content(), metadata);
    if run.has_failed() { event.failed() } else { event }
}

fn reference(reference: &Reference<'_>) -> EventDraft {
    match reference {
        Reference::Search { queries, sources, supports } => {
            let metadata = with_supports(json!({"source": SOURCE, "queries": queries, "sources": sources}), supports);
            EventDraft::new(EventType::GoogleSearchResult, reference.content(), metadata)
        }
        Reference::Pages { sources, supports } => EventDraft::new(
            EventType::UrlContextResult,
            reference.content(),
            with_supports(pages(sources), supports),
        ),
    }
}

fn pages(sources: &[Source]) -> Value {
    json!({"source": SOURCE, "sources": sources})
}

fn with_supports(mut metadata: Value, supports: &[Support]) -> Value {
    if let (false, Value::Object(metadata)) = (supports.is_empty(), &mut metadata) {
        metadata.insert("supports".to_owned(), json!(supports));
    }
    metadata
}
