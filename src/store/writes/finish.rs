//! The end of a session, with its last events.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, Integer, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use serde_json::json;

use crate::engine::ports::{DeadReason, Lease, RunStatus, SessionEnd};
use crate::investigation::timeline::{EventDraft, TimelineEvent};

use crate::store::fence::{Fence, Progress, verdict};
use crate::store::rows::columns::Events;
use crate::store::rows::{nul, number, stored};
use crate::store::statement::statement;
use crate::store::tails::{Committed, Verdict};

pub(crate) struct Finish {
    lease: Lease,
    status: &'static str,
    stop_reason: &'static str,
    final_analysis: Option<String>,
    executive_summary: Option<String>,
    error: Option<String>,
    dead_letter: Option<&'static str>,
    covered_updates: i32,
    epoch: i32,
    open_status: &'static str,
    at: DateTime<Utc>,
    events: Events,
}

statement!(Finish, "finish.sql", Nullable<Integer>, [
    SqlUuid: lease.session_id.0,
    Text: status,
    Text: stop_reason,
    Nullable<Text>: final_analysis,
    Nullable<Text>: executive_summary,
    Nullable<Text>: error,
    Nullable<Text>: dead_letter,
    Integer: covered_updates,
    Array<Text>: events.event_type,
    Integer: epoch,
    SqlUuid: lease.token,
    Text: open_status,
    Timestamptz: at,
    Array<Text>: events.status,
    Array<Text>: events.content,
    Array<Nullable<Jsonb>>: events.metadata,
]);

impl Finish {
    pub(crate) fn new(lease: Lease, end: SessionEnd) -> Self {
        let end = SessionEnd { event: with_reason(end.event, end.reason.as_str()), ..end };
        let events = Events::new(end.events());
        Self {
            lease,
            status: end.status.as_str(),
            stop_reason: end.reason.as_str(),
            final_analysis: end.final_analysis.map(nul::replace),
            executive_summary: end.executive_summary.map(nul::replace),
            error: end.error.map(nul::replace),
            dead_letter: end.dead_letter.map(DeadReason::as_str),
            covered_updates: number::int(end.covered_updates),
            epoch: number::int(lease.epoch),
            open_status: open_status(end.status).as_str(),
            at: end.at,
            events,
        }
    }

    pub(crate) fn write(&self, connection: &mut PgConnection) -> Verdict<()> {
        let written: Option<Option<i32>> = self.get_result(connection).optional()?;
        if let Some(first_seq) = written {
            let events = first_seq.map(|first_seq| self.committed_events(first_seq));
            return Ok(Ok(Committed { outcome: (), events }));
        }
        let progress = |fence: &Fence| if fence.is_running() { Progress::Refused } else { Progress::Done };
        Ok(verdict(connection, &self.lease, None, progress)?.map(|()| Committed::default()))
    }

    /// The last events, as a read of the table would return them.
    fn committed_events(&self, first_seq: i32) -> Vec<TimelineEvent> {
        self.events.committed(&stored::session_event(self.lease.session_id, first_seq, self.at))
    }
}

/// The status of executions and stages that still run when the session ends.
fn open_status(status: RunStatus) -> RunStatus {
    match status {
        RunStatus::Completed | RunStatus::Running => RunStatus::Cancelled,
        RunStatus::Failed | RunStatus::Cancelled | RunStatus::TimedOut => status,
    }
}

fn with_reason(event: EventDraft, reason: &str) -> EventDraft {
    let event = if event.metadata.is_null() { EventDraft { metadata: json!({}), ..event } } else { event };
    event.with("stop_reason", Some(reason))
}
