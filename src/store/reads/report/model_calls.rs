//! The model calls of a report.

use chrono::{DateTime, Utc};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use serde_json::Value;
use uuid::Uuid;

use super::{ModelCallReport, Tokens};
use crate::investigation::ids::ExecutionId;
use crate::store::schema::{agent_executions, llm_interactions};

#[derive(Queryable, Selectable)]
#[diesel(table_name = llm_interactions, check_for_backend(diesel::pg::Pg))]
struct ModelCallRow {
    execution_id: ExecutionId,
    created_at: DateTime<Utc>,
    iteration: i32,
    purpose: String,
    entries_upto: i32,
    provider: String,
    model: String,
    duration_ms: i64,
    input_tokens: Option<i64>,
    cached_tokens: Option<i64>,
    output_tokens: Option<i64>,
    thinking_tokens: Option<i64>,
    response: Option<Value>,
    error: Option<String>,
}

impl ModelCallRow {
    fn report(self, agent: String) -> ModelCallReport {
        let usage = self.input_tokens.map(|input| {
            let count = |tokens: Option<i64>| tokens.unwrap_or_default();
            Tokens {
                input,
                cached: count(self.cached_tokens),
                output: count(self.output_tokens),
                thinking: count(self.thinking_tokens),
            }
        });
        ModelCallReport {
            execution_id: self.execution_id,
            agent,
            at: self.created_at,
            iteration: self.iteration,
            purpose: self.purpose,
            entries_upto: self.entries_upto,
            provider: self.provider,
            model: self.model,
            duration_ms: self.duration_ms,
            usage,
            response: self.response,
            error: self.error,
        }
    }
}

pub(super) fn read(connection: &mut PgConnection, id: Uuid) -> QueryResult<Vec<ModelCallReport>> {
    let rows: Vec<(String, ModelCallRow)> = llm_interactions::table
        .inner_join(
            agent_executions::table.on(agent_executions::session_id
                .eq(llm_interactions::session_id)
                .and(agent_executions::execution_id.eq(llm_interactions::execution_id))),
        )
        .filter(llm_interactions::session_id.eq(id))
        .order((
            llm_interactions::created_at,
            agent_executions::agent_no,
            llm_interactions::checkpoint,
            llm_interactions::call_no,
        ))
        .select((agent_executions::agent, ModelCallRow::as_select()))
        .load(connection)?;
    Ok(rows.into_iter().map(|(agent, row)| row.report(agent)).collect())
}
