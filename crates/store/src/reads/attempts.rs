//! The tries of an execution's model calls, from its timeline.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::Integer;
use uuid::Uuid;

use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_engine::ports::RecordedAttempts;

use crate::rows::number;
use crate::statement::statement;

pub(crate) struct ReadAttempts {
    session_id: Uuid,
    execution_id: Uuid,
}

statement!(ReadAttempts, "attempts.sql" -> (Integer, Integer), [session_id, execution_id]);

impl ReadAttempts {
    pub(crate) fn new(session: SessionId, execution: ExecutionId) -> Self {
        Self {
            session_id: session.0,
            execution_id: execution.0,
        }
    }

    pub(crate) fn read(&self, connection: &mut PgConnection) -> QueryResult<RecordedAttempts> {
        let rows: Vec<(i32, i32)> = self.get_results(connection)?;
        let rows = rows
            .into_iter()
            .map(|(iteration, attempts)| (number::from_int(iteration), number::from_int(attempts)));
        let mut recorded = RecordedAttempts {
            claims: 0,
            by_iteration: rows.collect(),
        };
        recorded.claims = recorded.by_iteration.remove(&0).unwrap_or(0);
        Ok(recorded)
    }
}
