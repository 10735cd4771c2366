//! Runs one leased session to its end: performs what the chain decides, and commits each step.

use std::sync::Arc;

use serde_json::{Map, json};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::control::{Control, Interrupted, ReleaseReason};
use super::execution::{Assignment, Execution, SHORTEST_CONCLUSION};
use super::performed::now;
use super::progress::{ExecutionTotals, Progress, apply};
use super::session_end::{SessionEnded, commit_end, end_early, sentence};
use crate::ports::{
    ExecutionBegin, Feed, Journal, Lease, RunStatus, SessionEnd, SessionRecord, SessionStep,
    StageBegin, StageBegun, StageChange, StageEnd, StageEnded,
};
use crate::trace::gen_ai;
use crate::world::{Ports, World};
use tarsy_core::chain::{self, Conclusion, EarlyEnd, Next, OpenStage, Reserve};
use tarsy_core::execution::entry::{Mark, StopReason, Usage};
use tarsy_core::execution::state::State;
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::plan::{FORMAT_VERSION, Plan, StagePlan};
use tarsy_core::summary::executive_summary;
use tarsy_core::timeline::{EventDraft, EventType};

/// A session that this worker may write to.
#[derive(Debug)]
pub struct LeasedSession<W: World> {
    pub ports: Arc<Ports<W>>,
    pub lease: Lease,
    pub control: Control,
    /// A session that was opened just now; `None`: the store says how far the session has come.
    pub opened: Option<SessionRecord>,
}

impl<W: World> LeasedSession<W> {
    /// Runs the session from its last committed step until its end is committed.
    ///
    /// # Errors
    /// When another worker owns the session, or the session has to be released.
    pub async fn run(mut self) -> Result<SessionEnded, Interrupted> {
        // Only the owner of the lease writes to these rows, so the run knows them once it has read them.
        let opened = self.opened.take();
        let is_new = opened.is_some();
        let mut progress = Progress::new(match opened {
            Some(record) => record,
            None => self.ports.journal.load(self.lease.session_id).await?,
        });
        if progress.record.plan.version > FORMAT_VERSION {
            let version = progress.record.plan.version;
            let newer = format!("plan version {version} is newer than {FORMAT_VERSION}");
            return Err(ReleaseReason::Incompatible(newer).into());
        }
        self.control.has_updates(progress.record.updates);
        if !is_new && self.is_too_late(&progress.record) {
            let ended = end_early(&self.ports, self.lease, EarlyEnd::Deadline);
            return Box::pin(ended).await;
        }
        loop {
            match chain::next(&progress.record) {
                Next::Begin(stage_no) => {
                    let stage = stage_plan(&progress.record, stage_no)?;
                    let StageBegun { begin, event } =
                        stage_begun(self.lease.session_id, stage_no, stage);
                    let number = progress.record.step + 1;
                    let change = StageChange::Begin(begin);
                    progress.stepped(number, change.clone());
                    Box::pin(self.commit(number, change, event)).await?;
                }
                Next::Run(open) => self.run_stage(&mut progress, open).await?,
                Next::End(end) => {
                    let ended = stage_ended(&progress.record, end)?;
                    progress.stepped(ended.step, StageChange::End(ended.end.clone()));
                    // The end of the last stage is committed with the end of the session.
                    if let Next::Finish(conclusion) = chain::next(&progress.record) {
                        return Box::pin(self.finish(&progress, Some(ended), conclusion)).await;
                    }
                    let change = StageChange::End(ended.end);
                    Box::pin(self.commit(ended.step, change, ended.event)).await?;
                }
                Next::Finish(conclusion) => {
                    return Box::pin(self.finish(&progress, None, conclusion)).await;
                }
            }
        }
    }

    /// Whether a stage that keeps time for its conclusion has too little left for a model call.
    fn is_too_late(&self, record: &SessionRecord) -> bool {
        let Some(deadline) = self.control.deadline() else {
            return false;
        };
        let stage = record.stages.last();
        let stage = stage.and_then(|stage| record.plan.stage(stage.stage_no));
        let wraps_up = stage.is_some_and(|stage| stage.agents.iter().any(|agent| agent.wraps_up()));
        wraps_up && deadline.saturating_duration_since(Instant::now()) < SHORTEST_CONCLUSION
    }

    async fn commit(
        &self,
        number: u32,
        change: StageChange,
        event: EventDraft,
    ) -> Result<(), Interrupted> {
        let step = SessionStep {
            number,
            at: now(),
            change,
            events: vec![event],
        };
        self.ports.journal.step(self.lease, step).await?;
        // After the commit: only what is in the table may be published.
        self.ports.feed.committed(self.lease.session_id);
        Ok(())
    }

    /// Runs the open executions of a stage at the same time. An interrupted execution does not stop the others: after a
    /// drain or a lost lease each finishes its present call, otherwise each runs to its end.
    async fn run_stage(&self, progress: &mut Progress, open: OpenStage) -> Result<(), Interrupted> {
        let record = &progress.record;
        let stage = stage_plan(record, open.stage_no)?;
        let context = chain::context_of(record, open.stage_no);
        // No execution starts before the plan is known to have all of them.
        let mut assignments = Vec::new();
        for execution in open.executions {
            let agent_no = execution.agent_no;
            let plan = stage.agent(agent_no).ok_or_else(|| {
                let missing = format!("stage {} has no agent number {agent_no}", open.stage_no);
                ReleaseReason::Incompatible(missing)
            })?;
            assignments.push(Assignment {
                plan: Arc::clone(plan),
                on_resolved: record.plan.on_resolved,
                context: context.clone(),
                recoveries: record.recoveries.clone(),
                reserve: Reserve::whole(&record.plan, open.stage_no),
                execution,
            });
        }
        let mut running = JoinSet::new();
        for assignment in assignments {
            let ports = Arc::clone(&self.ports);
            let lease = self.lease;
            let control = self.control.clone();
            let span = gen_ai::agent(&assignment.plan.name, assignment.execution.execution_id);
            let execution = async move {
                Execution::resume(ports, lease, control, assignment)
                    .await?
                    .run()
                    .await
            };
            running.spawn(execution.instrument(span));
        }
        let mut result = Ok(());
        while let Some(ended) = running.join_next().await {
            let ended = ended.unwrap_or_else(|panic| {
                tracing::error!(session_id = %self.lease.session_id, "execution panicked: {panic}");
                Err(Interrupted::Panicked)
            });
            result = more_serious(
                result,
                ended.map(|ended| progress.ended(open.stage_no, ended)),
            );
        }
        result
    }

    /// Commits the end of the session, with that of its last `stage` if it is not committed yet.
    async fn finish(
        &self,
        progress: &Progress,
        stage: Option<StageEnded>,
        conclusion: Conclusion,
    ) -> Result<SessionEnded, Interrupted> {
        let Conclusion {
            status,
            analysis,
            error,
            taken_over_from,
        } = conclusion;
        let deciding = chain::deciding(&progress.record, status);
        let last = progress.record.stages.last().map(|stage| stage.stage_no);
        let answering = taken_over_from.or(last);
        let totals = self.totals(progress, deciding, answering).await?;
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
                .max(taken_over_from.map(|_| Mark::OfStage));
        }
        let of_stage = taken_over_from.and_then(|stage_no| progress.record.plan.stage(stage_no));
        let event = status
            .end_event(content, metadata)
            .with("mark", mark.map(Mark::as_str))
            .with("of_stage", of_stage.map(|stage| stage.name.as_str()));
        let end = SessionEnd {
            status,
            reason,
            executive_summary: analysis.as_deref().and_then(executive_summary),
            mark,
            final_analysis: analysis,
            error,
            at: now(),
            event,
            stage,
            dead_letter: None,
            covered_updates: totals.covered_updates.unwrap_or_default(),
        };
        commit_end(&self.ports, self.lease, end).await?;
        Ok(SessionEnded {
            status,
            reason,
            iterations: Some(totals.iterations),
        })
    }

    /// Sums the journals of all executions, so that a restart loses no number. The reason is that of the execution
    /// `deciding`, and the marks are those of the stage `answering`.
    async fn totals(
        &self,
        progress: &Progress,
        deciding: Option<ExecutionId>,
        answering: Option<u32>,
    ) -> Result<Totals, Interrupted> {
        let record = &progress.record;
        let mut totals = Totals::default();
        for stage in &record.stages {
            for run in &stage.executions {
                let Some(agent) = stage_plan(record, stage.stage_no)?.agent(run.agent_no) else {
                    continue;
                };
                let of_run = match progress.totals_of(run.execution_id) {
                    Some(totals) => totals,
                    // It ended before this run began.
                    None => {
                        let entries = self
                            .ports
                            .journal
                            .entries(self.lease.session_id, run.execution_id)
                            .await?;
                        ExecutionTotals::from_state(&State::replay(
                            Arc::clone(agent),
                            None,
                            entries,
                        ))
                    }
                };
                totals.iterations += of_run.iterations;
                totals.tool_calls += of_run.tool_calls;
                totals.usage = totals.usage.plus(of_run.usage);
                let is_last = answering == Some(stage.stage_no);
                totals.mark = totals
                    .mark
                    .max(of_run.mark.filter(|mark| is_last || mark.is_of_session()));
                if run.status == RunStatus::Completed && is_last {
                    let answered = of_run.answered_updates;
                    totals.covered_updates = Some(
                        totals
                            .covered_updates
                            .map_or(answered, |least| least.min(answered)),
                    );
                }
                if deciding == Some(run.execution_id) {
                    totals.reason = of_run.reason;
                }
            }
        }
        Ok(totals)
    }
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

/// A session that is opened with this plan, and its first stage, which begins with it.
pub fn opened(session: SessionId, plan: Plan) -> (SessionRecord, Option<StageBegun>) {
    let first = plan.stage(1).map(|stage| stage_begun(session, 1, stage));
    let mut record = SessionRecord {
        plan,
        step: 0,
        updates: 0,
        stages: Vec::new(),
        recoveries: Vec::new(),
    };
    if let Some(StageBegun { begin, .. }) = &first {
        apply(&mut record, 1, StageChange::Begin(begin.clone()));
    }
    (record, first)
}

/// The beginning of a stage, with its executions.
fn stage_begun(session: SessionId, stage_no: u32, stage: &StagePlan) -> StageBegun {
    let executions = (1_u32..).zip(&stage.agents).map(|(agent_no, agent)| {
        let provider = agent.providers.first();
        ExecutionBegin {
            execution_id: ExecutionId::derive(session, stage_no, agent_no),
            agent_no,
            agent: agent.name.clone(),
            strategy: agent.strategy,
            backend: provider.map(|p| p.backend.clone()).unwrap_or_default(),
            model: provider.map(|p| p.model.clone()).unwrap_or_default(),
        }
    });
    let agents: Vec<&str> = stage
        .agents
        .iter()
        .map(|agent| agent.name.as_str())
        .collect();
    let success_policy = stage.success_policy;
    let metadata =
        json!({"stage": stage.name, "agents": agents, "success_policy": success_policy.as_str()});
    let event = EventDraft::new(
        EventType::StageStarted,
        format!("Stage {} started", stage.name),
        metadata,
    );
    let begin = StageBegin {
        stage_no,
        executions: executions.collect(),
        name: stage.name.clone(),
        success_policy,
    };
    StageBegun { begin, event }
}

/// The next step of a session: a stage ends.
fn stage_ended(record: &SessionRecord, end: StageEnd) -> Result<StageEnded, ReleaseReason> {
    let stage = stage_plan(record, end.stage_no)?;
    let status = end.status.as_str();
    let outcomes = chain::outcomes(record, end.stage_no);
    let outcomes: Map<_, _> = outcomes
        .into_iter()
        .map(|(name, run)| (name.to_owned(), run.as_str().into()))
        .collect();
    let metadata = json!({"stage": stage.name, "status": status, "outcomes": outcomes});
    let content = format!("Stage {} {}", stage.name, status.replace('_', " "));
    let event = EventDraft::new(EventType::StageCompleted, content, metadata);
    let event = if end.status == RunStatus::Completed {
        event
    } else {
        event.failed()
    };
    Ok(StageEnded {
        step: record.step + 1,
        end,
        event,
    })
}

fn stage_plan(record: &SessionRecord, stage_no: u32) -> Result<&StagePlan, ReleaseReason> {
    record.plan.stage(stage_no).ok_or_else(|| {
        ReleaseReason::Incompatible(format!("the plan has no stage number {stage_no}"))
    })
}

/// The more serious of two results: lost lease > panic > release > success; the first of equals.
fn more_serious(
    first: Result<(), Interrupted>,
    second: Result<(), Interrupted>,
) -> Result<(), Interrupted> {
    let rank = |end: &Result<(), Interrupted>| match end {
        Ok(()) => 0,
        Err(Interrupted::Release(_)) => 1,
        Err(Interrupted::Panicked) => 2,
        Err(Interrupted::LeaseLost) => 3,
    };
    if rank(&second) > rank(&first) {
        second
    } else {
        first
    }
}
