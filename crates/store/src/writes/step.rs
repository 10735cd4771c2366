//! The session's own transitions: a stage begins with its executions, a stage ends.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Integer, Nullable, Text};

use tarsy_core::timeline::{EventType, TimelineEvent};
use tarsy_engine::ports::{Lease, SessionStep, StageChange};

use crate::fence::{Progress, verdict};
use crate::rows::columns::{Changes, Events};
use crate::rows::{number, stored};
use crate::statement::statement;
use crate::tails::{Committed, Verdict};

pub(crate) struct Step {
    lease: Lease,
    number: i32,
    epoch: i32,
    at: DateTime<Utc>,
    event_stage: Vec<Option<i32>>,
    events: Events,
    changes: Changes,
}

statement!(Step, "step.sql" -> (Integer, Nullable<Text>), [
    number, events.event_type, lease.session_id.0, epoch, lease.token, at, event_stage, events.status,
    events.content, events.metadata, changes.stages.stage_no, changes.stages.name, changes.stages.policy,
    changes.executions.execution_id, changes.executions.stage_no, changes.executions.agent_no,
    changes.executions.agent, changes.executions.strategy, changes.executions.backend, changes.executions.model,
    changes.ended.stage_no, changes.ended.status, changes.ended.error,
]);

impl Step {
    pub(crate) fn new(lease: Lease, step: SessionStep) -> Self {
        let (changed, event_type) = match &step.change {
            StageChange::Begin(begin) => (number::int(begin.stage_no), EventType::StageStarted),
            StageChange::End(end) => (number::int(end.stage_no), EventType::StageCompleted),
        };
        let stages = step
            .events
            .iter()
            .map(|event| (event.event_type == event_type).then_some(changed));
        let event_stage = stages.collect();
        Self {
            lease,
            number: number::int(step.number),
            epoch: number::int(lease.epoch),
            at: step.at,
            event_stage,
            events: Events::new(step.events),
            changes: Changes::new(step.change),
        }
    }

    pub(crate) fn write(&self, connection: &mut PgConnection) -> Verdict<()> {
        let stepped: Option<(i32, Option<String>)> = self.get_result(connection).optional()?;
        if let Some((first_seq, ended_stage)) = stepped {
            return Ok(Ok(Committed {
                outcome: (),
                events: Some(self.committed_events(first_seq, ended_stage)),
            }));
        }
        let written = verdict(connection, &self.lease, None, |fence| {
            if fence.step == self.number {
                Progress::Done
            } else {
                Progress::new(self.number, fence.step)
            }
        })?;
        Ok(written.map(|()| Committed::default()))
    }

    /// The events of this step, as a read of the table would return them.
    fn committed_events(&self, first_seq: i32, ended_stage: Option<String>) -> Vec<TimelineEvent> {
        let stage = self.changes.stages.name.first().cloned().or(ended_stage);
        let first = stored::session_event(self.lease.session_id, first_seq, self.at);
        let mut events = self.events.committed(&first);
        for (event, stage_no) in events.iter_mut().zip(&self.event_stage) {
            event.stage = stage_no.and(stage.clone());
        }
        events
    }
}
