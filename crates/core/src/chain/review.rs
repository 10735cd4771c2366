//! The end of a chain with a review: whether the review begins, and what the session ends with.

use super::{
    Conclusion, Next, Reviewed, RunStatus, SessionRecord, StageRecord, analysis, cut_short, stop,
};
use crate::plan::{Plan, ReviewWhen};
use crate::review::{Looked, Review, Verdict, joined};
use crate::summary::{Sure, fields};

/// Whether the stage of this number, counted from 1, is a review.
pub fn is_review(plan: &Plan, stage_no: u32) -> bool {
    when(plan, stage_no).is_some()
}

fn when(plan: &Plan, stage_no: u32) -> Option<ReviewWhen> {
    plan.stage(stage_no).and_then(|stage| stage.review)
}

/// The step after the stage before a review: a review that is due begins, unless the session has to stop.
pub(super) fn due(record: &SessionRecord, stage: &StageRecord) -> Next {
    if is_due(record, stage) && stop(stage).is_none() {
        Next::Begin(stage.stage_no + 1)
    } else {
        Next::Finish(unreviewed(record, stage))
    }
}

/// Whether the analysis of a stage is to be reviewed, by the condition of the stage after it.
fn is_due(record: &SessionRecord, stage: &StageRecord) -> bool {
    match when(&record.plan, stage.stage_no + 1) {
        None => false,
        Some(ReviewWhen::Always) => true,
        Some(ReviewWhen::Weak) => is_weak(record, stage),
    }
}

/// Whether an analysis is not proven, or does not call itself certain.
fn is_weak(record: &SessionRecord, stage: &StageRecord) -> bool {
    let is_marked = stage.executions.iter().any(|run| run.mark.is_some());
    let found = analysis(record, stage).unwrap_or_default();
    let is_certain = fields(&found).sure == Some(Sure::Certain);
    is_marked || !record.plan.unavailable_servers.is_empty() || !is_certain
}

/// The end after a review that has ended, in whatever way.
pub(super) fn ended(record: &SessionRecord, review: &StageRecord) -> Next {
    let Some(completed) = without_review(record) else {
        return cut_short(record, review.status, None);
    };
    let mut runs = review.executions.iter();
    let looked = runs.find_map(|run| Some((run, run.review.as_ref()?, run.analysis.as_deref()?)));
    let (Some((run, review, text)), Some(original)) = (looked, &completed.analysis) else {
        return Next::Finish(completed);
    };
    let looked = Looked {
        review,
        text,
        mark: run.mark,
    };
    let joined = joined(original, &looked);
    Next::Finish(Conclusion {
        analysis: Some(joined.analysis),
        review: Some(Reviewed {
            review: joined.review,
            mark: joined.mark,
        }),
        ..completed
    })
}

/// The end of a session whose stages are completed up to its review, if the review is not made; `None` if a stage
/// before the review is not completed, or the plan has no review.
pub fn without_review(record: &SessionRecord) -> Option<Conclusion> {
    let mut stages = record.stages.iter().rev();
    let stage = stages.find(|stage| !is_review(&record.plan, stage.stage_no))?;
    let is_reviewed = is_review(&record.plan, stage.stage_no + 1);
    (is_reviewed && stage.status == RunStatus::Completed).then(|| unreviewed(record, stage))
}

/// The end with the analysis of a stage whose review, if it was due, is not made.
fn unreviewed(record: &SessionRecord, stage: &StageRecord) -> Conclusion {
    Conclusion {
        status: RunStatus::Completed,
        analysis: analysis(record, stage),
        error: None,
        taken_over_from: None,
        review: is_due(record, stage).then(|| Reviewed {
            review: Review {
                verdict: Verdict::Failed,
                model: model(record, stage.stage_no + 1),
            },
            mark: None,
        }),
    }
}

/// The model that a review is planned with.
fn model(record: &SessionRecord, stage_no: u32) -> String {
    let agent = record.plan.stage(stage_no).and_then(|stage| stage.agent(1));
    let provider = agent.and_then(|agent| agent.providers.first());
    provider
        .map(|provider| provider.model.clone())
        .unwrap_or_default()
}
