//! The queries of a report.

use chrono::{DateTime, Utc};
use diesel::dsl::sql;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Integer, Nullable, Text, Timestamptz};
use serde_json::Value;
use uuid::Uuid;

use super::model_calls;
use crate::call::Operation;
use crate::connect::Store;
use crate::error::Error;
use crate::reads::filter::waits_for_approval;
use crate::reads::past::{PastSame, same_alert};
use crate::schema::{
    agent_executions, alert_sessions, alert_updates, alerts, llm_interactions, stages,
    timeline_events, tool_interactions,
};
use crate::verdicts::read::of_session;
use tarsy_core::alert::Severity;
use tarsy_core::execution::entry::{Mark, StopReason};
use tarsy_core::ids::SessionId;
use tarsy_core::past::{DEFAULT_DAYS, DEFAULT_GIVEN};
use tarsy_core::timeline::EventType;
use tarsy_engine::ports::{DeadReason, RunStatus};
use tarsy_mask::Mask;
use tarsy_reports::stored::{Stored, StoredOption};
use tarsy_reports::{
    AlertReport, AlertUpdateReport, DispositionKind, ExecutionReport, ModelReport, QuestionReport,
    SeenBefore, SessionReport, ShownStatus, StageReport, ToolCallReport,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = alerts, check_for_backend(diesel::pg::Pg))]
struct AlertRow {
    #[diesel(deserialize_as = Stored<SessionId>)]
    alert_id: SessionId,
    received_at: DateTime<Utc>,
    #[diesel(column_name = place)]
    disposition: DispositionKind,
    #[diesel(deserialize_as = StoredOption<SessionId>)]
    joined_session_id: Option<SessionId>,
    subject: String,
    stream_sequence: i64,
    deliveries: i32,
    headers: Value,
    #[diesel(deserialize_as = StoredOption<DeadReason>)]
    dead_reason: Option<DeadReason>,
    dead_detail: Option<String>,
    fingerprint: Option<String>,
    alert_type: Option<String>,
    title: Option<String>,
    #[diesel(deserialize_as = StoredOption<Severity>)]
    severity: Option<Severity>,
    source: Option<String>,
    body: Option<String>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = alert_sessions, check_for_backend(diesel::pg::Pg))]
struct SessionRow {
    created_at: DateTime<Utc>,
    deadline_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
    cancel_requested_at: Option<DateTime<Utc>>,
    #[diesel(deserialize_as = ShownStatus)]
    status: RunStatus,
    #[diesel(deserialize_as = StoredOption<StopReason>)]
    stop_reason: Option<StopReason>,
    #[diesel(deserialize_as = StoredOption<Mark>)]
    mark: Option<Mark>,
    review: Option<Value>,
    chain: String,
    worker_name: String,
    lease_epoch: i32,
    event_seq: i32,
    covered_updates: i32,
    executive_summary: Option<String>,
    final_analysis: Option<String>,
    error: Option<String>,
    #[diesel(deserialize_as = StoredOption<SessionId>)]
    parent_id: Option<SessionId>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = stages, check_for_backend(diesel::pg::Pg))]
struct StageRow {
    stage_no: i32,
    name: String,
    #[diesel(deserialize_as = ShownStatus)]
    status: RunStatus,
    started_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
}

/// The sum of a column over the model calls of an execution.
macro_rules! sum_of_execution {
    ($column:literal) => {
        sql::<BigInt>(concat!(
            "(SELECT coalesce(sum(l.",
            $column,
            "), 0)::bigint FROM llm_interactions l WHERE l.session_id = agent_executions.session_id \
             AND l.execution_id = agent_executions.execution_id)"
        ))
    };
}

impl Store {
    /// The report about an alert and its session; `None` if no worker has seen the id.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn report(&self, alert: SessionId) -> Result<Option<AlertReport>, Error> {
        let mask = self.mask.clone();
        let report = self.run(Operation::Command, move |connection| {
            // One snapshot, so that the parts agree with each other while the session continues.
            connection
                .build_transaction()
                .read_only()
                .repeatable_read()
                .run(|connection| read(connection, alert.0, &mask))
        });
        Ok(report.await?.map(|report| AlertReport {
            url: self.link(alert),
            ..report
        }))
    }
}

fn read(connection: &mut PgConnection, id: Uuid, mask: &Mask) -> QueryResult<Option<AlertReport>> {
    let alert: Option<AlertRow> = alerts::table
        .find(id)
        .select(AlertRow::as_select())
        .first(connection)
        .optional()?;
    let Some(alert) = alert else { return Ok(None) };
    let found: Option<(SessionRow, bool)> = alert_sessions::table
        .find(id)
        .select((SessionRow::as_select(), waits_for_approval()))
        .first(connection)
        .optional()?;
    let waits_for_approval = found.as_ref().is_some_and(|(_, waits)| *waits);
    let session = found.map(|(session, _)| session);
    let parent_id = session.as_ref().and_then(|session| session.parent_id);
    let questions = questions(connection, id)?;
    let seen_before = match &session {
        Some(session) if parent_id.is_none() => seen_before(connection, id, session, mask)?,
        Some(_) | None => None,
    };
    let session = session
        .map(|session| with_parts(connection, id, session))
        .transpose()?
        .map(|session| SessionReport {
            waits_for_approval,
            ..session
        });
    let joined = alerts::table
        .filter(alerts::joined_session_id.eq(id))
        .order(alerts::alert_id)
        .select((
            alerts::alert_id,
            alerts::received_at,
            alerts::title,
            alerts::severity,
        ))
        .load(connection)?;
    let limited_by = alert_sessions::table
        .find(alert.joined_session_id.unwrap_or(alert.alert_id).0)
        .filter(alert_sessions::status.eq(RunStatus::Limited.as_str()))
        .select(alert_sessions::limited_route)
        .first::<Option<String>>(connection)
        .optional()?;
    Ok(Some(AlertReport {
        alert_id: alert.alert_id,
        received_at: alert.received_at,
        disposition: alert.disposition,
        joined_session_id: alert.joined_session_id,
        limited_by: limited_by.flatten(),
        subject: alert.subject,
        stream_sequence: alert.stream_sequence,
        deliveries: alert.deliveries,
        headers: alert.headers,
        dead_reason: alert.dead_reason,
        dead_detail: alert.dead_detail,
        fingerprint: alert.fingerprint,
        alert_type: alert.alert_type,
        title: alert.title,
        severity: alert.severity,
        source: alert.source,
        body: alert.body,
        joined,
        parent_id,
        questions,
        seen_before,
        session,
        url: None,
    }))
}

/// The earlier investigations of the alert, before the session began.
fn seen_before(
    connection: &mut PgConnection,
    id: Uuid,
    session: &SessionRow,
    mask: &Mask,
) -> QueryResult<Option<SeenBefore>> {
    let read = PastSame::before(id, session.created_at, DEFAULT_DAYS, DEFAULT_GIVEN);
    let past = same_alert(connection, &read, mask)?;
    Ok((past.total > 0).then(|| SeenBefore::new(past)))
}

fn questions(connection: &mut PgConnection, id: Uuid) -> QueryResult<Vec<QuestionReport>> {
    alert_sessions::table
        .inner_join(alerts::table.on(alerts::alert_id.eq(alert_sessions::session_id)))
        .filter(alert_sessions::parent_id.eq(id))
        .order((alert_sessions::created_at, alert_sessions::session_id))
        .select((
            alert_sessions::session_id,
            alert_sessions::created_at,
            alert_sessions::status,
            alerts::body,
            alert_sessions::final_analysis,
            alert_sessions::error,
        ))
        .load(connection)
}

fn with_parts(
    connection: &mut PgConnection,
    id: Uuid,
    session: SessionRow,
) -> QueryResult<SessionReport> {
    let mut executions = executions(connection, id)?;
    let stages: Vec<StageRow> = stages::table
        .filter(stages::session_id.eq(id))
        .order(stages::stage_no)
        .select(StageRow::as_select())
        .load(connection)?;
    let stages = stages.into_iter().map(|stage| StageReport {
        executions: executions
            .extract_if(.., |(stage_no, _)| *stage_no == stage.stage_no)
            .map(|(_, execution)| execution)
            .collect(),
        stage_no: stage.stage_no,
        name: stage.name,
        status: stage.status,
        started_at: stage.started_at,
        finished_at: stage.finished_at,
    });
    let stages = stages.collect();
    let citations = citations(connection, id, session.final_analysis.as_deref())?;
    Ok(SessionReport {
        created_at: session.created_at,
        deadline_at: session.deadline_at,
        finished_at: session.finished_at,
        cancel_requested_at: session.cancel_requested_at,
        status: session.status,
        waits_for_approval: false,
        stop_reason: session.stop_reason,
        mark: session.mark,
        review: session
            .review
            .and_then(|review| serde_json::from_value(review).ok()),
        chain: session.chain,
        worker: session.worker_name,
        epoch: session.lease_epoch,
        previous_workers: previous_workers(connection, id, session.lease_epoch)?,
        last_seq: session.event_seq,
        alert_updates: alert_updates(connection, id)?,
        covered_updates: session.covered_updates,
        executive_summary: session.executive_summary,
        final_analysis: session.final_analysis,
        citations,
        verdicts: of_session(connection, id)?,
        error: session.error,
        stages,
        models: models(connection, id)?,
        model_calls: model_calls::read(connection, id)?,
        tool_calls: tool_calls(connection, id)?,
    })
}

fn alert_updates(connection: &mut PgConnection, id: Uuid) -> QueryResult<Vec<AlertUpdateReport>> {
    use alert_updates::{alert_id, created_at, report, session_id, update_no};
    let of_session = alert_updates::table
        .filter(session_id.eq(id))
        .order(update_no);
    of_session
        .select((update_no, created_at, alert_id, report))
        .load(connection)
}

/// The workers that the takeovers name. In the first epoch there was none.
fn previous_workers(
    connection: &mut PgConnection,
    id: Uuid,
    epoch: i32,
) -> QueryResult<Vec<String>> {
    if epoch <= 1 {
        return Ok(Vec::new());
    }
    let workers: Vec<Option<String>> = timeline_events::table
        .filter(timeline_events::session_id.eq(id))
        .filter(timeline_events::event_type.eq(EventType::SessionResumed.as_str()))
        .order(timeline_events::session_seq)
        .select(sql::<Nullable<Text>>("metadata->>'previous_worker'"))
        .load(connection)?;
    Ok(workers.into_iter().flatten().collect())
}

/// The citations in the event that shows the analysis.
fn citations(
    connection: &mut PgConnection,
    id: Uuid,
    analysis: Option<&str>,
) -> QueryResult<Value> {
    let Some(analysis) = analysis else {
        return Ok(Value::Null);
    };
    let metadata: Option<Option<Value>> = timeline_events::table
        .filter(timeline_events::session_id.eq(id))
        .filter(timeline_events::event_type.eq(EventType::FinalAnalysis.as_str()))
        // Below its own words an analysis may have those of its review.
        .filter(timeline_events::content.ne(""))
        .filter(
            sql::<Bool>("starts_with(")
                .bind::<Text, _>(analysis)
                .sql(", rtrim(timeline_events.content, E' \\n'))"),
        )
        .order(timeline_events::session_seq.desc())
        .select(timeline_events::metadata)
        .first(connection)
        .optional()?;
    Ok(metadata
        .flatten()
        .and_then(|metadata| metadata.get("citations").cloned())
        .unwrap_or_default())
}

/// The executions, each with the number of its stage; those of sub-agents come after those of the stage.
fn executions(connection: &mut PgConnection, id: Uuid) -> QueryResult<Vec<(i32, ExecutionReport)>> {
    agent_executions::table
        .filter(agent_executions::session_id.eq(id))
        .order((
            agent_executions::stage_no,
            agent_executions::parent_execution_id.is_not_null(),
            agent_executions::agent_no,
            agent_executions::started_at,
            agent_executions::execution_id,
        ))
        .select((
            agent_executions::stage_no,
            (
                agent_executions::execution_id,
                agent_executions::parent_execution_id,
                agent_executions::parent_call_id,
                agent_executions::agent,
                agent_executions::strategy,
                agent_executions::status,
                agent_executions::iteration,
                agent_executions::started_at,
                agent_executions::finished_at,
                agent_executions::analysis,
                agent_executions::error,
                sql::<BigInt>(
                    "(SELECT count(*) FROM tool_interactions t WHERE t.session_id = agent_executions.session_id \
                     AND t.execution_id = agent_executions.execution_id)",
                ),
                (
                    sum_of_execution!("input_tokens"),
                    sum_of_execution!("cached_tokens"),
                    sum_of_execution!("output_tokens"),
                    sum_of_execution!("thinking_tokens"),
                ),
            ),
        ))
        .load(connection)
}

fn models(connection: &mut PgConnection, id: Uuid) -> QueryResult<Vec<ModelReport>> {
    llm_interactions::table
        .filter(llm_interactions::session_id.eq(id))
        .group_by((
            llm_interactions::provider,
            llm_interactions::backend,
            llm_interactions::model,
        ))
        .order(sql::<Nullable<Timestamptz>>("min(created_at)"))
        .select((
            llm_interactions::provider,
            llm_interactions::backend,
            llm_interactions::model,
            sql::<BigInt>("count(*)"),
            sql::<BigInt>("count(error)"),
            (
                sql::<BigInt>("coalesce(sum(input_tokens), 0)::bigint"),
                sql::<BigInt>("coalesce(sum(cached_tokens), 0)::bigint"),
                sql::<BigInt>("coalesce(sum(output_tokens), 0)::bigint"),
                sql::<BigInt>("coalesce(sum(thinking_tokens), 0)::bigint"),
            ),
        ))
        .load(connection)
}

fn tool_calls(connection: &mut PgConnection, id: Uuid) -> QueryResult<Vec<ToolCallReport>> {
    use tool_interactions as call;
    call::table
        .inner_join(
            agent_executions::table.on(agent_executions::session_id
                .eq(call::session_id)
                .and(agent_executions::execution_id.eq(call::execution_id))),
        )
        .filter(call::session_id.eq(id))
        .order((call::created_at, agent_executions::agent_no, call::checkpoint, call::call_no))
        .select((
            agent_executions::agent,
            call::created_at,
            call::tool,
            sql::<Text>("left(arguments, 2000)"),
            call::state,
            call::duration_ms,
            sql::<Nullable<Text>>("left(result, 2000)"),
            sql::<Nullable<BigInt>>("octet_length(result)::bigint"),
            call::error,
            sql::<Nullable<Integer>>(
                "(SELECT max(n.event_seq) FROM entries n WHERE n.session_id = tool_interactions.session_id \
                 AND n.execution_id = tool_interactions.execution_id \
                 AND n.checkpoint = tool_interactions.checkpoint AND n.tool_call_id = tool_interactions.call_id)",
            ),
        ))
        .load(connection)
}
