//! The material of a review, read from the journals of its session.

use super::control::Interrupted;
use crate::ports::{Journal, SessionRecord};
use crate::world::{Ports, World};
use tarsy_core::chain::{self, is_review, without_review};
use tarsy_core::ids::SessionId;
use tarsy_core::plan::StagePlan;

/// The material for the review of a session: the analysis, the calls behind it, and the results that it cites. The
/// executions before a review have ended, so every worker makes the same.
pub(super) async fn material<W: World>(
    ports: &Ports<W>,
    session: SessionId,
    record: &SessionRecord,
    stage: &StagePlan,
) -> Result<Option<String>, Interrupted> {
    let Some(analysis) = without_review(record).and_then(|completed| completed.analysis) else {
        return Ok(None);
    };
    let Some(reviewer) = stage.agents.first() else {
        return Ok(None);
    };
    let mut journals = Vec::new();
    for stage in &record.stages {
        if is_review(&record.plan, stage.stage_no) {
            continue;
        }
        for run in &stage.executions {
            let journal = ports.journal.entries(session, run.execution_id).await?;
            // What a sub-agent has seen may be cited, too.
            for dispatched in journal
                .iter()
                .filter_map(|recorded| recorded.entry.dispatched())
            {
                journals.push(
                    ports
                        .journal
                        .entries(session, dispatched.execution_id)
                        .await?,
                );
            }
            journals.push(journal);
        }
    }
    Ok(Some(chain::material(&analysis, &journals, reviewer)))
}
