//! Runs one leased session to its end: performs what the chain decides, and commits each step.

use std::sync::Arc;

use serde_json::{Map, json};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::control::{Control, Interrupted, ReleaseReason, more_serious};
use super::early_end::end_early;
use super::execution::{Assignment, Execution, SHORTEST_CONCLUSION, WaitingRoom};
use super::performed::now;
use super::progress::{Progress, apply};
use super::review;
use super::session_end::{Ending, SessionEnded, finish, no_stage, stage_plan};
use crate::ports::{
    ExecutionBegin, ExecutionRecord, Feed, Journal, Lease, RunStatus, SessionRecord, SessionStep,
    StageBegin, StageBegun, StageChange, StageEnd, StageEnded,
};
use crate::trace::gen_ai;
use crate::world::{Ports, World};
use tarsy_core::chain::{self, Conclusion, EarlyEnd, Next, OpenStage, Reserve, need};
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::plan::{NEWEST_VERSION, Plan, StagePlan};
use tarsy_core::timeline::{EventDraft, EventType};

/// A session that this worker may write to.
#[derive(Debug)]
pub struct LeasedSession<W: World> {
    pub ports: Arc<Ports<W>>,
    pub lease: Lease,
    pub control: Control,
    /// A session that was opened just now; `None`: the store says how far the session has come.
    pub opened: Option<SessionRecord>,
    /// The requests for approvals that may be open in all sessions.
    pub max_open: u32,
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
        if progress.record.plan.version > NEWEST_VERSION {
            let version = progress.record.plan.version;
            let newer = format!("plan version {version} is newer than {NEWEST_VERSION}");
            return Err(ReleaseReason::Incompatible(newer).into());
        }
        self.control.has_updates(progress.record.updates);
        if !is_new && self.is_too_late(&progress.record) {
            let ended = end_early(&self.ports, self.lease, EarlyEnd::Deadline);
            return Box::pin(ended).await;
        }
        loop {
            match chain::next(&progress.record) {
                Next::Begin(stage_no) if self.is_too_late_for(&progress.record, stage_no) => {
                    let conclusion = chain::without_review(&progress.record);
                    let conclusion = conclusion.ok_or_else(|| no_stage(stage_no))?;
                    return Box::pin(self.finish(&progress, None, conclusion)).await;
                }
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

    /// Whether a review would begin with less time than it needs. It never costs a session the analysis.
    fn is_too_late_for(&self, record: &SessionRecord, stage_no: u32) -> bool {
        let stage = record.plan.stage(stage_no);
        let needed = stage.filter(|stage| stage.review.is_some()).map(need);
        let left = self
            .control
            .deadline()
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        matches!((needed, left), (Some(needed), Some(left)) if left < needed)
    }

    async fn finish(
        &self,
        progress: &Progress,
        stage: Option<StageEnded>,
        conclusion: Conclusion,
    ) -> Result<SessionEnded, Interrupted> {
        finish(
            &self.ports,
            self.lease,
            progress,
            Ending { stage, conclusion },
        )
        .await
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
    /// drain or a lost lease each finishes its present call, otherwise each runs to its end. Those that wait for people
    /// end with it.
    async fn run_stage(&self, progress: &mut Progress, open: OpenStage) -> Result<(), Interrupted> {
        let record = &progress.record;
        let stage = stage_plan(record, open.stage_no)?;
        let context = match stage.review {
            Some(_) => review::material(&*self.ports, self.lease.session_id, record, stage).await?,
            None => chain::context_of(record, open.stage_no),
        };
        // No execution starts before the plan is known to have all of them.
        let mut assignments = Vec::new();
        let room = WaitingRoom::new(open.executions.iter().map(|run| run.execution_id));
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
                sub_agents: sub_agents_of(record, execution.execution_id),
                room: Arc::clone(&room),
                max_open: self.max_open,
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
            match &ended {
                Ok(ended) => room.ended(ended.record.execution_id),
                Err(why) => room.interrupt(why),
            }
            result = more_serious(
                result,
                ended.map(|ended| progress.ended(open.stage_no, ended)),
            );
        }
        result
    }
}

/// The executions of sub-agents that an execution has dispatched.
fn sub_agents_of(record: &SessionRecord, parent: ExecutionId) -> Vec<ExecutionRecord> {
    let begun = record.sub_agents.iter();
    begun
        .filter(|begun| begun.parent == parent)
        .map(|begun| begun.execution.clone())
        .collect()
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
        sub_agents: Vec::new(),
    };
    if let Some(StageBegun { begin, .. }) = &first {
        apply(&mut record, 1, StageChange::Begin(begin.clone()));
    }
    (record, first)
}

/// The beginning of a stage, with its executions.
fn stage_begun(session: SessionId, stage_no: u32, stage: &StagePlan) -> StageBegun {
    let executions = (1_u32..).zip(&stage.agents).map(|(agent_no, agent)| {
        let execution_id = ExecutionId::derive(session, stage_no, agent_no);
        ExecutionBegin::new(execution_id, agent_no, agent)
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
