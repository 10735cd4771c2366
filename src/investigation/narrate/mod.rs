//! What the timeline tells of the entries of one checkpoint.

mod native;

pub use native::unanswered;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::investigation::entry::{Answer, Entry, FailureSource, Outcome, Reading};
use crate::investigation::react::ReplyKind;
use crate::investigation::results;
use crate::investigation::state::State;
use crate::investigation::timeline::{EventDraft, EventType};

/// What was measured while the entries came about; part of events, never of decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Milliseconds that the model took.
    pub model_ms: u64,
    /// Per call id.
    pub tools: BTreeMap<String, MeasuredTool>,
}

/// What was measured of one tool call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredTool {
    /// Milliseconds that it took.
    pub took_ms: u64,
    /// Bytes of the whole result.
    pub bytes: u64,
    /// The limit that the result was cut to.
    pub cut_to_tokens: Option<u32>,
}

/// The events of `entries`, which are about to be appended to `state`, in this order: thinking, code and
/// sources of the provider's own tools, text or final analysis, calls, results. A text that had to be read is told by what was understood of it.
pub fn narrate(state: &State, entries: &[Entry], measured: &Measured) -> Vec<EventDraft> {
    let analysis = entries.iter().find_map(|entry| {
        if let Entry::Ended { outcome: Outcome::Completed { analysis, .. } } = entry {
            Some(analysis.as_str())
        } else {
            None
        }
    });
    let failed = state.model_failure().is_some() || entries.iter().any(|entry| matches!(entry, Entry::Failed { .. }));
    let untold = |entry: &&Entry| !(failed && matches!(entry, Entry::Ended { .. }));
    entries.iter().filter(untold).flat_map(|entry| told(state, entry, analysis, measured)).collect()
}

fn told(state: &State, entry: &Entry, analysis: Option<&str>, measured: &Measured) -> Vec<EventDraft> {
    match entry {
        Entry::Answer(answer) => answered(state, answer, analysis, measured),
        Entry::ToolResult { call_id, tool, content, is_error } => {
            vec![result((call_id, tool), content, *is_error, measured)]
        }
        Entry::Observation { call_id, tool, content, is_error } => {
            vec![result((call_id, tool), results::plain(tool, content), *is_error, measured)]
        }
        Entry::Failed { error, timeout, source, .. } => {
            let kind = match source {
                FailureSource::Model => "model",
                FailureSource::Tool => "tool",
            };
            vec![EventDraft::new(EventType::Error, error, json!({"kind": kind, "timeout": timeout})).failed()]
        }
        // Only where no failed call has told it: then something else ended the execution.
        Entry::Ended { outcome: Outcome::Failed { error, reason } } => {
            vec![EventDraft::new(EventType::Error, error, json!({"kind": reason.as_str(), "timeout": false})).failed()]
        }
        Entry::Switched { provider } => {
            let name = state.plan().providers.get(*provider).map_or("another provider", |p| p.name.as_str());
            let content = format!("Going on with {name}");
            vec![EventDraft::new(EventType::ProviderFallback, content, json!({"provider": name}))]
        }
        Entry::Prompt { .. }
        | Entry::Feedback { .. }
        | Entry::Started { .. }
        | Entry::Lost { .. }
        | Entry::Concluding { .. }
        | Entry::Elided { .. }
        | Entry::Stopped { .. }
        | Entry::Ended { .. } => Vec::new(),
    }
}

fn result((call_id, tool): (&str, &str), content: &str, is_error: bool, measured: &Measured) -> EventDraft {
    let measured = measured.tools.get(call_id).copied().unwrap_or_default();
    let metadata = json!({
        "tool_name": tool, "call_id": call_id, "is_error": is_error, "took_ms": measured.took_ms,
        "bytes": measured.bytes, "cut_to_tokens": measured.cut_to_tokens,
    });
    EventDraft::new(EventType::ToolResult, content, metadata)
}

fn answered(state: &State, answer: &Answer, analysis: Option<&str>, measured: &Measured) -> Vec<EventDraft> {
    let mut events = Vec::new();
    if !answer.thinking.trim().is_empty() {
        let metadata =
            json!({"took_ms": measured.model_ms, "tokens": answer.usage.thinking_tokens, "source": "native"});
        events.push(EventDraft::new(EventType::LlmThinking, &answer.thinking, metadata));
    }
    let thought = answer.reading.as_ref().and_then(|reading| reading.thought.as_deref());
    if let Some(thought) = thought.filter(|thought| !thought.is_empty()) {
        let metadata = json!({"took_ms": measured.model_ms, "source": "react"});
        events.push(EventDraft::new(EventType::LlmThinking, thought, metadata));
    }
    let strategy = state.plan().strategy;
    events.extend(native::events(strategy, answer));
    if let Some(analysis) = analysis {
        let mut metadata = final_metadata(state, answer, measured);
        native::cite(strategy, answer, analysis, &mut metadata);
        events.push(EventDraft::new(EventType::FinalAnalysis, analysis, metadata));
    } else if let Some(reading) = &answer.reading {
        events.extend(misunderstood(reading));
    } else if !answer.text.trim().is_empty() {
        events.push(EventDraft::new(EventType::LlmResponse, &answer.text, Value::Null));
    }
    let left_out = answer.reading.as_ref().and_then(|reading| reading.problem.as_deref());
    events.extend(answer.calls.iter().map(|call| {
        let mut metadata = json!({"tool_name": call.tool, "call_id": call.id, "read_only": call.read_only});
        if let (Some(left_out), Value::Object(metadata)) = (left_out, &mut metadata) {
            metadata.insert("warning".to_owned(), left_out.into());
        }
        EventDraft::new(EventType::LlmToolCall, &call.arguments, metadata)
    }));
    events
}

fn final_metadata(state: &State, answer: &Answer, measured: &Measured) -> Value {
    let mut metadata = json!({"took_ms": measured.model_ms, "finish_reason": answer.finish});
    if let (Some(reason), Value::Object(metadata)) = (state.concluding(), &mut metadata) {
        metadata.insert("forced_conclusion".to_owned(), true.into());
        metadata.insert("stop_reason".to_owned(), reason.as_str().into());
        metadata.insert("iterations_used".to_owned(), state.iteration().into());
        metadata.insert("max_iterations".to_owned(), state.plan().limits.max_iterations.into());
    }
    metadata
}

/// An answer that asks for nothing that can be done.
fn misunderstood(reading: &Reading) -> Option<EventDraft> {
    let content = match (reading.kind, reading.problem.as_deref().unwrap_or_default()) {
        (ReplyKind::Malformed, problem) => format!("The answer was not understood: it has {problem}"),
        (ReplyKind::UnknownTool, problem) => format!("The answer asks for an {problem}"),
        (ReplyKind::Final | ReplyKind::Action, _) => return None,
    };
    let metadata = json!({"kind": reading.kind.as_str(), "timeout": false});
    Some(EventDraft::new(EventType::Error, content, metadata).failed())
}
