//! The chain: a session's stages as a fold over its own steps.
//!
//! | executions of a stage | stage, policy `any` | stage, policy `all` |
//! |---|---|---|
//! | one runs | running | running |
//! | every one completed | completed | completed |
//! | some completed | completed | the worst of the others |
//! | none completed | the worst of them | the worst of them |
//!
//! From bad to worst: failed, timed out, cancelled. An execution that has begun runs to its own end, whatever becomes
//! of those beside it.
//!
//! | stage | session |
//! |---|---|
//! | completed, the last one | completed, with its analysis |
//! | completed, another one is planned | that one begins |
//! | completed, but a cancel or the deadline met one of its executions, and another one is planned | cancelled, timed out |
//! | failed, timed out, cancelled | the same; no later stage begins |
//!
//! The agents of a stage are told what the stage before it found, and nothing of those before that.

use super::execution::recovery::Recovery;
use super::ids::ExecutionId;
use super::plan::{Plan, StagePlan, SuccessPolicy};

/// A session as a resume finds it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRecord {
    /// As frozen when the session was opened.
    pub plan: Plan,
    /// Number of the last committed step, 0 before the first.
    pub step: u32,
    /// In order of their numbers.
    pub stages: Vec<StageRecord>,
    /// Losses of commits that were noticed, in order.
    pub recoveries: Vec<Recovery>,
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
        /// The errors of its executions; of several each with its agent's name.
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
    let is_last = usize_of(stage_no) >= record.plan.stages.len();
    match stage.status {
        RunStatus::Running => run_or_end(record, stage),
        RunStatus::Completed if is_last => {
            Next::Finish { status: RunStatus::Completed, analysis: analysis(record, stage), error: None }
        }
        RunStatus::Completed => match stop(stage) {
            Some(status) => Next::Finish { status, analysis: None, error: None },
            None => Next::Begin(stage_no + 1),
        },
        status @ (RunStatus::Failed | RunStatus::Cancelled | RunStatus::TimedOut) => {
            Next::Finish { status, analysis: None, error: errors(record, stage) }
        }
    }
}

/// The execution that says why the session ends as it does: the first one of the last stage with that status.
pub fn deciding(record: &SessionRecord, status: RunStatus) -> Option<ExecutionId> {
    let run = record.stages.last()?.executions.iter().find(|run| run.status == status)?;
    Some(run.execution_id)
}

/// What the stage before `stage_no` found, as context for the agents of that one. Several agents stand under their
/// names, also those that found nothing.
pub fn context_of(record: &SessionRecord, stage_no: u32) -> Option<String> {
    let before = record.stages.iter().rev().find(|stage| stage.stage_no < stage_no)?;
    match before.executions.as_slice() {
        [only] => only.analysis.clone(),
        several if several.iter().all(|run| run.analysis.is_none()) => None,
        several => {
            let found = several.iter().map(|run| (name(record, before, run), finding(run)));
            Some(under_headings(&found.collect::<Vec<_>>()))
        }
    }
}

/// How each execution of a stage ended, by the agents' names.
pub fn outcomes(record: &SessionRecord, stage_no: u32) -> Vec<(&str, RunStatus)> {
    let stage = record.stages.iter().find(|stage| stage.stage_no == stage_no);
    let runs = stage.into_iter().flat_map(|stage| stage.executions.iter().map(move |run| (stage, run)));
    runs.map(|(stage, run)| (name(record, stage, run), run.status)).collect()
}

fn run_or_end(record: &SessionRecord, stage: &StageRecord) -> Next {
    let stage_no = stage.stage_no;
    let running = stage.executions.iter().filter(|run| run.status == RunStatus::Running);
    let executions: Vec<_> = running.cloned().collect();
    if !executions.is_empty() {
        return Next::Run { stage_no, executions };
    }
    let policy = stage_plan(record, stage).map_or(SuccessPolicy::Any, |plan| plan.success_policy);
    let status = verdict(policy, stage.executions.iter().map(|run| run.status));
    let error = if status == RunStatus::Completed { None } else { errors(record, stage) };
    Next::End { stage_no, status, error }
}

fn verdict(policy: SuccessPolicy, mut statuses: impl Iterator<Item = RunStatus> + Clone) -> RunStatus {
    let worst = statuses.clone().max_by_key(|status| status.badness()).unwrap_or(RunStatus::Failed);
    match policy {
        SuccessPolicy::Any if statuses.any(|status| status == RunStatus::Completed) => RunStatus::Completed,
        SuccessPolicy::Any | SuccessPolicy::All => worst,
    }
}

/// A cancel or the deadline that one of the stage's executions met. Both are for the whole session.
fn stop(stage: &StageRecord) -> Option<RunStatus> {
    let stops = stage.executions.iter().map(|run| run.status);
    stops.filter(|status| matches!(status, RunStatus::Cancelled | RunStatus::TimedOut)).max_by_key(|s| s.badness())
}

/// The only execution's error as it is; of several each under its agent's name.
fn errors(record: &SessionRecord, stage: &StageRecord) -> Option<String> {
    if let [only] = stage.executions.as_slice() {
        return only.error.clone();
    }
    let told = stage.executions.iter().filter_map(|run| {
        let error = run.error.as_deref()?;
        Some(format!("{}: {error}", name(record, stage, run)))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// One analysis as it is; several under their agents' names.
fn analysis(record: &SessionRecord, stage: &StageRecord) -> Option<String> {
    let found = stage.executions.iter().filter_map(|run| Some((name(record, stage, run), run.analysis.clone()?)));
    let mut found: Vec<(&str, String)> = found.collect();
    if found.len() > 1 { Some(under_headings(&found)) } else { found.pop().map(|(_, only)| only) }
}

/// What an execution found, or why it found nothing: whoever reads on has to know what nobody looked at.
fn finding(run: &ExecutionRecord) -> String {
    match (&run.analysis, run.status) {
        (Some(analysis), _) => analysis.clone(),
        (None, RunStatus::Cancelled) => "No analysis: this agent was cancelled.".to_owned(),
        (None, RunStatus::TimedOut) => "No analysis: this agent ran out of time.".to_owned(),
        (None, RunStatus::Running | RunStatus::Completed | RunStatus::Failed) => {
            format!("No analysis: this agent failed: {}", run.error.as_deref().unwrap_or("no reason is known"))
        }
    }
}

fn under_headings(found: &[(&str, String)]) -> String {
    let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
    let parts = found.iter().map(|(name, text)| format!("### {name}\n\n{}", without_headings(text, &names)));
    parts.collect::<Vec<_>>().join("\n\n")
}

/// A text in which no line passes for the heading of one of these agents.
fn without_headings(text: &str, names: &[&str]) -> String {
    let lines = text.trim().lines().map(|line| {
        let bare = line.trim_start();
        let is_heading = bare.starts_with('#') && names.contains(&bare.trim_matches(['#', ' ']));
        if is_heading { format!("\\{bare}") } else { line.to_owned() }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn stage_plan<'r>(record: &'r SessionRecord, stage: &StageRecord) -> Option<&'r StagePlan> {
    record.plan.stages.get(usize_of(stage.stage_no) - 1)
}

fn name<'r>(record: &'r SessionRecord, stage: &StageRecord, run: &ExecutionRecord) -> &'r str {
    let agent = stage_plan(record, stage).and_then(|plan| plan.agents.get(usize_of(run.agent_no) - 1));
    agent.map_or("agent", |agent| &agent.name)
}

fn usize_of(number: u32) -> usize {
    usize::try_from(number.max(1)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
