//! The session's own transitions: a stage begins with its executions, a stage ends.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, Integer, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid};

use crate::engine::ports::{Lease, SessionStep, StageChange, StoreError};
use crate::investigation::timeline::{EventDraft, EventType};

use crate::store::fence::{Progress, verdict};
use crate::store::rows::columns::{Changes, Events};
use crate::store::rows::number;
use crate::store::statement::statement;

pub(crate) struct Step {
    lease: Lease,
    number: i32,
    epoch: i32,
    at: DateTime<Utc>,
    event_stage: Vec<Option<i32>>,
    events: Events,
    changes: Changes,
}

statement!(Step, "step.sql", Integer, [
    Integer: number,
    Array<Text>: events.event_type,
    SqlUuid: lease.session_id.0,
    Integer: epoch,
    SqlUuid: lease.token,
    Timestamptz: at,
    Array<Nullable<Integer>>: event_stage,
    Array<Text>: events.status,
    Array<Text>: events.content,
    Array<Nullable<Jsonb>>: events.metadata,
    Array<Integer>: changes.stages.stage_no,
    Array<Text>: changes.stages.name,
    Array<Text>: changes.stages.policy,
    Array<SqlUuid>: changes.executions.execution_id,
    Array<Integer>: changes.executions.stage_no,
    Array<Integer>: changes.executions.agent_no,
    Array<Text>: changes.executions.agent,
    Array<Text>: changes.executions.strategy,
    Array<Text>: changes.executions.backend,
    Array<Text>: changes.executions.model,
    Array<Integer>: changes.ended.stage_no,
    Array<Text>: changes.ended.status,
    Array<Nullable<Text>>: changes.ended.error,
]);

impl Step {
    pub(crate) fn new(lease: Lease, step: SessionStep) -> Self {
        let (changed, event_type) = match &step.change {
            StageChange::Begin(begin) => (number::int(begin.stage_no), EventType::StageStarted),
            StageChange::End(end) => (number::int(end.stage_no), EventType::StageCompleted),
        };
        let stage_of = |event: &EventDraft| (event.event_type == event_type).then_some(changed);
        let event_stage = step.events.iter().map(stage_of).collect();
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

    pub(crate) fn write(&self, connection: &mut PgConnection) -> QueryResult<Result<(), StoreError>> {
        let first_seq: Option<i32> = self.get_result(connection).optional()?;
        if first_seq.is_some() {
            return Ok(Ok(()));
        }
        verdict(connection, &self.lease, None, |fence| {
            if fence.step == self.number { Progress::Done } else { Progress::of(self.number, fence.step) }
        })
    }
}
