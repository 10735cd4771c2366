//! The model calls of a session, and the request of one of them, made again from its journal.

use std::sync::Arc;

use diesel::dsl::sql;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Integer, Nullable};
use serde_json::Value;
use uuid::Uuid;

use crate::call::Operation;
use crate::connect::Store;
use crate::error::Error;
use crate::reads::{record, result};
use crate::rows::number;
use crate::schema::{agent_executions, alert_sessions, llm_interactions, session_plans};
use tarsy_core::execution::decide::Purpose;
use tarsy_core::execution::dispatch::plan_of;
use tarsy_core::execution::event_refs::RecordedEntry;
use tarsy_core::execution::request::rebuilt::{CallSite, StoredCall};
use tarsy_core::ids::SessionId;
use tarsy_core::plan::{AgentPlan, NEWEST_VERSION, Plan};
use tarsy_core::read_result::Timeline;
use tarsy_reports::ModelCallReport;
use tarsy_reports::calls::{CallNumber, NumberedCall, Rebuilt, RebuiltCall};

/// A model call, and the position of its execution in the plan.
#[derive(Debug, Queryable)]
struct Row {
    call: ModelCallReport,
    call_no: i32,
    stage_no: i32,
    agent_no: i32,
    /// The number of the agent that dispatched it; null for an agent of a stage.
    parent_no: Option<i32>,
}

/// The number of the parent in its stage.
const PARENT_NO: &str = "(SELECT p.agent_no FROM agent_executions p \
    WHERE p.session_id = agent_executions.session_id AND p.execution_id = agent_executions.parent_execution_id)";

impl Store {
    /// The model calls of a session in the order in which they were stored; `None` if there is no such session.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn model_calls(
        &self,
        session: SessionId,
    ) -> Result<Option<Vec<NumberedCall>>, Error> {
        self.run(Operation::Command, move |connection| {
            let calls: Vec<NumberedCall> = (1..)
                .zip(read(connection, session.0)?)
                .map(|(number, call)| NumberedCall { number, call })
                .collect();
            let is_known = !calls.is_empty() || exists(connection, session.0)?;
            Ok(is_known.then_some(calls))
        })
        .await
    }

    /// A model call of a session with its request; `None` if the session has no such call.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn model_call(
        &self,
        session: SessionId,
        wanted: CallNumber,
    ) -> Result<Option<RebuiltCall>, Error> {
        self.run(Operation::Command, move |connection| {
            // One snapshot, so that the journal has what the call names.
            connection
                .build_transaction()
                .read_only()
                .repeatable_read()
                .run(|connection| call(connection, session, wanted))
        })
        .await
    }
}

/// The model calls of a report.
pub(super) fn read(connection: &mut PgConnection, id: Uuid) -> QueryResult<Vec<ModelCallReport>> {
    Ok(rows(connection, id)?
        .into_iter()
        .map(|row| row.call)
        .collect())
}

fn rows(connection: &mut PgConnection, id: Uuid) -> QueryResult<Vec<Row>> {
    use llm_interactions as call;
    call::table
        .inner_join(
            agent_executions::table.on(agent_executions::session_id
                .eq(call::session_id)
                .and(agent_executions::execution_id.eq(call::execution_id))),
        )
        .filter(call::session_id.eq(id))
        .order((
            call::created_at,
            agent_executions::agent_no,
            call::checkpoint,
            call::call_no,
        ))
        .select((
            (
                call::execution_id,
                agent_executions::agent,
                call::created_at,
                call::iteration,
                call::purpose,
                call::entries_upto,
                call::provider,
                call::model,
                call::duration_ms,
                (
                    call::input_tokens,
                    call::cached_tokens,
                    call::output_tokens,
                    call::thinking_tokens,
                ),
                call::response,
                call::error,
            ),
            call::call_no,
            agent_executions::stage_no,
            agent_executions::agent_no,
            sql::<Nullable<Integer>>(PARENT_NO),
        ))
        .load(connection)
}

fn exists(connection: &mut PgConnection, id: Uuid) -> QueryResult<bool> {
    diesel::select(diesel::dsl::exists(alert_sessions::table.find(id))).get_result(connection)
}

fn call(
    connection: &mut PgConnection,
    session: SessionId,
    wanted: CallNumber,
) -> QueryResult<Option<RebuiltCall>> {
    let rows = rows(connection, session.0)?;
    let calls = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    let number = match wanted {
        CallNumber::Number(number) => number,
        CallNumber::Last => calls,
    };
    let at = usize::try_from(number).unwrap_or(usize::MAX).checked_sub(1);
    let Some(row) = at.and_then(|at| rows.into_iter().nth(at)) else {
        return Ok(None);
    };
    let rebuilt = rebuilt(connection, session, &row)?;
    Ok(Some(RebuiltCall {
        call: NumberedCall {
            number,
            call: row.call,
        },
        calls,
        rebuilt,
    }))
}

/// The request of a call, or the reason why it cannot be made again.
fn rebuilt(
    connection: &mut PgConnection,
    session: SessionId,
    row: &Row,
) -> QueryResult<Result<Rebuilt, String>> {
    let plan: Option<Value> = session_plans::table
        .find(session.0)
        .select(session_plans::plan)
        .first(connection)
        .optional()?;
    let journal = record::decoded(record::journal(
        connection,
        session.0,
        row.call.execution_id.0,
    )?);
    let found = journal
        .map_err(|error| error.to_string())
        .and_then(|journal| site(plan, journal, row));
    let site = match found {
        Ok(site) => site,
        Err(reason) => return Ok(Err(reason)),
    };
    let text = match site.result_event() {
        Some(event) => result::result(connection, session, Timeline::Own, event)?
            .and_then(|result| result.text),
        None => None,
    };
    Ok(match site.request(text.as_deref()) {
        Ok(request) => Ok(Rebuilt {
            request,
            sources: site.sources(),
            answer: site.answer().cloned(),
            summary: site.summary().cloned(),
        }),
        Err(reason) => Err(reason.to_string()),
    })
}

fn site(plan: Option<Value>, journal: Vec<RecordedEntry>, row: &Row) -> Result<CallSite, String> {
    let agent = agent(plan, row)?;
    let word = row.call.purpose.as_str();
    let purpose = Purpose::parse(word)
        .ok_or_else(|| format!("a newer version made this call, for '{word}'"))?;
    let stored = StoredCall {
        purpose,
        entries_upto: number::from_int(row.call.entries_upto),
        call_no: number::from_int(row.call_no),
    };
    CallSite::find(agent, journal, stored).map_err(|error| error.to_string())
}

/// The agent of the call in the frozen plan.
fn agent(plan: Option<Value>, row: &Row) -> Result<Arc<AgentPlan>, String> {
    let plan = plan.ok_or_else(|| "the plan of the session is not stored".to_owned())?;
    let plan: Plan =
        serde_json::from_value(plan).map_err(|error| format!("stored plan: {error}"))?;
    if plan.version > NEWEST_VERSION {
        return Err(format!(
            "a newer version made this call: the plan has version {}",
            plan.version
        ));
    }
    let stage_no = number::from_int(row.stage_no);
    let agent_no = number::from_int(row.parent_no.unwrap_or(row.agent_no));
    let agent = plan
        .stage(stage_no)
        .and_then(|stage| stage.agent(agent_no))
        .ok_or_else(|| format!("stage {stage_no} of the plan has no agent number {agent_no}"))?;
    if row.parent_no.is_none() {
        return Ok(Arc::clone(agent));
    }
    // The task is in the journal, as the whole first message is.
    let name = &row.call.agent;
    plan_of(agent, name, "")
        .map(Arc::new)
        .ok_or_else(|| format!("agent number {agent_no} of the plan has no sub-agent {name}"))
}
