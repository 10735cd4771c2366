//! The end of a session: committed once, by the owner of its lease.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::control::Interrupted;
use super::performed::now;
use crate::ports::{
    CancelRequests as _, DeadReason, Feed, Journal, Lease, RunStatus, SessionEnd, SessionRecord,
    StoreError,
};
use crate::world::{Ports, World};
use tarsy_core::chain::{self, EarlyEnd};
use tarsy_core::execution::absorb::without_answer;
use tarsy_core::execution::entry::{Entry, Mark, Outcome, StopReason};
use tarsy_core::execution::state::State;
use tarsy_core::ids::SessionId;
use tarsy_core::plan::FORMAT_VERSION;
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

/// The analysis that is left to a session which ends before its chain does.
struct Left {
    analysis: String,
    mark: Mark,
    /// The name of its stage.
    of_stage: String,
}

/// The findings of the last stage that has any. At the deadline, an answer counts that was to be given once more. A
/// journal that cannot be read must not keep the session from its end.
async fn left<W: World>(ports: &Ports<W>, session: SessionId, end: &EarlyEnd) -> Option<Left> {
    let read = async {
        let mut record = ports.journal.load(session).await?;
        if record.plan.version > FORMAT_VERSION {
            return Ok(None);
        }
        let mut mark = None;
        if *end == EarlyEnd::Deadline {
            mark = hold_answers(ports, session, &mut record).await?;
        }
        let Some(found) = chain::findings(&record) else {
            return Ok(None);
        };
        mark = mark.max(mark_of(ports, session, &record, found.stage_no).await?);
        let stage = record.plan.stage(found.stage_no);
        Ok(Some(Left {
            analysis: found.analysis,
            mark: mark.max(Some(Mark::OfStage)).unwrap_or(Mark::OfStage),
            of_stage: stage.map(|stage| stage.name.clone()).unwrap_or_default(),
        }))
    };
    let read: Result<Option<Left>, StoreError> = read.await;
    read.unwrap_or_else(|error| {
        tracing::warn!(session_id = %session, "findings of a session that ends not read: {error}");
        None
    })
}

/// Gives the running executions of the last stage the answers that they hold. Returns their most serious mark.
async fn hold_answers<W: World>(
    ports: &Ports<W>,
    session: SessionId,
    record: &mut SessionRecord,
) -> Result<Option<Mark>, StoreError> {
    let mut worst = None;
    let Some(stage) = record.stages.last_mut() else {
        return Ok(None);
    };
    let running = stage.executions.iter_mut();
    for run in running.filter(|run| run.status == RunStatus::Running && run.checkpoint > 0) {
        let stage = record.plan.stage(stage.stage_no);
        let Some(agent) = stage.and_then(|stage| stage.agent(run.agent_no)) else {
            continue;
        };
        let entries = ports.journal.entries(session, run.execution_id).await?;
        let state = State::replay(Arc::clone(agent), None, entries);
        if let Entry::Ended {
            outcome: Outcome::Completed { analysis, mark, .. },
        } = without_answer(&state, Outcome::TimedOut)
        {
            run.analysis = Some(analysis);
            worst = worst.max(mark);
        }
    }
    Ok(worst)
}

/// The most serious mark of the analyses of a stage.
async fn mark_of<W: World>(
    ports: &Ports<W>,
    session: SessionId,
    record: &SessionRecord,
    stage_no: u32,
) -> Result<Option<Mark>, StoreError> {
    let mut worst = None;
    let mut stages = record.stages.iter();
    let stage = stages.find(|stage| stage.stage_no == stage_no);
    let runs = stage.into_iter().flat_map(|stage| &stage.executions);
    for run in runs.filter(|run| run.status == RunStatus::Completed) {
        let entries = ports.journal.entries(session, run.execution_id).await?;
        let ends = entries.into_iter().rev().map(|recorded| recorded.entry);
        for end in ends.take(1) {
            if let Entry::Ended {
                outcome: Outcome::Completed { mark, .. },
            } = end
            {
                worst = worst.max(mark);
            }
        }
    }
    Ok(worst)
}

/// Ends a session whose chain must not continue. A stop takes over what was found before it.
///
/// # Errors
/// When another worker owns the session, or the session has to be released.
pub(crate) async fn end_early<W: World>(
    ports: &Ports<W>,
    lease: Lease,
    end: EarlyEnd,
) -> Result<SessionEnded, Interrupted> {
    let reason = end.stop_reason();
    let left = match end {
        EarlyEnd::Cancelled | EarlyEnd::Deadline => left(ports, lease.session_id, &end).await,
        EarlyEnd::AttemptsExhausted | EarlyEnd::GivenUp(_) => None,
    };
    let (status, error) = end.outcome();
    let content = error.clone().unwrap_or_else(|| sentence(status));
    let mark = left.as_ref().map(|left| left.mark);
    let analysis = left.as_ref().map(|left| left.analysis.clone());
    let event = status
        .end_event(content, json!({"stop_reason": reason.as_str()}))
        .with("mark", mark.map(Mark::as_str))
        .with("of_stage", left.map(|left| left.of_stage));
    let end = SessionEnd {
        status,
        reason,
        executive_summary: analysis.as_deref().and_then(executive_summary),
        final_analysis: analysis,
        mark,
        error,
        at: now(),
        event,
        stage: None,
        dead_letter: (reason == StopReason::AttemptsExhausted)
            .then_some(DeadReason::AttemptsExhausted),
        covered_updates: 0,
    };
    commit_end(ports, lease, end).await?;
    Ok(SessionEnded {
        status,
        reason,
        iterations: None,
    })
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
    ports.journal.finish(lease, end).await?;
    metrics::counter!("tarsy_sessions_finished_total", "status" => status).increment(1);
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
