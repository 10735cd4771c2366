//! The chain: what a session does next, decided from its stages; also the tables of outcomes.
//!
//! | executions of a stage | stage, policy `any` | stage, policy `all` |
//! |---|---|---|
//! | one runs | running | running |
//! | every one completed | completed | completed |
//! | some completed | completed | the worst of the others |
//! | none completed | the worst of them | the worst of them |
//!
//! From bad to worst: failed, timed out, cancelled. An execution that has begun runs to its own end, whatever happens
//! to the others of its stage.
//!
//! | stage | session |
//! |---|---|
//! | completed, the last one | completed, with its analysis |
//! | completed, another one is planned | that one begins |
//! | completed, but an execution was cancelled or timed out, and another stage is planned | cancelled, timed out |
//! | failed, timed out, cancelled | the same; no later stage begins |
//!
//! A session that ends by the deadline or a cancel takes over the findings of the last stage that has any.
//!
//! A review is an optional last stage (`review.rs`): whatever becomes of it, the session is completed with the analysis
//! of the stage before, joined with the answer of a review that completed.
//!
//! The agents of a stage get the findings of the stage before it, and none of earlier ones.

mod material;
mod reserve;
mod review;
mod sub_agents;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::execution::entry::{Mark, StopReason};
use super::execution::recovery::Recovery;
use super::ids::ExecutionId;
use super::plan::{Plan, SuccessPolicy};
use super::review::{Review, Verdict};
use super::timeline::{EventDraft, EventType};

pub use self::material::{Journal, material};
pub use self::reserve::{Reserve, need};
pub use self::review::{is_review, without_review};
pub use self::sub_agents::SubAgentRecord;

/// A session as the store returns it when a worker resumes it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRecord {
    /// The plan as it was frozen when the session was opened.
    pub plan: Plan,
    /// Number of the last committed step, 0 before the first.
    pub step: u32,
    /// Number of the last update of its alert, 0 before the first.
    pub updates: u32,
    /// The stages that have begun, in order of their numbers.
    pub stages: Vec<StageRecord>,
    /// Detected losses of commits, in order.
    pub recoveries: Vec<Recovery>,
    /// The executions of sub-agents. None of them decides how its stage or the session ends.
    pub sub_agents: Vec<SubAgentRecord>,
}

/// A stage that has begun.
#[derive(Clone, Debug, PartialEq)]
pub struct StageRecord {
    /// The number of the stage in its session, from 1.
    pub stage_no: u32,
    /// Running until the step that ends it.
    pub status: RunStatus,
    /// The executions of the stage, in order of their numbers.
    pub executions: Vec<ExecutionRecord>,
}

/// An execution that has begun.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionRecord {
    pub execution_id: ExecutionId,
    /// The number of the agent in its stage, from 1; 0 for a sub-agent.
    pub agent_no: u32,
    /// Running until the checkpoint that ends it.
    pub status: RunStatus,
    /// Number of the last committed checkpoint, 0 before the first.
    pub checkpoint: u32,
    /// The analysis of a completed execution.
    pub analysis: Option<String>,
    /// The error of a failed execution.
    pub error: Option<String>,
    /// The mark on the analysis.
    pub mark: Option<Mark>,
    /// The outcome, if it was a review that completed.
    pub review: Option<Review>,
}

/// A word of a later version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct LaterWord(pub &'static str);

/// The status of a session, stage or execution, ordered from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Running,
    /// Ended with a result.
    Completed,
    /// Ended without one.
    Failed,
    /// Ended by the deadline.
    TimedOut,
    /// Ended on request.
    Cancelled,
    /// Nothing was investigated: it lists alerts above the limit of their route. Of sessions only.
    Limited,
    /// A word of a later version. Only reports have it: a worker refuses a session whose status it does not know.
    #[serde(skip_deserializing, untagged)]
    Unknown(LaterWord),
}

impl RunStatus {
    /// All that this version knows.
    pub const ALL: [Self; 6] = [
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::TimedOut,
        Self::Limited,
    ];

    /// The word in the store and in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown(word) => word.0,
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::Limited => "limited",
        }
    }

    /// The last event of a session that ends with this status. Only that of a completed session has the status
    /// `completed`.
    pub fn end_event(self, content: impl Into<String>, metadata: Value) -> EventDraft {
        let ends_as = |event_type| EventDraft::new(event_type, content, metadata);
        match self {
            Self::Unknown(_) | Self::Running | Self::Completed => {
                ends_as(EventType::SessionCompleted)
            }
            Self::Failed | Self::Limited => ends_as(EventType::SessionFailed).failed(),
            Self::TimedOut => ends_as(EventType::SessionTimedOut).failed(),
            Self::Cancelled => ends_as(EventType::SessionCancelled).failed(),
        }
    }
}

/// The reason why a session ends before its chain does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EarlyEnd {
    Cancelled,
    Deadline,
    /// Too many workers died at the same step.
    AttemptsExhausted,
    /// Too many returns were the session's own doing; the text names the last reason.
    GivenUp(String),
}

impl EarlyEnd {
    /// The reason in the session's last event.
    pub fn stop_reason(&self) -> StopReason {
        match self {
            Self::Cancelled => StopReason::Cancelled,
            Self::Deadline => StopReason::Deadline,
            Self::AttemptsExhausted | Self::GivenUp(_) => StopReason::AttemptsExhausted,
        }
    }

    /// The status and the error of the session.
    pub fn outcome(self) -> (RunStatus, Option<String>) {
        match self {
            Self::Cancelled => (RunStatus::Cancelled, None),
            Self::Deadline => (RunStatus::TimedOut, Some("past its deadline".to_owned())),
            Self::AttemptsExhausted => (
                RunStatus::Failed,
                Some("too many workers died at the same step".to_owned()),
            ),
            Self::GivenUp(error) => (RunStatus::Failed, Some(error)),
        }
    }
}

/// The next step of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Begin the stage of this number, counted from 1.
    Begin(u32),
    /// Run the open executions of a stage to their ends.
    Run(OpenStage),
    /// Record how a stage ended.
    End(StageEnd),
    /// End the session.
    Finish(Conclusion),
}

/// A stage with executions that have not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenStage {
    /// The number of the stage in its session, from 1.
    pub stage_no: u32,
    /// The executions that have not ended.
    pub executions: Vec<ExecutionRecord>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StageEnd {
    /// The number of the stage in its session, from 1.
    pub stage_no: u32,
    /// The status with which the stage ends; never running.
    pub status: RunStatus,
    /// The errors of its executions; of several, each with its agent's name.
    pub error: Option<String>,
}

/// The end of a session whose chain has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// The status with which the session ends; never running.
    pub status: RunStatus,
    /// The analyses of the last stage; several under their agents' names.
    pub analysis: Option<String>,
    /// The errors of the stage that ended the chain.
    pub error: Option<String>,
    /// The stage that the analysis is taken over from; `None` for the analysis of a chain that was completed.
    pub taken_over_from: Option<u32>,
    /// The outcome of the review, if one was due.
    pub review: Option<Reviewed>,
}

/// The outcome of a review, as it counts for the end of its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reviewed {
    pub review: Review,
    /// The mark that the review adds to the analysis.
    pub mark: Option<Mark>,
}

/// The findings that a session takes over which ends before its chain does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    pub analysis: String,
    /// The number of their stage, counted from 1.
    pub stage_no: u32,
}

/// Decides from the committed steps alone.
pub fn next(record: &SessionRecord) -> Next {
    let Some(stage) = record.stages.last() else {
        return Next::Begin(1);
    };
    let following = stage.stage_no + 1;
    let has_ended = stage.status != RunStatus::Running;
    if has_ended && is_review(&record.plan, stage.stage_no) {
        return review::ended(record, stage);
    }
    match stage.status {
        RunStatus::Running => run_or_end(record, stage),
        RunStatus::Completed if is_review(&record.plan, following) => review::due(record, stage),
        status @ RunStatus::Completed if record.plan.stage(following).is_none() => {
            Next::Finish(Conclusion {
                status,
                analysis: analysis(record, stage),
                error: None,
                taken_over_from: None,
                review: None,
            })
        }
        RunStatus::Completed => match stop(stage) {
            Some(status) => cut_short(record, status, None),
            None => Next::Begin(following),
        },
        status @ (RunStatus::Unknown(_)
        | RunStatus::Failed
        | RunStatus::Cancelled
        | RunStatus::TimedOut
        | RunStatus::Limited) => cut_short(record, status, errors(record, stage)),
    }
}

/// The end of a session whose chain was not completed. A stop leaves what was found before it.
fn cut_short(record: &SessionRecord, status: RunStatus, error: Option<String>) -> Next {
    let is_stop = matches!(status, RunStatus::Cancelled | RunStatus::TimedOut);
    let found = if is_stop { findings(record) } else { None };
    Next::Finish(Conclusion {
        status,
        taken_over_from: found.as_ref().map(|found| found.stage_no),
        analysis: found.map(|found| found.analysis),
        error,
        review: None,
    })
}

/// The findings of the last stage that has any.
pub fn findings(record: &SessionRecord) -> Option<Findings> {
    record.stages.iter().rev().find_map(|stage| {
        Some(Findings {
            analysis: analysis(record, stage)?,
            stage_no: stage.stage_no,
        })
    })
}

/// The execution whose reason the session takes over: the first one of the last stage that ended with `status`. A
/// review decides nothing.
pub fn deciding(record: &SessionRecord, status: RunStatus) -> Option<ExecutionId> {
    let mut stages = record.stages.iter().rev();
    let run = stages
        .find(|stage| !is_review(&record.plan, stage.stage_no))?
        .executions
        .iter()
        .find(|run| run.status == status)?;
    Some(run.execution_id)
}

/// The findings of the stage before `stage_no`, as context for its agents. Findings of several agents have the agents'
/// names as headings; an agent without findings is listed, too.
pub fn context_of(record: &SessionRecord, stage_no: u32) -> Option<String> {
    let before = record
        .stages
        .iter()
        .rev()
        .find(|stage| stage.stage_no < stage_no)?;
    match before.executions.as_slice() {
        [only] => only.analysis.clone(),
        several if several.iter().all(|run| run.analysis.is_none()) => None,
        several => {
            let found = several
                .iter()
                .map(|run| (name(record, before, run), finding(run)));
            Some(under_headings(&found.collect::<Vec<_>>()))
        }
    }
}

/// The number of the stage whose analysis a session ends with.
pub fn answering(record: &SessionRecord, conclusion: &Conclusion) -> Option<u32> {
    let is_replaced = conclusion
        .review
        .as_ref()
        .is_some_and(|reviewed| reviewed.review.verdict == Verdict::Replaced);
    let mut stages = record.stages.iter().rev();
    let last = stages
        .find(|stage| is_replaced || !is_review(&record.plan, stage.stage_no))
        .map(|stage| stage.stage_no);
    conclusion.taken_over_from.or(last)
}

/// The outcomes of the executions of a stage, by the agents' names.
pub fn outcomes(record: &SessionRecord, stage_no: u32) -> Vec<(&str, RunStatus)> {
    let stage = record
        .stages
        .iter()
        .find(|stage| stage.stage_no == stage_no);
    let runs = stage
        .into_iter()
        .flat_map(|stage| stage.executions.iter().map(move |run| (stage, run)));
    runs.map(|(stage, run)| (name(record, stage, run), run.status))
        .collect()
}

fn run_or_end(record: &SessionRecord, stage: &StageRecord) -> Next {
    let stage_no = stage.stage_no;
    let running = stage
        .executions
        .iter()
        .filter(|run| run.status == RunStatus::Running);
    let executions: Vec<_> = running.cloned().collect();
    if !executions.is_empty() {
        return Next::Run(OpenStage {
            stage_no,
            executions,
        });
    }
    let policy = record
        .plan
        .stage(stage_no)
        .map_or(SuccessPolicy::Any, |plan| plan.success_policy);
    let status = verdict(policy, &stage.executions);
    let error = if status == RunStatus::Completed {
        None
    } else {
        errors(record, stage)
    };
    Next::End(StageEnd {
        stage_no,
        status,
        error,
    })
}

fn verdict(policy: SuccessPolicy, runs: &[ExecutionRecord]) -> RunStatus {
    let mut statuses = runs.iter().map(|run| run.status);
    let worst = statuses.clone().max().unwrap_or(RunStatus::Failed);
    if policy == SuccessPolicy::Any && statuses.any(|status| status == RunStatus::Completed) {
        RunStatus::Completed
    } else {
        worst
    }
}

/// The status of a stage's execution that was cancelled or timed out. Both end the whole session.
fn stop(stage: &StageRecord) -> Option<RunStatus> {
    let stops = stage.executions.iter().map(|run| run.status);
    stops
        .filter(|status| matches!(status, RunStatus::Cancelled | RunStatus::TimedOut))
        .max()
}

/// The error of the only execution, or each error with its agent's name.
fn errors(record: &SessionRecord, stage: &StageRecord) -> Option<String> {
    if let [only] = stage.executions.as_slice() {
        return only.error.clone();
    }
    let errors = stage.executions.iter().filter_map(|run| {
        let error = run.error.as_deref()?;
        Some(format!("{}: {error}", name(record, stage, run)))
    });
    let errors: Vec<String> = errors.collect();
    (!errors.is_empty()).then(|| errors.join("; "))
}

/// The only analysis, or each under its agent's name.
fn analysis(record: &SessionRecord, stage: &StageRecord) -> Option<String> {
    let found = stage
        .executions
        .iter()
        .filter_map(|run| Some((name(record, stage, run), run.analysis.clone()?)));
    let mut found: Vec<(&str, String)> = found.collect();
    if found.len() > 1 {
        Some(under_headings(&found))
    } else {
        found.pop().map(|(_, only)| only)
    }
}

/// The analysis of an execution, or why it has none: the next stage has to know what was not investigated.
fn finding(run: &ExecutionRecord) -> String {
    if let Some(analysis) = &run.analysis {
        return analysis.clone();
    }
    match run.status {
        RunStatus::Cancelled => "No analysis: this agent was cancelled.".to_owned(),
        RunStatus::TimedOut => "No analysis: this agent ran out of time.".to_owned(),
        RunStatus::Unknown(_)
        | RunStatus::Running
        | RunStatus::Completed
        | RunStatus::Failed
        | RunStatus::Limited => {
            let error = run.error.as_deref().unwrap_or("no reason is known");
            format!("No analysis: this agent failed: {error}")
        }
    }
}

fn under_headings(found: &[(&str, String)]) -> String {
    let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
    let parts = found
        .iter()
        .map(|(name, text)| format!("### {name}\n\n{}", without_headings(text, &names)));
    parts.collect::<Vec<_>>().join("\n\n")
}

/// Escapes each line that looks like the heading of one of these agents.
fn without_headings(text: &str, names: &[&str]) -> String {
    let lines = text.trim().lines().map(|line| {
        let bare = line.trim_start();
        let is_heading = bare.starts_with('#') && names.contains(&bare.trim_matches(['#', ' ']));
        if is_heading {
            format!("\\{bare}")
        } else {
            line.to_owned()
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn name<'r>(record: &'r SessionRecord, stage: &StageRecord, run: &ExecutionRecord) -> &'r str {
    let agent = record
        .plan
        .stage(stage.stage_no)
        .and_then(|plan| plan.agent(run.agent_no));
    agent.map_or("agent", |agent| &agent.name)
}

#[cfg(test)]
mod tests;
