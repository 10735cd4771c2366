//! The end of a session whose chain does not continue: by its deadline, a cancel request, or too many attempts.

use std::sync::Arc;

use serde_json::json;

use super::control::Interrupted;
use super::performed::now;
use super::progress::Progress;
use super::session_end::{Ending, SessionEnded, commit_end, finish, sentence};
use crate::ports::{DeadReason, Journal, Lease, RunStatus, SessionEnd, SessionRecord, StoreError};
use crate::world::{Ports, World};
use tarsy_core::chain::{self, Conclusion, EarlyEnd};
use tarsy_core::execution::absorb::without_answer;
use tarsy_core::execution::entry::{Entry, Mark, Outcome, StopReason};
use tarsy_core::execution::state::State;
use tarsy_core::ids::SessionId;
use tarsy_core::plan::NEWEST_VERSION;
use tarsy_core::summary::executive_summary;

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
        if record.plan.version > NEWEST_VERSION {
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

/// The session and its end, if nothing but its review is left. A journal that cannot be read must not keep the session
/// from its end.
async fn completed<W: World>(
    ports: &Ports<W>,
    session: SessionId,
) -> Option<(SessionRecord, Conclusion)> {
    match ports.journal.load(session).await {
        Ok(record) if record.plan.version <= NEWEST_VERSION => {
            let conclusion = chain::without_review(&record)?;
            Some((record, conclusion))
        }
        Ok(_) => None,
        Err(error) => {
            tracing::warn!(session_id = %session, "session that ends not read: {error}");
            None
        }
    }
}

/// Ends a session whose chain must not continue. A stop takes over what was found before it. A session that has only
/// its review left is completed: the review is optional.
///
/// # Errors
/// When another worker owns the session, or the session has to be released.
pub(crate) async fn end_early<W: World>(
    ports: &Ports<W>,
    lease: Lease,
    end: EarlyEnd,
) -> Result<SessionEnded, Interrupted> {
    if let Some((record, conclusion)) = completed(ports, lease.session_id).await {
        let progress = Progress::new(record);
        let ending = Ending {
            stage: None,
            conclusion,
        };
        return Box::pin(finish(ports, lease, &progress, ending)).await;
    }
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
        review: None,
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
