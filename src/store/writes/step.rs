//! The session's own transitions: a stage begins with its executions, a stage ends.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, Integer, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use uuid::Uuid;

use crate::engine::ports::{Lease, SessionStep, StoreError};
use crate::investigation::timeline::EventType;

use crate::store::fence::{Fence, Progress, verdict};
use crate::store::rows::columns::{EndedStages, Events, Executions, Stages, begun};
use crate::store::rows::number;
use crate::store::statement::statement;

pub(crate) struct Step {
    lease: Lease,
    number: i32,
    session_id: Uuid,
    epoch: i32,
    token: Uuid,
    at: DateTime<Utc>,
    event_stage: Vec<Option<i32>>,
    events: Events,
    stages: Stages,
    executions: Executions,
    ended: EndedStages,
}

statement!(Step, "step.sql", Integer, [
    Integer: number,
    Array<Text>: events.event_type,
    SqlUuid: session_id,
    Integer: epoch,
    SqlUuid: token,
    Timestamptz: at,
    Array<Nullable<Integer>>: event_stage,
    Array<Text>: events.status,
    Array<Text>: events.content,
    Array<Nullable<Jsonb>>: events.metadata,
    Array<Integer>: stages.stage_no,
    Array<Text>: stages.name,
    Array<Text>: stages.policy,
    Array<SqlUuid>: executions.execution_id,
    Array<Integer>: executions.stage_no,
    Array<Integer>: executions.agent_no,
    Array<Text>: executions.agent,
    Array<Text>: executions.strategy,
    Array<Text>: executions.backend,
    Array<Text>: executions.model,
    Array<Integer>: ended.stage_no,
    Array<Text>: ended.status,
    Array<Nullable<Text>>: ended.error,
]);

impl Step {
    pub(crate) fn new(lease: Lease, step: SessionStep) -> Self {
        let begins = step.begin.as_ref().map(|begin| number::int(begin.stage_no));
        let ends = step.end.as_ref().map(|end| number::int(end.stage_no));
        let event_stage = step
            .events
            .iter()
            .map(|event| {
                if event.event_type == EventType::StageStarted {
                    begins
                } else if event.event_type == EventType::StageCompleted {
                    ends
                } else {
                    None
                }
            })
            .collect();
        let (stages, executions) = begun(step.begin);
        Self {
            lease,
            number: number::int(step.number),
            session_id: lease.session_id.0,
            epoch: number::int(lease.epoch),
            token: lease.token,
            at: step.at,
            event_stage,
            events: Events::new(step.events),
            stages,
            executions,
            ended: EndedStages::new(step.end),
        }
    }

    pub(crate) fn write(&self, connection: &mut PgConnection) -> QueryResult<Result<(), StoreError>> {
        let first_seq: Option<i32> = self.get_result(connection).optional()?;
        if first_seq.is_some() {
            return Ok(Ok(()));
        }
        let fence = Fence::read(connection, self.session_id, None)?;
        Ok(verdict(fence, &self.lease, |fence| {
            if fence.step == self.number { Progress::Done } else { Progress::of(self.number, fence.step) }
        }))
    }
}
