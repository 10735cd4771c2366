//! What the timeline tells of the entries of one checkpoint.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::entry::{Answer, Entry, FailureSource, Outcome};
use super::state::State;
use super::timeline::{EventDraft, EventType};

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

/// The events of `entries`, which are about to be appended to `state`, in the order of the seeds: thinking, text or
/// final analysis, calls, results.
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
        Entry::Answer(answer) => answered(answer, analysis, measured),
        Entry::ToolResult { call_id, tool, content, is_error } => {
            let measured = measured.tools.get(call_id).copied().unwrap_or_default();
            let metadata = json!({
                "tool_name": tool, "call_id": call_id, "is_error": is_error, "took_ms": measured.took_ms,
                "bytes": measured.bytes, "cut_to_tokens": measured.cut_to_tokens,
            });
            vec![EventDraft::new(EventType::ToolResult, content, metadata)]
        }
        Entry::Failed { error, timeout, source } => {
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

fn answered(answer: &Answer, analysis: Option<&str>, measured: &Measured) -> Vec<EventDraft> {
    let mut events = Vec::new();
    if !answer.thinking.trim().is_empty() {
        let metadata =
            json!({"took_ms": measured.model_ms, "tokens": answer.usage.thinking_tokens, "source": "native"});
        events.push(EventDraft::new(EventType::LlmThinking, &answer.thinking, metadata));
    }
    if let Some(analysis) = analysis {
        let metadata = json!({"took_ms": measured.model_ms, "finish_reason": answer.finish});
        events.push(EventDraft::new(EventType::FinalAnalysis, analysis, metadata));
    } else if !answer.text.trim().is_empty() {
        events.push(EventDraft::new(EventType::LlmResponse, &answer.text, Value::Null));
    }
    events.extend(answer.calls.iter().map(|call| {
        let metadata = json!({"tool_name": call.tool, "call_id": call.id, "read_only": call.read_only});
        EventDraft::new(EventType::LlmToolCall, &call.arguments, metadata)
    }));
    events
}
