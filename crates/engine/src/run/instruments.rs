//! The metrics of a run, and its lines in the log.

use std::time::Duration;

use chrono::Utc;
use tracing::Span;

use super::control::Interrupted;
use super::performed::millis;
use super::session_end::SessionEnded;
use crate::ports::{ModelError, ToolCallRecord, ToolCallState, WakeCause};
use tarsy_core::execution::entry::{
    About, Answer, ApprovalOutcome, Entry, Mark, Outcome, Summary, Usage,
};
use tarsy_core::execution::state::State;
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::summary::{Sure, fields};
use tarsy_core::vocabulary::ErrorCode;

/// Counts a model call that ended. `provider` is its name in the configuration.
pub(super) fn model_call(provider: &str, reply: &Result<Answer, ModelError>, took: Duration) {
    let provider = || provider.to_owned();
    let outcome = match reply {
        Ok(_) => "answered",
        Err(ModelError::Unavailable(_) | ModelError::Broke(_)) => "unavailable",
        Err(ModelError::Failed { .. }) => "failed",
    };
    metrics::counter!("tarsy_model_calls_total", "provider" => provider(), "outcome" => outcome)
        .increment(1);
    metrics::histogram!("tarsy_model_call_duration_seconds", "provider" => provider())
        .record(took.as_secs_f64());
    let Ok(Answer { usage, .. }) = reply else {
        return;
    };
    for (direction, tokens) in [
        ("input", usage.input_tokens),
        ("cached", usage.cached_tokens),
        ("output", usage.output_tokens),
        ("thinking", usage.thinking_tokens),
    ] {
        metrics::counter!("tarsy_model_tokens_total", "provider" => provider(), "direction" => direction)
            .increment(tokens);
    }
}

/// Counts the calls of an answer beyond `max`, which are not run; 0 for no limit.
pub(super) fn calls_beyond(max: u32, requested: usize) {
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let beyond = u64::try_from(requested.saturating_sub(max)).unwrap_or(u64::MAX);
    if max > 0 && beyond > 0 {
        metrics::counter!("tarsy_tool_calls_not_run_total", "reason" => "too_many")
            .increment(beyond);
    }
}

/// The ids that each line about an execution has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ids {
    pub(super) session_id: SessionId,
    pub(super) execution_id: ExecutionId,
}

/// Logs and counts the facts of a checkpoint that change how its execution continues. `state` is that before the
/// entries.
pub(super) fn facts(ids: Ids, state: &State, entries: &[Entry]) {
    let Ids {
        session_id,
        execution_id,
    } = ids;
    answers(ids, state, entries);
    for entry in entries {
        if let Some(answer) = entry.answer() {
            refused_tools(ids, state, answer);
        } else if let Entry::Elided { up_to, .. } = entry {
            tracing::info!(%session_id, %execution_id, up_to, "conversation shortened: its oldest tool results are left out");
            metrics::counter!("tarsy_context_elisions_total").increment(1);
        } else if let Entry::Concluding { reason } = entry {
            tracing::warn!(
                %session_id, %execution_id, reason = reason.as_str(), iterations = state.iteration(),
                max_iterations = state.plan().limits.max_iterations, "conclusion forced"
            );
            metrics::counter!("tarsy_conclusions_forced_total", "reason" => reason.as_str())
                .increment(1);
        } else if let Some(to) = entry.switched_to() {
            switched(ids, state, to, entries);
        } else {
            approvals(ids, state, entry);
        }
    }
}

/// Logs and counts a request for an approval, or its end.
fn approvals(ids: Ids, state: &State, entry: &Entry) {
    let Ids {
        session_id,
        execution_id,
    } = ids;
    if let Entry::ApprovalRequested(requested) = entry {
        let policy = requested.policy.clone();
        tracing::info!(%session_id, %execution_id, call_id = requested.call_id, policy, "approval requested");
        metrics::counter!("tarsy_approvals_requested_total", "policy" => policy).increment(1);
    } else if let Entry::ApprovalEnded(ended) = entry {
        let call = state.open_call(&ended.call_id);
        let tool = call.and_then(|call| state.plan().tool(&call.tool));
        let rule = tool.and_then(|tool| tool.approval.as_ref());
        let policy = rule.map(|rule| rule.policy.clone()).unwrap_or_default();
        let outcome = ended.outcome.as_str();
        tracing::info!(
            %session_id, %execution_id, call_id = ended.call_id, policy, outcome, waited_secs = ended.waited_secs,
            "approval ended"
        );
        metrics::counter!("tarsy_approvals_ended_total", "outcome" => outcome).increment(1);
        if ended.outcome != ApprovalOutcome::NotAsked {
            let waited = Duration::from_secs(ended.waited_secs);
            metrics::histogram!("tarsy_approval_wait_seconds").record(waited.as_secs_f64());
        }
    }
}

/// Counts a session that waited for people and is queued again.
pub(crate) fn session_woken(cause: WakeCause) {
    metrics::counter!("tarsy_sessions_woken_total", "cause" => cause.as_str()).increment(1);
}

/// Logs and counts the tools that the provider has refused before this answer.
fn refused_tools(ids: Ids, state: &State, answer: &Answer) {
    let refused = state.newly_refused(answer);
    let Some(first) = refused.first() else { return };
    let provider = provider_name(state, state.provider());
    let tools = refused
        .iter()
        .map(|refused| refused.tool.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let count = u64::try_from(refused.len()).unwrap_or(u64::MAX);
    tracing::warn!(
        session_id = %ids.session_id, execution_id = %ids.execution_id, provider, tools,
        "tools left out: the provider refuses them: {}", first.reason
    );
    metrics::counter!("tarsy_tools_refused_total", "provider" => provider).increment(count);
}

/// Logs and counts an answer that does not count, and an analysis with a mark.
fn answers(ids: Ids, state: &State, entries: &[Entry]) {
    let Ids {
        session_id,
        execution_id,
    } = ids;
    for reason in entries.iter().flat_map(|entry| not_taken(state, entry)) {
        tracing::info!(%session_id, %execution_id, reason, "answer not taken: the model is asked again");
        metrics::counter!("tarsy_answers_asked_again_total", "reason" => reason).increment(1);
    }
    if let Some(Entry::Ended {
        outcome:
            Outcome::Completed {
                mark,
                analysis,
                review: None,
                ..
            },
    }) = entries.last()
    {
        if let Some(mark) = mark {
            tracing::warn!(%session_id, %execution_id, mark = mark.as_str(), "analysis is marked: {}", mark.sentence());
        }
        let sure = fields(analysis).sure.map_or("none", Sure::as_str);
        let mark = mark.map_or("none", Mark::as_str);
        metrics::counter!("tarsy_analyses_total", "mark" => mark, "sure" => sure).increment(1);
    }
}

/// The reason why an answer, or the answer before a message about it, is asked for again.
fn not_taken(state: &State, entry: &Entry) -> Vec<&'static str> {
    if let Entry::Feedback {
        about: Some(About::Answer(faults)),
        ..
    } = entry
    {
        return faults.iter().map(|fault| fault.as_str()).collect();
    }
    entry
        .answer()
        .and_then(|answer| state.why_not_taken(answer))
        .into_iter()
        .collect()
}

/// Logs the calls of one decision that have ended together.
pub(super) fn tools_ended(
    ids: Ids,
    iteration: u32,
    requested: usize,
    calls: &[ToolCallRecord],
    took: Duration,
) {
    let count = |state| calls.iter().filter(|call| call.state == state).count();
    tracing::info!(
        session_id = %ids.session_id, execution_id = %ids.execution_id, iteration,
        done = count(ToolCallState::Done), failed = count(ToolCallState::Failed), lost = count(ToolCallState::Lost),
        not_sent = requested.saturating_sub(calls.len()), duration_ms = millis(took), "tool calls ended"
    );
}

/// Counts a summary of a tool result, or the failure to make one.
pub(super) fn summary(summary: &Summary) {
    let outcome = if summary.content.is_empty() {
        "failed"
    } else {
        "done"
    };
    metrics::counter!("tarsy_tool_result_summaries_total", "outcome" => outcome).increment(1);
}

/// Counts a tool call that ended. `server` is its name in the configuration.
pub(super) fn tool_call(server: &str, state: ToolCallState) {
    metrics::counter!("tarsy_tool_calls_total", "server" => server.to_owned(), "outcome" => state.as_str())
        .increment(1);
}

/// Records the duration of a tool call.
pub(super) fn tool_took(server: &str, took: Duration) {
    metrics::histogram!("tarsy_tool_call_duration_seconds", "server" => server.to_owned())
        .record(took.as_secs_f64());
}

/// Records the iterations of an execution that has ended.
pub(super) fn execution_ended(state: &State) {
    metrics::histogram!("tarsy_execution_iterations").record(f64::from(state.iteration()));
}

/// Logs and counts a switch to the provider with the index `to`.
fn switched(ids: Ids, state: &State, to: usize, entries: &[Entry]) {
    let (code, _reason) = entries
        .iter()
        .find_map(Entry::model_failure)
        .unwrap_or_default();
    let from = provider_name(state, state.provider());
    let to = provider_name(state, to);
    tracing::warn!(
        session_id = %ids.session_id, execution_id = %ids.execution_id, from, to, code,
        "provider failed: falling back to another one"
    );
    metrics::counter!("tarsy_provider_fallbacks_total", "provider" => from, "code" => ErrorCode::parse(code).as_str())
        .increment(1);
}

fn provider_name(state: &State, index: usize) -> String {
    let provider = state.plan().providers.get(index);
    provider.map(|plan| plan.name.clone()).unwrap_or_default()
}

/// Counts a session that was opened. The derived id of its alert holds the time at which the stream stored it.
pub(crate) fn opened(derived_id: SessionId) {
    metrics::counter!("tarsy_sessions_opened_total").increment(1);
    if let Some(stored) = derived_id.0.get_timestamp() {
        let (seconds, nanos) = stored.to_unix();
        let stored = Duration::new(seconds, nanos).as_secs_f64();
        let now =
            Duration::from_micros(u64::try_from(Utc::now().timestamp_micros()).unwrap_or_default())
                .as_secs_f64();
        // The clocks of two machines differ: a negative wait counts as none.
        metrics::histogram!("tarsy_session_wait_seconds").record((now - stored).max(0.0));
    }
}

/// Logs the end of a session, once: only the worker that has committed it calls this.
pub(crate) fn session_ended(session_id: SessionId, ended: &SessionEnded, took: Duration) {
    tracing::info!(
        %session_id, status = ended.status.as_str(), stop_reason = ended.reason.as_str(),
        iterations = ended.iterations, duration_ms = millis(took), "session ended"
    );
}

/// Adds the end of a run to its span.
pub(crate) fn run_ended(span: &Span, end: &Result<Option<SessionEnded>, Interrupted>) {
    let word = match end {
        Ok(Some(ended)) => ended.status.as_str(),
        Ok(None) => "ended",
        Err(Interrupted::LeaseLost) => "lease_lost",
        Err(Interrupted::Panicked) => "panicked",
        Err(Interrupted::Parked) => "parked",
        Err(Interrupted::Release(reason)) => reason.as_str(),
    };
    span.record("tarsy.run.end", word);
}

/// Logs an iteration that is over.
pub(super) fn iteration_ended(ids: Ids, ended: &IterationEnded<'_>) {
    tracing::info!(
        session_id = %ids.session_id, execution_id = %ids.execution_id, iteration = ended.number,
        agent = ended.agent, provider = ended.provider, model = ended.model, outcome = ended.outcome,
        input_tokens = ended.usage.input_tokens, output_tokens = ended.usage.output_tokens,
        tools = ended.tools.join(","), duration_ms = millis(ended.took), "iteration ended"
    );
}

/// An iteration that is over, for its line in the log.
pub(super) struct IterationEnded<'a> {
    pub(super) agent: &'a str,
    /// Counted from 1.
    pub(super) number: u32,
    /// Its name in the configuration.
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
    /// `answered`, `failed`, or `stopped` without either.
    pub(super) outcome: &'static str,
    pub(super) usage: Usage,
    /// The called tools, as the plan names them.
    pub(super) tools: Vec<&'a str>,
    pub(super) took: Duration,
}
