//! The projection from the journal to the timeline: the events of the entries of one checkpoint.
//!
//! Each failure has one event. The result event of a tool call also covers its failure. A failure without a tool call
//! (a model call without an answer, an answer that was not understood or is empty, an unknown tool) is an `error` event
//! whose metadata has its `kind`.

mod approvals;
mod native;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::alert::{AlertStatus, Severity};
use crate::execution::cited_events;
use crate::execution::entry::{
    About, AlertUpdated, Answer, Dispatched, Entry, FailureSource, Fault, Mark, NotSent, Outcome,
    ParsedReply, StopReason, Summary, ToolCall,
};
use crate::execution::recovery::identity;
use crate::execution::results;
use crate::execution::state::State;
use crate::react::ReplyKind;
use crate::readable::presentation::Facts;
use crate::review::Review;
use crate::timeline::{EventDraft, EventType};
use crate::visible::is_blank;

/// Measurements of a checkpoint's calls; they are a part of events, never of decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Duration of the model call in milliseconds.
    pub model_ms: u64,
    /// Whether the failed model call may succeed later, as the LLM service reports it; `None` without a failure.
    pub retryable: Option<bool>,
    /// Per call id.
    pub tools: BTreeMap<String, MeasuredTool>,
    /// Durations of the model calls for summaries in milliseconds, per id of the summarised call.
    pub summaries_ms: BTreeMap<String, u64>,
}

/// Measurements of one tool call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredTool {
    /// Duration in milliseconds.
    pub took_ms: u64,
    /// Bytes of the whole result.
    pub bytes: u64,
    /// The limit that the result was cut to.
    pub cut_to_tokens: Option<u32>,
}

/// The events of `entries`, which are about to be appended to `state`, in this order: thinking, code and sources of the
/// provider's own tools, text or final analysis, calls, results. A `ReAct` text becomes the events of its sections.
pub fn project(state: &State, entries: &[Entry], measured: &Measured) -> Vec<EventDraft> {
    let after = entries.iter().skip(1).map(Some).chain([None]);
    entries
        .iter()
        .zip(after)
        .flat_map(|(entry, next): (&Entry, Option<&Entry>)| match entry {
            Entry::Ended { outcome } => ended(state, outcome, entries),
            Entry::ToolResult(_) | Entry::Observation(_) => {
                result(state, entry, entries, next, measured)
                    .into_iter()
                    .collect()
            }
            Entry::Answer(answer) => answered(state, answer, entries, measured),
            Entry::Failed {
                error,
                timeout,
                source,
                code,
            } => error_kind(*source, code)
                .map(|kind: &str| {
                    let event = EventDraft::new(
                        EventType::Error,
                        error,
                        json!({"kind": kind, "timeout": timeout}),
                    );
                    let is_call = *source == FailureSource::Model;
                    let code = (is_call && !code.is_empty()).then_some(code.as_str());
                    event
                        .with("code", code)
                        .with("retryable", if is_call { measured.retryable } else { None })
                        .failed()
                })
                .into_iter()
                .collect(),
            Entry::Switched { provider } => vec![switched(state, *provider, entries)],
            Entry::AlertUpdated(updated) => vec![alert_updated(updated)],
            Entry::Summarised(summary) => vec![summarised(state, summary, measured)],
            Entry::Dispatched(dispatched) => vec![self::dispatched(dispatched)],
            Entry::ApprovalRequested(asked) => vec![approvals::requested(state, asked)],
            Entry::ApprovalEnded(ended) => vec![approvals::ended(state, ended)],
            Entry::Prompt { .. }
            | Entry::Feedback { .. }
            | Entry::Started { .. }
            | Entry::Lost { .. }
            | Entry::SentBefore { .. }
            | Entry::Concluding { .. }
            | Entry::Elided { .. }
            | Entry::AfterWait { .. }
            | Entry::Stopped { .. } => Vec::new(),
        })
        .collect()
}

/// The event of a switch to the provider with this index. Its reason is the failure in the same checkpoint.
fn switched(state: &State, provider: usize, entries: &[Entry]) -> EventDraft {
    let name = |index: usize| {
        state
            .plan()
            .providers
            .get(index)
            .map_or("another provider", |plan| plan.name.as_str())
    };
    let from = name(state.provider());
    let to = name(provider);

    let (code, reason) = entries
        .iter()
        .find_map(Entry::model_failure)
        .unwrap_or_default();
    let why = if code.is_empty() {
        String::new()
    } else {
        format!(" ({code})")
    };
    let content = format!("{from} has failed{why}: {to} goes on");
    let metadata = json!({"from": from, "to": to, "code": code, "reason": reason});
    EventDraft::new(EventType::ProviderFallback, content, metadata)
}

/// The event of a sub-agent that begins; the events of its execution follow.
fn dispatched(dispatched: &Dispatched) -> EventDraft {
    let metadata = json!({
        "call_id": dispatched.call_id, "agent": dispatched.agent, "execution_id": dispatched.execution_id,
    });
    EventDraft::new(EventType::AgentDispatched, &dispatched.task, metadata)
}

/// The event of an update of the alert.
fn alert_updated(updated: &AlertUpdated) -> EventDraft {
    let metadata =
        json!({"update": updated.upto, "firing": updated.firing, "resolved": updated.resolved});
    EventDraft::new(EventType::AlertUpdated, &updated.content, metadata)
        .with("severity", updated.severity.map(Severity::as_str))
        .with("status", updated.status.map(AlertStatus::as_str))
}

/// The event of a summary, or of the failure to make one. The whole result stays in the store in either case.
fn summarised(state: &State, summary: &Summary, measured: &Measured) -> EventDraft {
    let long = state
        .long_results()
        .iter()
        .find(|long| long.call_id == summary.call_id);
    let provider = state
        .plan()
        .summaries
        .as_ref()
        .map(|summaries| &summaries.provider);
    let metadata = json!({
        "tool_name": long.map(|long| long.tool.as_str()), "call_id": summary.call_id,
        "result_event": long.map(|long| long.event), "bytes": long.map(|long| long.bytes),
        "provider": provider.map(|provider| provider.name.as_str()),
        "model": provider.map(|provider| provider.model.as_str()),
        "took_ms": measured.summaries_ms.get(&summary.call_id), "tokens": summary.usage.total(),
    });
    if summary.content.is_empty() {
        let content = format!("no summary, the result stays cut: {}", summary.error);
        return EventDraft::new(EventType::McpToolSummary, content, metadata).failed();
    }
    EventDraft::new(EventType::McpToolSummary, &summary.content, metadata)
}

/// The kind of the error event. A tool's failure has none: its result event covers it.
fn error_kind(source: FailureSource, code: &str) -> Option<&str> {
    match source {
        FailureSource::Model => Some("model"),
        // `empty`, or the reason why the answer does not count.
        FailureSource::Answer => Some(code),
        FailureSource::Tool => None,
    }
}

/// The event of an end that no answer and no failed call has an event for.
fn ended(state: &State, outcome: &Outcome, entries: &[Entry]) -> Vec<EventDraft> {
    let answers = entries.iter().any(|entry| entry.answer().is_some());
    let is_covered = state.model_failure().is_some()
        || entries.iter().any(|entry| entry.model_failure().is_some());
    match outcome {
        Outcome::Completed {
            analysis,
            reason,
            mark,
            review,
        } if !answers => {
            let metadata = json!({"fallback": true, "stop_reason": reason.as_str()});
            let event = EventDraft::new(EventType::FinalAnalysis, analysis, metadata);
            let event = event.with("mark", mark.map(Mark::as_str));
            vec![event.with("review", review.as_ref())]
        }
        Outcome::Failed { error, reason } if !is_covered => {
            let metadata = json!({"kind": reason.as_str(), "timeout": false});
            vec![EventDraft::new(EventType::Error, error, metadata).failed()]
        }
        Outcome::Completed { .. }
        | Outcome::Failed { .. }
        | Outcome::Cancelled
        | Outcome::TimedOut => Vec::new(),
    }
}

/// The event of the result `entry`. Its metadata distinguishes an error of the tool, a call without an answer, and a
/// lost call. `next` is the entry after the result: the failure of the call, if it has no answer.
fn result(
    state: &State,
    entry: &Entry,
    entries: &[Entry],
    next: Option<&Entry>,
    measured: &Measured,
) -> Option<EventDraft> {
    let shown = entry.result()?;
    // The error event in the place of the call covers a tool that is not offered.
    state.tool(&shown.tool)?;
    let content = if let Entry::Observation(_) = entry {
        results::plain(&shown.tool, &shown.content)
    } else {
        &shown.content
    };
    let measured = measured
        .tools
        .get(&shown.call_id)
        .copied()
        .unwrap_or_default();
    let metadata = json!({
        "tool_name": shown.tool, "call_id": shown.call_id, "is_error": shown.is_error, "took_ms": measured.took_ms,
        "bytes": measured.bytes, "cut_to_tokens": measured.cut_to_tokens,
    });
    let event = EventDraft::new(EventType::ToolResult, content, metadata)
        .with("not_sent", shown.not_sent.map(NotSent::as_str))
        .with("shown", shown.facts.as_ref().and_then(Facts::shown_words));
    let is_lost = entries
        .iter()
        .any(|entry| matches!(entry, Entry::Lost { call_id } if *call_id == shown.call_id));
    if is_lost {
        return Some(event.with("lost", Some(true)));
    }
    let Some(Entry::Failed {
        timeout,
        source: FailureSource::Tool,
        ..
    }) = next
    else {
        return Some(event);
    };
    let event = event.with("no_answer", Some(true));
    Some(event.with("timeout", Some(*timeout)))
}

/// The mark on the analysis that ends the checkpoint after an answer.
fn mark(entries: &[Entry]) -> Option<Mark> {
    let Some(Entry::Ended {
        outcome: Outcome::Completed { mark, .. },
    }) = entries.last()
    else {
        return None;
    };
    *mark
}

/// The outcome of the review that ends the checkpoint after an answer.
fn review(entries: &[Entry]) -> Option<&Review> {
    let Some(Entry::Ended {
        outcome: Outcome::Completed { review, .. },
    }) = entries.last()
    else {
        return None;
    };
    review.as_ref()
}

/// The faults for which a whole answer is asked for once more.
fn faults(entries: &[Entry]) -> Option<&[Fault]> {
    entries.iter().find_map(|entry| {
        let Entry::Feedback {
            about: Some(About::Answer(faults)),
            ..
        } = entry
        else {
            return None;
        };
        Some(faults.as_slice())
    })
}

fn answered(
    state: &State,
    answer: &Answer,
    entries: &[Entry],
    measured: &Measured,
) -> Vec<EventDraft> {
    let mut events: Vec<EventDraft> = refused_tools(state, answer).into_iter().collect();
    if !answer.thinking.trim().is_empty() {
        let metadata = json!({"took_ms": measured.model_ms, "tokens": answer.usage.thinking_tokens, "source": "native"});
        let event = EventDraft::new(EventType::LlmThinking, &answer.thinking, metadata);
        events.push(event.with("signed", answer.is_signed.then_some(true)));
    }
    let reading = answer.reading.as_deref();
    let thought = reading.and_then(|reading| reading.thought.as_deref());
    if let Some(thought) = thought.filter(|thought| !thought.is_empty()) {
        let metadata = json!({"took_ms": measured.model_ms, "source": "react"});
        events.push(EventDraft::new(EventType::LlmThinking, thought, metadata));
    }
    events.extend(native::events(state.plan().strategy, answer));
    if let Some(analysis) = entries.iter().find_map(Entry::analysis) {
        let event = final_analysis(state, answer, analysis, measured);
        let event = event.with("mark", mark(entries).map(Mark::as_str));
        events.push(event.with("review", review(entries)));
    } else if let Some(reading) = reading
        && faults(entries).is_none()
    {
        events.extend(misunderstood(reading));
    } else if !is_blank(&answer.text) {
        let cited = native::citations(state.plan().strategy, answer, &answer.text);
        let asked_again = asked_again(state, answer, entries);
        let metadata = if cited.is_some() || asked_again.is_some() {
            json!({})
        } else {
            Value::Null
        };
        let event = EventDraft::new(EventType::LlmResponse, &answer.text, metadata)
            .with("citations", cited);
        events.push(event.with("asked_again", asked_again));
    }
    let left_out = reading.and_then(|reading| reading.problem.as_deref());
    events.extend(answer.calls.iter().map(|call| asked(state, call, left_out)));
    events
}

/// The event of the tools that the provider has refused before this answer.
fn refused_tools(state: &State, answer: &Answer) -> Option<EventDraft> {
    let refused = state.newly_refused(answer);
    let names: Vec<&str> = refused
        .iter()
        .map(|refused| refused.tool.as_str())
        .collect();
    let provider = state
        .plan()
        .providers
        .get(state.provider())
        .map_or("the provider", |plan| plan.name.as_str());
    let content = format!(
        "{provider} refuses the definition of {}: the investigation goes on without",
        names.join(", ")
    );
    let metadata =
        json!({"kind": "refused_tools", "timeout": false, "provider": provider, "tools": refused});
    (!refused.is_empty()).then(|| EventDraft::new(EventType::Error, content, metadata).failed())
}

/// The reason why the answer does not count, or does not count yet; `None` for one that does.
fn asked_again(state: &State, answer: &Answer, entries: &[Entry]) -> Option<Vec<&'static str>> {
    if let Some(faults) = faults(entries) {
        return Some(faults.iter().map(|fault| fault.as_str()).collect());
    }
    state.why_not_taken(answer).map(|reason| vec![reason])
}

/// The event of a call, or the error for an unknown tool.
fn asked(state: &State, call: &ToolCall, left_out: Option<&str>) -> EventDraft {
    if state.tool(&call.tool).is_none() {
        let content = format!("The answer asks for an unknown tool '{}'", call.tool);
        let metadata = json!({"kind": ReplyKind::UnknownTool.as_str(), "timeout": false, "tool_name": call.tool, "call_id": call.id});
        return EventDraft::new(EventType::Error, content, metadata).failed();
    }
    let metadata = json!({"tool_name": call.tool, "call_id": call.id, "read_only": call.read_only});
    EventDraft::new(EventType::LlmToolCall, &call.arguments, metadata)
        .with("warning", left_out)
        .with("approval", state.needs_person(&call.tool).then_some(true))
        .with(
            "identity",
            (!call.read_only).then(|| identity(&call.tool, &call.arguments)),
        )
}

/// The event of the end, with the pages that support its words and the cited numbers that belong to no known result.
fn final_analysis(
    state: &State,
    answer: &Answer,
    analysis: &str,
    measured: &Measured,
) -> EventDraft {
    let forced = state.concluding();
    let unknown = state
        .citable()
        .map(|known| cited_events::unknown(analysis, &known))
        .unwrap_or_default();
    let metadata = json!({"took_ms": measured.model_ms, "finish_reason": answer.finish});
    EventDraft::new(EventType::FinalAnalysis, analysis, metadata)
        .with("forced_conclusion", forced.map(|_| true))
        .with("stop_reason", forced.map(StopReason::as_str))
        .with("iterations_used", forced.map(|_| state.iterations_used()))
        .with(
            "max_iterations",
            forced.map(|_| state.plan().limits.max_iterations),
        )
        .with(
            "citations",
            native::citations(state.plan().strategy, answer, analysis),
        )
        .with(
            "unknown_citations",
            (!unknown.is_empty()).then_some(unknown),
        )
}

/// The error for an answer without a valid call or end.
fn misunderstood(reading: &ParsedReply) -> Option<EventDraft> {
    let content = match (reading.kind, reading.problem.as_deref().unwrap_or_default()) {
        (ReplyKind::Malformed, problem) => {
            format!("The answer was not understood: it has {problem}")
        }
        (ReplyKind::UnknownTool, problem) => format!("The answer asks for an {problem}"),
        (ReplyKind::Final | ReplyKind::Action, _) => return None,
    };
    let metadata = json!({"kind": reading.kind.as_str(), "timeout": false});
    Some(EventDraft::new(EventType::Error, content, metadata).failed())
}
