//! Reads the reason why a fenced write was refused. The read is a separate statement: the refused write had an older
//! snapshot.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Integer, Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

use tarsy_core::ids::SessionId;
use tarsy_engine::ports::{Lease, RunStatus, StoreError};
use tarsy_reports::stored::Stored;

use super::rows::number;
use super::statement::statement;

pub(super) struct ReadFence {
    execution_id: Option<Uuid>,
    session_id: Uuid,
}

statement!(ReadFence, "fence.sql" -> (
    Text, Integer, SqlUuid, Integer, Bool, Nullable<Integer>, Nullable<SqlUuid>
), [execution_id, session_id]);

/// The stored progress of a session and one of its executions.
#[derive(Debug, Queryable)]
pub(super) struct Fence {
    #[diesel(deserialize_as = Stored<RunStatus>)]
    status: RunStatus,
    epoch: i32,
    pub(super) token: Uuid,
    pub(super) step: i32,
    pub(super) ownerless: bool,
    pub(super) checkpoint: Option<i32>,
    pub(super) checkpoint_id: Option<Uuid>,
}

impl Fence {
    pub(super) fn read(
        connection: &mut PgConnection,
        session: SessionId,
        execution: Option<Uuid>,
    ) -> QueryResult<Option<Self>> {
        let read = ReadFence {
            execution_id: execution,
            session_id: session.0,
        };
        (&read).get_result(connection).optional()
    }

    pub(super) fn epoch(&self) -> u32 {
        number::from_int(self.epoch)
    }

    pub(super) fn is_running(&self) -> bool {
        self.status == RunStatus::Running
    }

    fn is_held_by(&self, lease: &Lease) -> bool {
        self.epoch() == lease.epoch && self.token == lease.token
    }
}

/// The state of the store after a write that wrote nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// An earlier attempt committed it.
    Done,
    /// A write before it, which was confirmed to this run, is missing.
    Behind,
    /// A request for approval has no outcome that permits it.
    Undecided,
    Refused,
}

impl Progress {
    /// The progress of write number `number`, where the store has reached `reached`.
    pub(super) fn new(number: i32, reached: i32) -> Self {
        if reached < number - 1 {
            Self::Behind
        } else {
            Self::Refused
        }
    }
}

/// The verdict on a write of `lease`, to an execution or to the session itself, that wrote nothing.
pub(super) fn verdict(
    connection: &mut PgConnection,
    lease: &Lease,
    execution: Option<Uuid>,
    progress: impl FnOnce(&Fence) -> Progress,
) -> QueryResult<Result<(), StoreError>> {
    Ok(judge(
        Fence::read(connection, lease.session_id, execution)?,
        lease,
        progress,
    ))
}

/// The verdict on a write of `lease` that wrote nothing, from what was read after it.
pub(super) fn judge(
    fence: Option<Fence>,
    lease: &Lease,
    progress: impl FnOnce(&Fence) -> Progress,
) -> Result<(), StoreError> {
    let Some(fence) = fence else {
        return Err(StoreError::Behind(format!(
            "session {} is gone",
            lease.session_id
        )));
    };
    let current = fence.epoch();
    if current < lease.epoch {
        return Err(StoreError::Behind(format!(
            "it has lease epoch {current}, this run has {}",
            lease.epoch
        )));
    }
    if !fence.is_held_by(lease) {
        return Err(StoreError::LeaseLost {
            held: lease.epoch,
            current,
        });
    }
    let progress = progress(&fence);
    if progress == Progress::Done {
        return Ok(());
    }
    if !fence.is_running() {
        return Err(StoreError::Ended);
    }
    if progress == Progress::Behind {
        return Err(StoreError::Behind(format!(
            "steps of lease epoch {} are gone: {fence:?}",
            lease.epoch
        )));
    }
    if progress == Progress::Undecided {
        return Err(StoreError::Undecided(
            "a request for approval has another outcome now".to_owned(),
        ));
    }
    Err(StoreError::Conflict(format!(
        "a second writer under lease epoch {}: {fence:?}",
        lease.epoch
    )))
}

/// Counts a refused write under the name of its statement.
pub(super) fn counted<T>(
    statement: &'static str,
    verdict: Result<T, StoreError>,
) -> Result<T, StoreError> {
    if verdict.as_ref().is_err_and(|error| {
        !matches!(
            error,
            StoreError::Unavailable(_) | StoreError::TimedOut(_) | StoreError::Undecided(_)
        )
    }) {
        count_refused(statement);
    }
    verdict
}

/// Counts one refused write of this statement.
pub(super) fn count_refused(statement: &'static str) {
    metrics::counter!("tarsy_writes_refused_total", "statement" => statement).increment(1);
}
