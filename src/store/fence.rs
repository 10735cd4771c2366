//! Why a fenced write wrote nothing: read in a statement of its own, because the refused one had an older snapshot.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Integer, Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

use crate::engine::ports::{Lease, StoreError};

use super::rows::number;
use super::statement::statement;

pub(super) struct ReadFence {
    execution_id: Option<Uuid>,
    session_id: Uuid,
}

statement!(ReadFence, "fence.sql", (Text, Integer, SqlUuid, Integer, Bool, Nullable<Integer>, Nullable<SqlUuid>), [
    Nullable<SqlUuid>: execution_id,
    SqlUuid: session_id,
]);

type FenceRow = (String, i32, Uuid, i32, bool, Option<i32>, Option<Uuid>);

/// Where a session and one of its executions are.
#[derive(Debug)]
pub(super) struct Fence {
    pub(super) running: bool,
    pub(super) epoch: u32,
    pub(super) token: Uuid,
    pub(super) step: i32,
    pub(super) ownerless: bool,
    pub(super) checkpoint: Option<i32>,
    pub(super) checkpoint_id: Option<Uuid>,
}

impl Fence {
    pub(super) fn read(
        connection: &mut PgConnection,
        session: Uuid,
        execution: Option<Uuid>,
    ) -> QueryResult<Option<Self>> {
        let read = ReadFence { execution_id: execution, session_id: session };
        let row: Option<FenceRow> = (&read).get_result(connection).optional()?;
        Ok(row.map(|(status, epoch, token, step, ownerless, checkpoint, checkpoint_id)| Self {
            running: status == "running",
            epoch: number::from_int(epoch),
            token,
            step,
            ownerless,
            checkpoint,
            checkpoint_id,
        }))
    }

    pub(super) fn is_of(&self, lease: &Lease) -> bool {
        self.epoch == lease.epoch && self.token == lease.token
    }
}

/// What the store shows of a write that wrote nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It was done before.
    Done,
    /// What has to stand before it, and was confirmed to this run, is missing.
    Behind,
    /// Neither.
    Refused,
}

impl Progress {
    /// Of a write that is done or not.
    pub(super) fn done_if(done: bool) -> Self {
        if done { Self::Done } else { Self::Refused }
    }

    /// Of write number `number`, where the store has reached `reached`.
    pub(super) fn of(number: i32, reached: i32) -> Self {
        if reached < number - 1 { Self::Behind } else { Self::Refused }
    }
}

/// The verdict on a write of `lease` that wrote nothing.
pub(super) fn verdict(
    fence: Option<Fence>,
    lease: &Lease,
    progress: impl FnOnce(&Fence) -> Progress,
) -> Result<(), StoreError> {
    let Some(fence) = fence else {
        return Err(StoreError::Behind(format!("session {} is gone", lease.session_id)));
    };
    if fence.epoch < lease.epoch {
        return Err(StoreError::Behind(format!("it has lease epoch {}, this run has {}", fence.epoch, lease.epoch)));
    }
    if !fence.is_of(lease) {
        return Err(StoreError::LeaseLost { held: lease.epoch, current: fence.epoch });
    }
    let progress = progress(&fence);
    if progress == Progress::Done {
        return Ok(());
    }
    if !fence.running {
        return Err(StoreError::Ended);
    }
    if progress == Progress::Behind {
        return Err(StoreError::Behind(format!("steps of lease epoch {} are gone: {fence:?}", lease.epoch)));
    }
    Err(StoreError::Conflict(format!("a second writer under lease epoch {}: {fence:?}", lease.epoch)))
}

/// Counts a refused write under the name of its statement.
pub(super) fn counted<T>(statement: &'static str, verdict: Result<T, StoreError>) -> Result<T, StoreError> {
    match &verdict {
        Ok(_) | Err(StoreError::Unavailable(_)) => {}
        Err(
            StoreError::LeaseLost { .. }
            | StoreError::Ended
            | StoreError::Behind(_)
            | StoreError::Conflict(_)
            | StoreError::Refused(_),
        ) => count(statement),
    }
    verdict
}

/// One more refused write.
pub(super) fn count(statement: &'static str) {
    metrics::counter!("tarsy_writes_refused_total", "statement" => statement).increment(1);
}
