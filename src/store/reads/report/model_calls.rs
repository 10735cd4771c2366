//! The model calls of a report.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use uuid::Uuid;

use crate::reports::ModelCallReport;
use crate::store::schema::{agent_executions, llm_interactions};

pub(super) fn read(connection: &mut PgConnection, id: Uuid) -> QueryResult<Vec<ModelCallReport>> {
    use llm_interactions as call;
    call::table
        .inner_join(
            agent_executions::table.on(agent_executions::session_id
                .eq(call::session_id)
                .and(agent_executions::execution_id.eq(call::execution_id))),
        )
        .filter(call::session_id.eq(id))
        .order((call::created_at, agent_executions::agent_no, call::checkpoint, call::call_no))
        .select((
            call::execution_id,
            agent_executions::agent,
            call::created_at,
            call::iteration,
            call::purpose,
            call::entries_upto,
            call::provider,
            call::model,
            call::duration_ms,
            (call::input_tokens, call::cached_tokens, call::output_tokens, call::thinking_tokens),
            call::response,
            call::error,
        ))
        .load(connection)
}
