//! The end of a session: committed once, by the owner of its lease.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::control::{Interrupted, ReleaseReason};
use super::performed::now;
use super::progress::{ExecutionTotals, Progress};
use crate::ports::{
    CancelRequests as _, Feed, Journal, Lease, RunStatus, SessionEnd, SessionRecord, StageEnded,
};
use crate::world::{Ports, World};
use tarsy_core::chain::{self, Conclusion};
use tarsy_core::execution::entry::{Mark, StopReason, Usage};
use tarsy_core::execution::state::State;
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::plan::StagePlan;
use tarsy_core::summary::executive_summary;

/// The time limit for the name of the person who asked to cancel: the end of the session does not wait longer for it.
const NAME_TIMEOUT: Duration = Duration::from_secs(2);

/// The committed end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEnded {
    pub status: RunStatus,
    pub reason: StopReason,
    /// Answers of models in all executions; `None` if the session ended without reading its journal.
    pub iterations: Option<u32>,
}

/// The end of a session whose chain has ended.
pub(super) struct Ending {
    /// The end of its last stage, if it is not committed yet.
    pub(super) stage: Option<StageEnded>,
    pub(super) conclusion: Conclusion,
}

/// The parts of a session that count for its end.
#[derive(Clone, Copy)]
struct Counted {
    /// The execution whose reason the session takes over.
    deciding: Option<ExecutionId>,
    /// The stage whose analysis the session ends with.
    answering: Option<u32>,
}

/// Commits the end of the session, with that of its last `stage` if it is not committed yet.
pub(super) async fn finish<W: World>(
    ports: &Ports<W>,
    lease: Lease,
    progress: &Progress,
    ending: Ending,
) -> Result<SessionEnded, Interrupted> {
    let Ending { stage, conclusion } = ending;
    let answering = chain::answering(&progress.record, &conclusion);
    let Conclusion {
        status,
        analysis,
        error,
        taken_over_from,
        review,
    } = conclusion;
    let deciding = chain::deciding(&progress.record, status);
    let counted = Counted {
        deciding,
        answering,
    };
    let totals = totals(ports, lease.session_id, progress, counted).await?;
    let reason = totals.reason.unwrap_or(StopReason::Error);
    let content = match &error {
        Some(error) if status == RunStatus::Failed => error.clone(),
        Some(_) | None => sentence(status),
    };
    let metadata = json!({
        "stop_reason": reason.as_str(), "iterations": totals.iterations, "tool_calls": totals.tool_calls,
        "input_tokens": totals.usage.input_tokens, "cached_tokens": totals.usage.cached_tokens,
        "output_tokens": totals.usage.output_tokens, "thinking_tokens": totals.usage.thinking_tokens,
    });
    let mut mark = None;
    if analysis.is_some() {
        let is_missing_server = !progress.record.plan.unavailable_servers.is_empty();
        mark = totals
            .mark
            .max(is_missing_server.then_some(Mark::MissingServer))
            .max(taken_over_from.map(|_| Mark::OfStage))
            .max(review.as_ref().and_then(|reviewed| reviewed.mark));
    }
    let review = review.map(|reviewed| reviewed.review);
    let of_stage = taken_over_from.and_then(|stage_no| progress.record.plan.stage(stage_no));
    let event = status
        .end_event(content, metadata)
        .with("mark", mark.map(Mark::as_str))
        .with("of_stage", of_stage.map(|stage| stage.name.as_str()))
        .with("review", review.as_ref());
    let end = SessionEnd {
        status,
        reason,
        executive_summary: analysis.as_deref().and_then(executive_summary),
        mark,
        review,
        final_analysis: analysis,
        error,
        at: now(),
        event,
        stage,
        dead_letter: None,
        covered_updates: totals.covered_updates.unwrap_or_default(),
    };
    commit_end(ports, lease, end).await?;
    Ok(SessionEnded {
        status,
        reason,
        iterations: Some(totals.iterations),
    })
}

/// Sums the journals of all executions, so that a restart loses no number. The reason and the
/// marks are those of `counted`.
async fn totals<W: World>(
    ports: &Ports<W>,
    session: SessionId,
    progress: &Progress,
    counted: Counted,
) -> Result<Totals, Interrupted> {
    let record = &progress.record;
    let mut totals = Totals::default();
    for stage in &record.stages {
        let is_review = chain::is_review(&record.plan, stage.stage_no);
        for run in &stage.executions {
            let Some(agent) = stage_plan(record, stage.stage_no)?.agent(run.agent_no) else {
                continue;
            };
            let of_run = match progress.totals_of(run.execution_id) {
                Some(totals) => totals,
                // It ended before this run began.
                None => {
                    let entries = ports.journal.entries(session, run.execution_id).await?;
                    ExecutionTotals::from_state(&State::replay(Arc::clone(agent), None, entries))
                }
            };
            totals.iterations += of_run.iterations;
            totals.tool_calls += of_run.tool_calls;
            totals.usage = totals.usage.plus(of_run.usage);
            let is_last = counted.answering == Some(stage.stage_no);
            totals.mark = totals.mark.max(
                of_run
                    .mark
                    .filter(|mark| is_last || !is_review && mark.is_of_session()),
            );
            if run.status == RunStatus::Completed && is_last {
                let answered = of_run.answered_updates;
                totals.covered_updates = Some(
                    totals
                        .covered_updates
                        .map_or(answered, |least| least.min(answered)),
                );
            }
            if counted.deciding == Some(run.execution_id) {
                totals.reason = of_run.reason;
            }
        }
    }
    Ok(totals)
}

#[derive(Default)]
struct Totals {
    iterations: u32,
    tool_calls: u32,
    usage: Usage,
    reason: Option<StopReason>,
    /// The most serious mark of the analyses that the session ends with, and of those that weigh in any stage.
    mark: Option<Mark>,
    /// The last update that every analysis of the last stage knew; `None` without an analysis.
    covered_updates: Option<u32>,
}

pub(super) async fn commit_end<W: World>(
    ports: &Ports<W>,
    lease: Lease,
    mut end: SessionEnd,
) -> Result<(), Interrupted> {
    let status = end.status.as_str();
    if end.status == RunStatus::Cancelled {
        end.event = end
            .event
            .with("cancelled_by", requested_by(ports, lease.session_id).await);
    }
    let verdict = end.review.as_ref().map(|review| review.verdict.as_str());
    ports.journal.finish(lease, end).await?;
    metrics::counter!("tarsy_sessions_finished_total", "status" => status).increment(1);
    if let Some(verdict) = verdict {
        metrics::counter!("tarsy_reviews_total", "verdict" => verdict).increment(1);
    }
    ports.feed.committed(lease.session_id);
    Ok(())
}

/// The name of the person who asked to cancel a session, if the broker has it and answers soon.
pub async fn requested_by<W: World>(ports: &Ports<W>, session: SessionId) -> Option<String> {
    tokio::time::timeout(NAME_TIMEOUT, ports.cancel_requests.requested_by(session))
        .await
        .ok()
        .flatten()
}

pub(super) fn sentence(status: RunStatus) -> String {
    format!("Investigation {}", status.as_str().replace('_', " "))
}

/// The stage of this number in the plan.
pub(super) fn stage_plan(
    record: &SessionRecord,
    stage_no: u32,
) -> Result<&StagePlan, ReleaseReason> {
    record
        .plan
        .stage(stage_no)
        .ok_or_else(|| no_stage(stage_no))
}

pub(super) fn no_stage(stage_no: u32) -> ReleaseReason {
    ReleaseReason::Incompatible(format!("the plan has no stage number {stage_no}"))
}
