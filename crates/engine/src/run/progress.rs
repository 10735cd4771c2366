//! `Progress`, a run's knowledge of its session: read from the store once, then updated by each commit.

use std::collections::BTreeMap;

use crate::ports::{
    ExecutionBegin, ExecutionRecord, RunStatus, SessionRecord, StageChange, StageRecord,
};
use tarsy_core::execution::entry::{Mark, Outcome, Spent, StopReason, Usage};
use tarsy_core::execution::state::State;
use tarsy_core::ids::ExecutionId;

/// The progress of a session, as this run knows it.
pub(super) struct Progress {
    pub(super) record: SessionRecord,
    /// The numbers of the executions that ended in this run.
    totals: BTreeMap<ExecutionId, ExecutionTotals>,
}

/// The numbers of an execution that has ended, with those of its sub-agents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ExecutionTotals {
    pub(super) iterations: u32,
    pub(super) tool_calls: u32,
    pub(super) usage: Usage,
    pub(super) reason: Option<StopReason>,
    pub(super) mark: Option<Mark>,
    /// The last update of the alert that its analysis knew.
    pub(super) answered_updates: u32,
}

/// An execution whose end this run has committed.
pub(super) struct EndedExecution {
    pub(super) record: ExecutionRecord,
    pub(super) totals: ExecutionTotals,
    /// For the agent that has dispatched it.
    pub(super) spent: Spent,
}

impl Progress {
    pub(super) fn new(record: SessionRecord) -> Self {
        Self {
            record,
            totals: BTreeMap::new(),
        }
    }

    /// A step was committed.
    pub(super) fn stepped(&mut self, number: u32, change: StageChange) {
        apply(&mut self.record, number, change);
    }

    /// The end of an execution was committed.
    pub(super) fn ended(&mut self, stage_no: u32, ended: EndedExecution) {
        let EndedExecution { record, totals, .. } = ended;
        self.totals.insert(record.execution_id, totals);
        let mut stages = self.record.stages.iter_mut();
        let stage = stages.find(|stage| stage.stage_no == stage_no);
        for execution in stage.into_iter().flat_map(|stage| &mut stage.executions) {
            if execution.execution_id == record.execution_id {
                execution.clone_from(&record);
            }
        }
    }

    /// The numbers of an execution that ended in this run.
    pub(super) fn totals_of(&self, execution: ExecutionId) -> Option<ExecutionTotals> {
        self.totals.get(&execution).copied()
    }
}

/// Applies a step to the record of its session, as the store does.
pub fn apply(record: &mut SessionRecord, number: u32, change: StageChange) {
    record.step = number;
    match change {
        StageChange::Begin(begin) => {
            let executions = begin.executions.iter().map(running);
            record.stages.push(StageRecord {
                stage_no: begin.stage_no,
                status: RunStatus::Running,
                executions: executions.collect(),
            });
        }
        StageChange::End(end) => {
            for stage in &mut record.stages {
                if stage.stage_no == end.stage_no {
                    stage.status = end.status;
                }
            }
        }
    }
}

/// The record of an execution that begins.
pub(crate) fn running(begin: &ExecutionBegin) -> ExecutionRecord {
    ExecutionRecord {
        execution_id: begin.execution_id,
        agent_no: begin.agent_no,
        status: RunStatus::Running,
        checkpoint: 0,
        analysis: None,
        error: None,
        mark: None,
        review: None,
    }
}

impl ExecutionTotals {
    pub(super) fn from_state(state: &State) -> Self {
        let spent = state.spent_in_all();
        Self {
            iterations: spent.iterations,
            tool_calls: spent.tool_calls,
            usage: spent.usage,
            reason: state.ended().map(reason_of),
            mark: state.ended().and_then(mark_of),
            answered_updates: state.answered_updates(),
        }
    }
}

fn mark_of(outcome: &Outcome) -> Option<Mark> {
    if let Outcome::Completed { mark, .. } = outcome {
        *mark
    } else {
        None
    }
}

fn reason_of(outcome: &Outcome) -> StopReason {
    match outcome {
        Outcome::Completed { reason, .. } | Outcome::Failed { reason, .. } => *reason,
        Outcome::Cancelled => StopReason::Cancelled,
        Outcome::TimedOut => StopReason::Deadline,
    }
}
