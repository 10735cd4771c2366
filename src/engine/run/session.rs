//! One leased session, brought to its end: the chain's decisions, performed.

use std::sync::Arc;

use serde_json::{Map, json};
use tokio::task::JoinSet;

use super::control::{Control, Interrupted, ReleaseReason};
use super::execution::{Execution, interrupted, now};
use crate::engine::ports::{
    DeadReason, ExecutionBegin, ExecutionRecord, Feed, Journal, Lease, RunStatus, SessionEnd, SessionRecord,
    SessionStep, StageBegin, StageChange, StageEnd,
};
use crate::engine::world::{Ports, World};
use crate::investigation::chain::{self, Next};
use crate::investigation::execution::entry::{Outcome, StopReason, Usage};
use crate::investigation::execution::state::State;
use crate::investigation::ids::ExecutionId;
use crate::investigation::plan::{FORMAT_VERSION, StagePlan};
use crate::investigation::summary::executive_summary;
use crate::investigation::timeline::{EventDraft, EventType};

/// Runs a session from its last committed step until its end is committed.
///
/// # Errors
/// When another worker owns the session or has to go on with it.
pub async fn investigate<W: World>(ports: Ports<W>, lease: Lease, control: Control) -> Result<(), Interrupted> {
    loop {
        let record = ports.journal.load(lease.session_id).await.map_err(interrupted)?;
        if record.plan.version > FORMAT_VERSION {
            let error = format!("plan version {} is newer than {FORMAT_VERSION}", record.plan.version);
            return Err(Interrupted::Release(ReleaseReason::Incompatible(error)));
        }
        match chain::next(&record) {
            Next::Begin(stage_no) => begin(&ports, lease, &record, stage_no).await?,
            Next::Run { stage_no, executions } => {
                run(&ports, (lease, &control), &record, (stage_no, executions)).await?;
            }
            Next::End { stage_no, status, error } => {
                let end = StageEnd { stage_no, status, error };
                end_stage(&ports, lease, &record, end).await?;
            }
            Next::Finish { status, analysis, error } => {
                return finish(&ports, lease, &record, (status, analysis, error)).await;
            }
        }
    }
}

/// Ends a session that must not go on: past its deadline, cancelled, or the death of too many workers.
///
/// # Errors
/// As [`investigate`].
pub async fn end_now<W: World>(ports: &Ports<W>, lease: Lease, reason: StopReason) -> Result<(), Interrupted> {
    let (status, event_type, error, dead_letter) = match reason {
        StopReason::Cancelled => (RunStatus::Cancelled, EventType::SessionCancelled, None, None),
        StopReason::AttemptsExhausted => {
            let error = "too many workers died at the same step".to_owned();
            (RunStatus::Failed, EventType::SessionFailed, Some(error), Some(DeadReason::AttemptsExhausted))
        }
        StopReason::Deadline
        | StopReason::FinalAnswer
        | StopReason::MaxIterations
        | StopReason::Timeouts
        | StopReason::Error
        | StopReason::RepeatedCalls
        | StopReason::Budget
        | StopReason::ContextWindow
        | StopReason::SynthesisFailed
        | StopReason::NotInvestigated => {
            (RunStatus::TimedOut, EventType::SessionTimedOut, Some("past its deadline".to_owned()), None)
        }
    };
    let content = error.clone().unwrap_or_else(|| "Investigation cancelled".to_owned());
    let event = EventDraft::new(event_type, content, json!({"stop_reason": reason.as_str()}));
    let end = SessionEnd {
        status,
        reason,
        final_analysis: None,
        executive_summary: None,
        error,
        at: now(),
        event,
        dead_letter,
    };
    close(ports, lease, end).await
}

/// Gives a session up that cannot get beyond a step, and says why.
///
/// # Errors
/// As [`investigate`].
pub async fn give_up<W: World>(ports: &Ports<W>, lease: Lease, error: String) -> Result<(), Interrupted> {
    let reason = StopReason::AttemptsExhausted;
    let event = EventDraft::new(EventType::SessionFailed, error.clone(), json!({"stop_reason": reason.as_str()}));
    let end = SessionEnd {
        status: RunStatus::Failed,
        reason,
        final_analysis: None,
        executive_summary: None,
        error: Some(error),
        at: now(),
        event,
        dead_letter: Some(DeadReason::AttemptsExhausted),
    };
    close(ports, lease, end).await
}

async fn begin<W: World>(
    ports: &Ports<W>,
    lease: Lease,
    record: &SessionRecord,
    stage_no: u32,
) -> Result<(), Interrupted> {
    let stage = stage_plan(record, stage_no)?;
    let executions = (1_u32..).zip(&stage.agents).map(|(agent_no, agent)| ExecutionBegin {
        execution_id: ExecutionId::derive(lease.session_id, stage_no, agent_no),
        agent_no,
        agent: agent.name.clone(),
        strategy: agent.strategy,
        backend: agent.providers.first().map(|p| p.backend.clone()).unwrap_or_default(),
        model: agent.providers.first().map(|p| p.model.clone()).unwrap_or_default(),
    });
    let agents: Vec<&str> = stage.agents.iter().map(|agent| agent.name.as_str()).collect();
    let content = format!("Stage {} started", stage.name);
    let policy = stage.success_policy;
    let metadata = json!({"stage": stage.name, "agents": agents, "success_policy": policy.as_str()});
    let event = EventDraft::new(EventType::StageStarted, content, metadata);
    let begin =
        StageBegin { stage_no, executions: executions.collect(), name: stage.name.clone(), success_policy: policy };
    step(ports, lease, record, StageChange::Begin(begin), event).await
}

async fn end_stage<W: World>(
    ports: &Ports<W>,
    lease: Lease,
    record: &SessionRecord,
    end: StageEnd,
) -> Result<(), Interrupted> {
    let stage = stage_plan(record, end.stage_no)?;
    let status = end.status.as_str();
    let content = format!("Stage {} {}", stage.name, status.replace('_', " "));
    let outcomes = chain::outcomes(record, end.stage_no);
    let outcomes: Map<_, _> = outcomes.into_iter().map(|(name, run)| (name.to_owned(), run.as_str().into())).collect();
    let metadata = json!({"stage": stage.name, "status": status, "outcomes": outcomes});
    let event = EventDraft::new(EventType::StageCompleted, content, metadata);
    let event = if end.status == RunStatus::Completed { event } else { event.failed() };
    step(ports, lease, record, StageChange::End(end), event).await
}

async fn step<W: World>(
    ports: &Ports<W>,
    lease: Lease,
    record: &SessionRecord,
    change: StageChange,
    event: EventDraft,
) -> Result<(), Interrupted> {
    let step = SessionStep { number: record.step + 1, at: now(), change, events: vec![event] };
    ports.journal.step(lease, step).await.map_err(interrupted)?;
    ports.feed.notify(lease.session_id);
    Ok(())
}

fn stage_plan(record: &SessionRecord, stage_no: u32) -> Result<&StagePlan, Interrupted> {
    let index = usize::try_from(stage_no).unwrap_or(usize::MAX).saturating_sub(1);
    record.plan.stages.get(index).ok_or_else(|| {
        let error = format!("the plan has no stage number {stage_no}");
        Interrupted::Release(ReleaseReason::Incompatible(error))
    })
}

/// Runs what still runs of a stage, all at once. One that breaks does not stop the others: after a drain or a lost lease
/// each ends with its own present call, after anything else it goes on to its own end.
async fn run<W: World>(
    ports: &Ports<W>,
    (lease, control): (Lease, &Control),
    record: &SessionRecord,
    (stage_no, executions): (u32, Vec<ExecutionRecord>),
) -> Result<(), Interrupted> {
    let stage = stage_plan(record, stage_no)?;
    let context = chain::context_of(record, stage_no);
    let staffed = executions.into_iter().map(|execution| {
        let index = usize::try_from(execution.agent_no).unwrap_or(usize::MAX).saturating_sub(1);
        let agent = stage.agents.get(index).cloned().ok_or_else(|| {
            let error = format!("stage {stage_no} has no agent number {}", execution.agent_no);
            Interrupted::Release(ReleaseReason::Incompatible(error))
        });
        Ok((execution, agent?))
    });
    let mut running = JoinSet::new();
    // Nothing begins before all of it is known to be right.
    for (execution, agent) in staffed.collect::<Result<Vec<_>, Interrupted>>()? {
        let (ports, control, context) = (ports.clone(), control.clone(), context.clone());
        let recoveries = record.recoveries.clone();
        running.spawn(async move {
            Execution::resume(ports, (lease, control), &execution, (agent, context, &recoveries)).await?.run().await
        });
    }
    let mut result = Ok(());
    while let Some(ended) = running.join_next().await {
        let ended = ended.unwrap_or_else(|panic| {
            tracing::error!(session_id = %lease.session_id, "an execution panicked: {panic}");
            Err(Interrupted::Panicked)
        });
        result = graver(result, ended);
    }
    result
}

/// Of two ends of executions the one that decides about the session: whoever has lost it has no say, and a panic counts
/// as a death also beside an execution that would hand it back. Of two alike the first.
fn graver(first: Result<(), Interrupted>, second: Result<(), Interrupted>) -> Result<(), Interrupted> {
    let gravity = |end: &Result<(), Interrupted>| match end {
        Ok(()) => 0,
        Err(Interrupted::Release(_)) => 1,
        Err(Interrupted::Panicked) => 2,
        Err(Interrupted::LeaseLost) => 3,
    };
    if gravity(&second) > gravity(&first) { second } else { first }
}

async fn finish<W: World>(
    ports: &Ports<W>,
    lease: Lease,
    record: &SessionRecord,
    (status, analysis, error): (RunStatus, Option<String>, Option<String>),
) -> Result<(), Interrupted> {
    let totals = totals(ports, lease, record, chain::deciding(record, status)).await?;
    let reason = totals.reason.unwrap_or(StopReason::Error);
    let (event_type, content) = match status {
        RunStatus::Completed | RunStatus::Running => {
            (EventType::SessionCompleted, "Investigation completed".to_owned())
        }
        RunStatus::Failed => {
            (EventType::SessionFailed, error.clone().unwrap_or_else(|| "Investigation failed".to_owned()))
        }
        RunStatus::Cancelled => (EventType::SessionCancelled, "Investigation cancelled".to_owned()),
        RunStatus::TimedOut => (EventType::SessionTimedOut, "Investigation timed out".to_owned()),
    };
    let metadata = json!({
        "stop_reason": reason.as_str(), "iterations": totals.iterations, "tool_calls": totals.tool_calls,
        "input_tokens": totals.usage.input_tokens, "cached_tokens": totals.usage.cached_tokens,
        "output_tokens": totals.usage.output_tokens, "thinking_tokens": totals.usage.thinking_tokens,
    });
    let event = EventDraft::new(event_type, content, metadata);
    let event = if status == RunStatus::Completed { event } else { event.failed() };
    let executive_summary = analysis.as_deref().and_then(executive_summary);
    let end = SessionEnd {
        status,
        reason,
        final_analysis: analysis,
        executive_summary,
        error,
        at: now(),
        event,
        dead_letter: None,
    };
    close(ports, lease, end).await
}

async fn close<W: World>(ports: &Ports<W>, lease: Lease, end: SessionEnd) -> Result<(), Interrupted> {
    let status = end.status.as_str();
    ports.journal.finish(lease, end).await.map_err(interrupted)?;
    metrics::counter!("tarsy_sessions_finished_total", "status" => status).increment(1);
    ports.feed.notify(lease.session_id);
    Ok(())
}

#[derive(Default)]
struct Totals {
    iterations: u32,
    tool_calls: u32,
    usage: Usage,
    reason: Option<StopReason>,
}

/// Summed up from the journals, so that they survive restarts. The reason is that of the execution that decides.
async fn totals<W: World>(
    ports: &Ports<W>,
    lease: Lease,
    record: &SessionRecord,
    deciding: Option<ExecutionId>,
) -> Result<Totals, Interrupted> {
    let mut totals = Totals::default();
    for stage in &record.stages {
        for run in &stage.executions {
            let index = usize::try_from(run.agent_no).unwrap_or(usize::MAX).saturating_sub(1);
            let Some(agent) = stage_plan(record, stage.stage_no)?.agents.get(index) else { continue };
            let entries = ports.journal.entries(lease.session_id, run.execution_id).await.map_err(interrupted)?;
            let state = State::replay(Arc::new(agent.clone()), None, entries);
            totals.iterations += state.iteration();
            totals.tool_calls += state.tool_calls();
            totals.usage = totals.usage.plus(state.usage());
            if deciding == Some(run.execution_id) {
                totals.reason = state.ended().map(reason_of);
            }
        }
    }
    Ok(totals)
}

fn reason_of(outcome: &Outcome) -> StopReason {
    match outcome {
        Outcome::Completed { reason, .. } | Outcome::Failed { reason, .. } => *reason,
        Outcome::Cancelled => StopReason::Cancelled,
        Outcome::TimedOut => StopReason::Deadline,
    }
}
