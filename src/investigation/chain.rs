//! The chain: a session's stages as a fold over its own steps.
//!
//! | executions of a stage | `any` | `all` |
//! |---|---|---|
//! | one runs | running | running |
//! | every one completed | completed | completed |
//! | some completed | completed | the worst of the others |
//! | none completed | the worst of them | the worst of them |
//!
//! From bad to worst: failed, timed out, cancelled. A stage that is not completed ends the session with its status.

use super::ids::ExecutionId;
use super::plan::{Plan, SuccessPolicy};

/// A session as a resume finds it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRecord {
    /// As frozen when the session was opened.
    pub plan: Plan,
    /// Number of the last committed step, 0 before the first.
    pub step: u32,
    /// In order of their numbers.
    pub stages: Vec<StageRecord>,
}

/// A stage that has begun.
#[derive(Clone, Debug, PartialEq)]
pub struct StageRecord {
    /// From 1.
    pub stage_no: u32,
    /// Running until the step that ends it.
    pub status: RunStatus,
    /// In order of their numbers.
    pub executions: Vec<ExecutionRecord>,
}

/// An execution that has begun.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionRecord {
    /// The id.
    pub execution_id: ExecutionId,
    /// From 1.
    pub agent_no: u32,
    /// Running until the checkpoint that ends it.
    pub status: RunStatus,
    /// Number of the last committed checkpoint, 0 before the first.
    pub checkpoint: u32,
    /// What the completed execution found.
    pub analysis: Option<String>,
    /// Why the failed one failed.
    pub error: Option<String>,
}

/// How far a session, stage or execution has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunStatus {
    /// Not ended.
    Running,
    /// Ended with a result.
    Completed,
    /// Ended without one.
    Failed,
    /// Ended on request.
    Cancelled,
    /// Ended by the deadline.
    TimedOut,
}

impl RunStatus {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Running, Self::Completed, Self::Failed, Self::Cancelled, Self::TimedOut];

    /// The word in the store and in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
        }
    }

    /// The status of a word; `None` for one this version does not know.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    fn badness(self) -> u8 {
        match self {
            Self::Running | Self::Completed => 0,
            Self::Failed => 1,
            Self::TimedOut => 2,
            Self::Cancelled => 3,
        }
    }
}

/// What the session does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Begin this stage (from 1).
    Begin(u32),
    /// Run these executions of the stage to their ends.
    Run {
        /// The stage, from 1.
        stage_no: u32,
        /// Only those that still run.
        executions: Vec<ExecutionRecord>,
    },
    /// Write down how the stage ended.
    End {
        /// The stage, from 1.
        stage_no: u32,
        /// Never running.
        status: RunStatus,
        /// The first error of its executions.
        error: Option<String>,
    },
    /// End the session.
    Finish {
        /// Never running.
        status: RunStatus,
        /// What the last stage found.
        analysis: Option<String>,
        /// Why there is no analysis.
        error: Option<String>,
    },
}

/// Decides from the committed steps alone.
pub fn next(record: &SessionRecord) -> Next {
    let Some(stage) = record.stages.last() else {
        return Next::Begin(1);
    };
    let stage_no = stage.stage_no;
    match stage.status {
        RunStatus::Running => run_or_end(record, stage),
        RunStatus::Completed if usize_of(stage_no) < record.plan.stages.len() => Next::Begin(stage_no + 1),
        RunStatus::Completed => {
            Next::Finish { status: RunStatus::Completed, analysis: analysis(record, stage), error: None }
        }
        status @ (RunStatus::Failed | RunStatus::Cancelled | RunStatus::TimedOut) => {
            Next::Finish { status, analysis: None, error: first_error(stage) }
        }
    }
}

/// What the stages before `stage_no` found, as context for its agents.
pub fn context_of(record: &SessionRecord, stage_no: u32) -> Option<String> {
    let before = record.stages.iter().rev().find(|stage| stage.stage_no < stage_no)?;
    analysis(record, before)
}

fn run_or_end(record: &SessionRecord, stage: &StageRecord) -> Next {
    let stage_no = stage.stage_no;
    let running = stage.executions.iter().filter(|run| run.status == RunStatus::Running);
    let executions: Vec<_> = running.cloned().collect();
    if !executions.is_empty() {
        return Next::Run { stage_no, executions };
    }
    let policy =
        record.plan.stages.get(usize_of(stage_no) - 1).map_or(SuccessPolicy::Any, |stage| stage.success_policy);
    let status = verdict(policy, stage.executions.iter().map(|run| run.status));
    let error = if status == RunStatus::Completed { None } else { first_error(stage) };
    Next::End { stage_no, status, error }
}

fn verdict(policy: SuccessPolicy, mut statuses: impl Iterator<Item = RunStatus> + Clone) -> RunStatus {
    let worst = statuses.clone().max_by_key(|status| status.badness()).unwrap_or(RunStatus::Failed);
    match policy {
        SuccessPolicy::Any if statuses.any(|status| status == RunStatus::Completed) => RunStatus::Completed,
        SuccessPolicy::Any | SuccessPolicy::All => worst,
    }
}

fn first_error(stage: &StageRecord) -> Option<String> {
    stage.executions.iter().find_map(|run| run.error.clone())
}

/// One analysis as it is; several under their agents' names.
fn analysis(record: &SessionRecord, stage: &StageRecord) -> Option<String> {
    let plan = record.plan.stages.get(usize_of(stage.stage_no) - 1);
    let name =
        |agent_no: u32| plan.and_then(|stage| stage.agents.get(usize_of(agent_no) - 1)).map_or("agent", |a| &a.name);
    let found: Vec<(&str, &str)> =
        stage.executions.iter().filter_map(|run| Some((name(run.agent_no), run.analysis.as_deref()?))).collect();
    match found.as_slice() {
        [] => None,
        [(_, only)] => Some((*only).to_owned()),
        several => {
            Some(several.iter().map(|(agent, text)| format!("## {agent}\n\n{text}")).collect::<Vec<_>>().join("\n\n"))
        }
    }
}

fn usize_of(number: u32) -> usize {
    usize::try_from(number.max(1)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_outcomes_holds() {
        use RunStatus::{Cancelled, Completed, Failed, TimedOut};
        use SuccessPolicy::{All, Any};
        let table = [
            (Any, vec![Completed, Completed], Completed),
            (All, vec![Completed, Completed], Completed),
            (Any, vec![Failed, Completed], Completed),
            (All, vec![Failed, Completed], Failed),
            (Any, vec![Failed, TimedOut], TimedOut),
            (All, vec![TimedOut, Cancelled, Failed], Cancelled),
        ];
        for (policy, statuses, expected) in table {
            assert_eq!(verdict(policy, statuses.iter().copied()), expected, "{policy:?} {statuses:?}");
        }
    }
}
