//! The list of sessions: newest first, filtered by status, age and words.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::dsl::sql;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Double, Text, Timestamptz};
use serde::Serialize;
use uuid::Uuid;

use crate::investigation::ids::SessionId;

use crate::store::connect::Store;
use crate::store::error::Error;
use crate::store::schema::{alert_sessions, alerts};

/// Which sessions to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// At most so many, the newest ones.
    pub limit: u32,
    /// Only those with this status.
    pub status: Option<String>,
    /// Only those that were opened within this time, by the database's clock.
    pub since: Option<Duration>,
    /// Only those whose alert or analysis has these words, in the syntax of web searches.
    pub search: Option<String>,
}

/// A session, as a list shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionLine {
    /// The session.
    pub session_id: SessionId,
    /// When it was opened.
    pub created_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// `running`, `completed`, `failed`, `cancelled` or `timed_out`.
    pub status: String,
    /// Why it ended.
    pub stop_reason: Option<String>,
    /// `critical`, `high`, `normal` or `low`.
    pub severity: Option<String>,
    /// The alert's title.
    pub title: Option<String>,
    /// What chains are chosen by.
    pub alert_type: Option<String>,
    /// The chain that runs.
    pub chain: String,
    /// Its worker's name, the last one's when it is over.
    pub worker: String,
    /// Of a follow-up question: the investigation that it is about.
    pub parent_id: Option<SessionId>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = alert_sessions, check_for_backend(diesel::pg::Pg))]
struct LineRow {
    session_id: Uuid,
    created_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
    status: String,
    stop_reason: Option<String>,
    chain: String,
    worker_name: String,
    parent_id: Option<Uuid>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = alerts, check_for_backend(diesel::pg::Pg))]
struct AlertLineRow {
    title: Option<String>,
    severity: Option<String>,
    alert_type: Option<String>,
}

impl Store {
    /// The sessions that the filter lets through, newest first.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn list_sessions(&self, filter: SessionFilter) -> Result<Vec<SessionLine>, Error> {
        let rows = self.run(move |connection| lines(connection, &filter)).await?;
        Ok(rows.into_iter().map(line).collect())
    }
}

/// The words are looked for by the expressions of the two indexes; anything else would read every body.
fn lines(connection: &mut PgConnection, filter: &SessionFilter) -> QueryResult<Vec<(LineRow, Option<AlertLineRow>)>> {
    let mut query = alert_sessions::table
        .left_join(alerts::table.on(alerts::alert_id.eq(alert_sessions::session_id)))
        .order(alert_sessions::session_id.desc())
        .limit(i64::from(filter.limit))
        .select((LineRow::as_select(), Option::<AlertLineRow>::as_select()))
        .into_boxed();
    if let Some(status) = &filter.status {
        query = query.filter(alert_sessions::status.eq(status.clone()));
    }
    if let Some(since) = filter.since {
        let begin =
            sql::<Timestamptz>("now() - make_interval(secs => ").bind::<Double, _>(since.as_secs_f64()).sql(")");
        query = query.filter(alert_sessions::created_at.ge(begin));
    }
    if let Some(words) = &filter.search {
        let found =
            sql::<Bool>("alert_sessions.session_id IN (SELECT alert_id FROM alerts WHERE body IS NOT NULL AND ")
                .sql("to_tsvector('simple', left(body, 150000)) @@ websearch_to_tsquery('simple', ")
                .bind::<Text, _>(words.clone())
                .sql(") UNION ALL SELECT session_id FROM alert_sessions WHERE final_analysis IS NOT NULL AND ")
                .sql("to_tsvector('simple', left(final_analysis, 150000)) @@ websearch_to_tsquery('simple', ")
                .bind::<Text, _>(words.clone())
                .sql("))");
        query = query.filter(found);
    }
    query.load(connection)
}

fn line((row, alert): (LineRow, Option<AlertLineRow>)) -> SessionLine {
    let alert = alert.unwrap_or(AlertLineRow { title: None, severity: None, alert_type: None });
    SessionLine {
        session_id: SessionId(row.session_id),
        created_at: row.created_at,
        finished_at: row.finished_at,
        status: row.status,
        stop_reason: row.stop_reason,
        severity: alert.severity,
        title: alert.title,
        alert_type: alert.alert_type,
        chain: row.chain,
        worker: row.worker_name,
        parent_id: row.parent_id.map(SessionId),
    }
}
