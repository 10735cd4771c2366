//! Why a fenced write wrote nothing: read in a statement of its own, because the refused one had an older snapshot.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Integer, Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

use crate::engine::ports::{JournalError, Lease};

use super::number;
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

/// The verdict on a write of `lease` that wrote nothing: `already` tells whether the store shows it as done before.
pub(super) fn verdict(
    fence: Option<Fence>,
    lease: &Lease,
    already: impl FnOnce(&Fence) -> bool,
) -> Result<(), JournalError> {
    let Some(fence) = fence else {
        return Err(JournalError::Conflict(format!("no session {}", lease.session_id)));
    };
    if !fence.is_of(lease) {
        return Err(JournalError::LeaseLost { held: lease.epoch, current: fence.epoch });
    }
    if already(&fence) {
        return Ok(());
    }
    if !fence.running {
        return Err(JournalError::Ended);
    }
    Err(JournalError::Conflict(format!("a second writer under lease epoch {}: {fence:?}", lease.epoch)))
}

/// Counts a refused write under the name of its statement.
pub(super) fn counted<T>(statement: &'static str, verdict: Result<T, JournalError>) -> Result<T, JournalError> {
    match &verdict {
        Ok(_) | Err(JournalError::Away(_)) => {}
        Err(JournalError::LeaseLost { .. } | JournalError::Ended | JournalError::Conflict(_)) => count(statement),
    }
    verdict
}

/// One more refused write.
pub(super) fn count(statement: &'static str) {
    metrics::counter!("tarsy_writes_refused_total", "statement" => statement).increment(1);
}
