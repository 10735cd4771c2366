//! The end of a session, with that of its last stage and the last events.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Integer, Nullable, Text};
use serde_json::{Value, json};

use tarsy_core::execution::entry::Mark;
use tarsy_core::search::analysis_words;
use tarsy_core::timeline::{EventDraft, EventType, TimelineEvent};
use tarsy_engine::ports::{DeadReason, Lease, RunStatus, SessionEnd, StageEnded};

use crate::fence::{Progress, verdict};
use crate::rows::columns::Events;
use crate::rows::{nul, number, stored};
use crate::statement::statement;
use crate::tails::{Committed, Verdict};

pub(crate) struct Finish {
    lease: Lease,
    status: &'static str,
    stop_reason: &'static str,
    final_analysis: Option<String>,
    executive_summary: Option<String>,
    error: Option<String>,
    dead_letter: Option<&'static str>,
    covered_updates: i32,
    mark: Option<&'static str>,
    review: Option<Value>,
    epoch: i32,
    open_status: &'static str,
    at: DateTime<Utc>,
    ended: EndedStage,
    event_stage: Vec<Option<i32>>,
    events: Events,
    /// The search words of the analysis.
    words: Vec<String>,
}

/// The end of the last stage, if it is written with that of the session.
#[derive(Default)]
struct EndedStage {
    step: Option<i32>,
    stage_no: Option<i32>,
    status: Option<&'static str>,
    error: Option<String>,
}

statement!(Finish, "finish.sql" -> (Nullable<Integer>, Nullable<Text>), [
    lease.session_id.0, status, stop_reason, final_analysis, executive_summary, error, dead_letter,
    covered_updates, mark, review, ended.step, events.event_type, epoch, lease.token, open_status, at, ended.stage_no,
    ended.status, ended.error, event_stage, events.status, events.content, events.metadata, words,
]);

impl Finish {
    /// `link` leads to the page of the session.
    pub(crate) fn new(lease: Lease, end: SessionEnd, link: Option<String>) -> Self {
        let event = with_reason(end.event, end.reason.as_str()).with("url", link);
        let end = SessionEnd { event, ..end };
        let drafts = end.events();
        let ended = end.stage.map(EndedStage::from).unwrap_or_default();
        let stages = drafts.iter().map(|event| {
            if event.event_type == EventType::StageCompleted {
                ended.stage_no
            } else {
                None
            }
        });
        let event_stage = stages.collect();
        let words = analysis_words(
            end.executive_summary.as_deref(),
            end.final_analysis.as_deref(),
        );
        Self {
            lease,
            status: end.status.as_str(),
            stop_reason: end.reason.as_str(),
            final_analysis: end.final_analysis.map(nul::replace),
            executive_summary: end.executive_summary.map(nul::replace),
            error: end.error.map(nul::replace),
            dead_letter: end.dead_letter.map(DeadReason::as_str),
            covered_updates: number::int(end.covered_updates),
            mark: end.mark.map(Mark::as_str),
            review: end.review.as_ref().map(Value::from).map(nul::replace_json),
            epoch: number::int(lease.epoch),
            open_status: open_status(end.status).as_str(),
            at: end.at,
            ended,
            event_stage,
            events: Events::new(drafts),
            words,
        }
    }

    pub(crate) fn write(&self, connection: &mut PgConnection) -> Verdict<()> {
        let written: Option<(Option<i32>, Option<String>)> =
            self.get_result(connection).optional()?;
        if let Some((first_seq, stage)) = written {
            return Ok(Ok(Committed {
                outcome: (),
                events: first_seq.map(|first_seq| self.committed_events(first_seq, stage.as_ref())),
            }));
        }
        let written = verdict(connection, &self.lease, None, |fence| {
            match self.ended.step {
                _ if !fence.is_running() => Progress::Done,
                Some(step) => Progress::new(step, fence.step),
                None => Progress::Refused,
            }
        })?;
        Ok(written.map(|()| Committed::default()))
    }

    /// The last events, as a read of the table would return them.
    fn committed_events(&self, first_seq: i32, stage: Option<&String>) -> Vec<TimelineEvent> {
        let mut events = self.events.committed(&stored::session_event(
            self.lease.session_id,
            first_seq,
            self.at,
        ));
        for (event, stage_no) in events.iter_mut().zip(&self.event_stage) {
            event.stage = stage_no.and(stage.cloned());
        }
        events
    }
}

impl From<StageEnded> for EndedStage {
    fn from(ended: StageEnded) -> Self {
        Self {
            step: Some(number::int(ended.step)),
            stage_no: Some(number::int(ended.end.stage_no)),
            status: Some(ended.end.status.as_str()),
            error: ended.end.error.map(nul::replace),
        }
    }
}

/// The status of executions and stages that still run when the session ends.
fn open_status(status: RunStatus) -> RunStatus {
    match status {
        RunStatus::Completed | RunStatus::Running | RunStatus::Unknown(_) => RunStatus::Cancelled,
        RunStatus::Failed | RunStatus::Cancelled | RunStatus::TimedOut | RunStatus::Limited => {
            status
        }
    }
}

fn with_reason(mut event: EventDraft, reason: &str) -> EventDraft {
    if event.metadata.is_null() {
        event.metadata = json!({});
    }
    event.with("stop_reason", Some(reason))
}
