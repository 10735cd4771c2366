//! A checkpoint that makes or closes requests for approval. Any other one is written by `checkpoint.sql`, as before.

use std::ops::Deref;

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Integer, Nullable, Text};
use serde_json::Value;

use tarsy_engine::ports::{Appended, Checkpoint, Lease, StoreError};

use super::columns::{Closed, asked};
use crate::fence::Progress;
use crate::statement::statement;
use crate::tails::Verdict;
use crate::writes::checkpoint::{Append, AppendedRow};
use crate::writes::notify::PlannedRows;

pub(crate) struct AppendRequests {
    append: Append,
    asked: Value,
    closed: Closed,
    notifications: PlannedRows,
}

impl Deref for AppendRequests {
    type Target = Append;

    fn deref(&self) -> &Append {
        &self.append
    }
}

statement!(AppendRequests, "checkpoint_approvals.sql" -> (Integer, Integer, Text, Nullable<Text>, Integer), [
    lease.session_id.0, execution_id, number, closed.call_id, closed.outcome, events.event_type, epoch, lease.token,
    closed.seen, id, iteration, status, error, analysis, at, entries.kind, attempt, events.status, events.content,
    events.metadata, entries.role, entries.content, entries.tool_call_id, entries.tool_name, entries.body,
    entries.provider_data, entries.event_no, models.entries_upto, models.duration_ms, models.input, models.cached,
    models.output, models.thinking, models.purpose, models.provider, models.backend, models.model, models.error,
    models.response, tools.duration_ms, tools.read_only, tools.state, tools.call_id, tools.tool, tools.arguments,
    tools.result, tools.error, sub_agents.execution_id, sub_agents.call_id, sub_agents.agent, sub_agents.strategy,
    sub_agents.backend, sub_agents.model, asked, notifications.routes, notifications.moments,
]);

/// A checkpoint, by the statement that it needs.
pub(crate) enum WriteCheckpoint {
    Plain(Append),
    Requests(AppendRequests),
}

impl WriteCheckpoint {
    /// `notifications` are those about each request that the checkpoint makes.
    pub(crate) fn new(
        lease: Lease,
        mut checkpoint: Checkpoint,
        notifications: PlannedRows,
    ) -> Result<Self, StoreError> {
        if checkpoint.asked.is_empty() && checkpoint.closed.is_empty() {
            return Append::new(lease, checkpoint).map(Self::Plain);
        }
        let requests = std::mem::take(&mut checkpoint.asked);
        let closed = Closed::new(std::mem::take(&mut checkpoint.closed));
        Ok(Self::Requests(AppendRequests {
            asked: asked(requests, &checkpoint.events)?,
            closed,
            notifications,
            append: Append::new(lease, checkpoint)?,
        }))
    }

    pub(crate) fn write(&self, connection: &mut PgConnection) -> Verdict<Appended> {
        match self {
            Self::Plain(append) => append.write(connection),
            Self::Requests(requests) => requests.write(connection),
        }
    }
}

impl AppendRequests {
    fn write(&self, connection: &mut PgConnection) -> Verdict<Appended> {
        let appended: Option<AppendedRow> = self.get_result(connection).optional()?;
        let refused = if self.closed.is_empty() {
            Progress::Refused
        } else {
            // Only a request that it closes refuses a checkpoint that is the next one.
            Progress::Undecided
        };
        self.append.verdict(connection, appended, refused)
    }
}

#[cfg(test)]
mod tests {
    use crate::statement::Statement as _;
    use crate::writes::checkpoint::Append;

    use super::AppendRequests;

    fn statement(sql: &str) -> Vec<&str> {
        let lines = sql.lines();
        lines.skip_while(|line| line.starts_with("--")).collect()
    }

    #[test]
    fn the_statement_of_a_checkpoint_with_requests_is_the_plain_one_with_marked_lines() {
        let mut plain = Vec::new();
        let mut is_marked = false;
        for line in statement(AppendRequests::SQL) {
            match line {
                "-- {" => is_marked = true,
                "-- }" => is_marked = false,
                line if !is_marked => plain.push(line),
                _ => {}
            }
        }
        assert_eq!(plain, statement(Append::SQL));
    }
}
