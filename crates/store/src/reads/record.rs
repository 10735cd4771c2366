//! The reads of a resumed run: the frozen plan, the progress of the session, the entries of an execution.

use diesel::dsl::sql;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Jsonb, Nullable};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use tarsy_core::execution::entry::Mark;
use tarsy_core::execution::event_refs::RecordedEntry;
use tarsy_core::execution::recovery::{LostCall, Recovery};
use tarsy_core::ids::ExecutionId;
use tarsy_core::review::Review;
use tarsy_engine::ports::{
    ExecutionRecord, RunStatus, SessionRecord, StageRecord, StoreError, SubAgentRecord,
};
use tarsy_reports::stored::{Stored, StoredOption};

use crate::rows::entry::{StoredEntry, decode};
use crate::rows::number;
use crate::schema::{agent_executions, alert_sessions, entries, session_plans, stages};

#[derive(Queryable, Selectable)]
#[diesel(table_name = stages, check_for_backend(diesel::pg::Pg))]
struct StageRow {
    stage_no: i32,
    #[diesel(deserialize_as = Stored<RunStatus>)]
    status: RunStatus,
}

#[derive(Queryable)]
struct ExecutionRow {
    #[diesel(deserialize_as = Stored<ExecutionId>)]
    execution_id: ExecutionId,
    stage_no: i32,
    agent_no: i32,
    #[diesel(deserialize_as = Stored<RunStatus>)]
    status: RunStatus,
    checkpoint: i32,
    analysis: Option<String>,
    error: Option<String>,
    #[diesel(deserialize_as = StoredOption<ExecutionId>)]
    parent: Option<ExecutionId>,
    /// The outcome in the last entry; null for an execution that has not completed.
    outcome: Option<Value>,
}

/// The outcome of a completed execution, as its journal has it.
const OUTCOME: &str = "(SELECT e.body -> 'outcome' FROM entries e WHERE e.session_id = agent_executions.session_id \
    AND e.execution_id = agent_executions.execution_id AND e.kind = 'ended' \
    AND agent_executions.status = 'completed' ORDER BY e.entry_no DESC LIMIT 1)";

/// The parts of an outcome that the end of the session depends on.
#[derive(Default, Deserialize)]
struct OutcomeParts {
    #[serde(default)]
    mark: Option<Mark>,
    #[serde(default)]
    review: Option<Review>,
}

#[derive(Queryable)]
struct HeadRow {
    step: i32,
    updates: i32,
    plan: Value,
    recoveries: Option<Value>,
}

/// The calls of each recovery; null for a session without any, which is nearly every one.
const RECOVERIES: &str = "(SELECT jsonb_agg(r.calls ORDER BY r.recovery_no) FROM session_recoveries r \
    WHERE r.session_id = alert_sessions.session_id)";

/// A session as it is stored.
pub(crate) struct StoredSession {
    head: HeadRow,
    stages: Vec<StageRow>,
    executions: Vec<ExecutionRow>,
}

/// Reads a session; `None` if there is none. Only the lease holder writes to these rows, so the reads agree.
pub(crate) fn session(
    connection: &mut PgConnection,
    session: Uuid,
) -> QueryResult<Option<StoredSession>> {
    let head: Option<HeadRow> = alert_sessions::table
        .inner_join(
            session_plans::table.on(session_plans::session_id.eq(alert_sessions::session_id)),
        )
        .filter(alert_sessions::session_id.eq(session))
        .select((
            alert_sessions::step,
            alert_sessions::updates,
            session_plans::plan,
            sql::<Nullable<Jsonb>>(RECOVERIES),
        ))
        .first(connection)
        .optional()?;
    let Some(head) = head else { return Ok(None) };
    let stages = stages::table
        .filter(stages::session_id.eq(session))
        .order(stages::stage_no)
        .select(StageRow::as_select())
        .load(connection)?;
    let executions = agent_executions::table
        .filter(agent_executions::session_id.eq(session))
        .order((
            agent_executions::stage_no,
            agent_executions::agent_no,
            agent_executions::execution_id,
        ))
        .select((
            agent_executions::execution_id,
            agent_executions::stage_no,
            agent_executions::agent_no,
            agent_executions::status,
            agent_executions::checkpoint,
            agent_executions::analysis,
            agent_executions::error,
            agent_executions::parent_execution_id,
            sql::<Nullable<Jsonb>>(OUTCOME),
        ))
        .load(connection)?;
    Ok(Some(StoredSession {
        head,
        stages,
        executions,
    }))
}

/// Reads the entries of an execution, in order.
pub(crate) fn journal(
    connection: &mut PgConnection,
    session: Uuid,
    execution: Uuid,
) -> QueryResult<Vec<StoredEntry>> {
    entries::table
        .filter(
            entries::session_id
                .eq(session)
                .and(entries::execution_id.eq(execution)),
        )
        .order(entries::entry_no)
        .select(StoredEntry::as_select())
        .load(connection)
}

impl StoredSession {
    pub(crate) fn decoded(self) -> Result<SessionRecord, StoreError> {
        let Self {
            head,
            stages,
            executions,
        } = self;
        let plan = serde_json::from_value(head.plan)
            .map_err(|error| StoreError::Conflict(format!("stored plan: {error}")))?;
        let stages = stages.iter().map(|row| stage(row, &executions));
        Ok(SessionRecord {
            plan,
            step: number::from_int(head.step),
            updates: number::from_int(head.updates),
            stages: stages.collect::<Result<_, _>>()?,
            recoveries: recoveries(head.recoveries)?,
            sub_agents: sub_agents(&executions)?,
        })
    }
}

/// The executions that other ones have dispatched.
fn sub_agents(executions: &[ExecutionRow]) -> Result<Vec<SubAgentRecord>, StoreError> {
    let children = executions.iter().filter_map(|row| Some((row.parent?, row)));
    children
        .map(|(parent, row)| {
            Ok(SubAgentRecord {
                parent,
                execution: execution(row)?,
            })
        })
        .collect()
}

/// A stage with those of the executions that belong to it, without sub-agents.
fn stage(row: &StageRow, executions: &[ExecutionRow]) -> Result<StageRecord, StoreError> {
    let executions = executions
        .iter()
        .filter(|execution| execution.stage_no == row.stage_no && execution.parent.is_none())
        .map(execution);
    Ok(StageRecord {
        stage_no: number::from_int(row.stage_no),
        status: row.status,
        executions: executions.collect::<Result<_, _>>()?,
    })
}

/// The recoveries of the session, in order of their numbers.
fn recoveries(calls: Option<Value>) -> Result<Vec<Recovery>, StoreError> {
    let calls: Vec<Vec<LostCall>> = match calls {
        Some(calls) => serde_json::from_value(calls).map_err(|error| {
            StoreError::Conflict(format!("stored calls of a recovery: {error}"))
        })?,
        None => Vec::new(),
    };
    Ok((1..)
        .zip(calls)
        .map(|(number, calls)| Recovery { number, calls })
        .collect())
}

/// The entries of the rows.
///
/// # Errors
/// [`StoreError::Conflict`] for an entry that this version does not know.
pub(crate) fn decoded(rows: Vec<StoredEntry>) -> Result<Vec<RecordedEntry>, StoreError> {
    let mut entries = Vec::with_capacity(rows.len());
    for row in rows {
        let event = row.event_seq.map(number::from_int);
        let at = Some(row.created_at);
        let entry =
            decode(row).map_err(|error| StoreError::Conflict(format!("stored entry: {error}")))?;
        entries.push(RecordedEntry { entry, event, at });
    }
    Ok(entries)
}

fn execution(row: &ExecutionRow) -> Result<ExecutionRecord, StoreError> {
    let OutcomeParts { mark, review } = match &row.outcome {
        Some(outcome) => OutcomeParts::deserialize(outcome)
            .map_err(|error| StoreError::Conflict(format!("stored outcome: {error}")))?,
        None => OutcomeParts::default(),
    };
    Ok(ExecutionRecord {
        execution_id: row.execution_id,
        agent_no: number::from_int(row.agent_no),
        status: row.status,
        checkpoint: number::from_int(row.checkpoint),
        analysis: row.analysis.clone(),
        error: row.error.clone(),
        mark,
        review,
    })
}
