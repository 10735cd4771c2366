//! The list of sessions: newest first, filtered by status, age and words.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::dsl::sql;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Double, Text, Timestamptz};
use serde::Serialize;

use crate::engine::ports::RunStatus;
use crate::investigation::alert::Severity;
use crate::investigation::execution::entry::StopReason;
use crate::investigation::ids::SessionId;

use crate::store::call::Operation;
use crate::store::connect::Store;
use crate::store::error::Error;
use crate::store::schema::{alert_sessions, alerts};

/// More sessions are not counted.
pub const MAX_COUNTED: i64 = 10_000;

/// Which sessions to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// The newest sessions, at most this many.
    pub limit: u32,
    /// Only those with this status.
    pub status: Option<RunStatus>,
    /// Only those that were opened within this time, by the database's clock.
    pub since: Option<Duration>,
    /// Only those whose alert or analysis has these words, in the syntax of web searches.
    pub search: Option<String>,
}

/// A session, as a list shows it.
#[derive(Clone, Debug, PartialEq, Queryable, Serialize)]
pub struct SessionLine {
    pub session_id: SessionId,
    pub created_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
    pub status: RunStatus,
    pub stop_reason: Option<StopReason>,
    pub severity: Option<Severity>,
    pub title: Option<String>,
    /// Selects the chain.
    pub alert_type: Option<String>,
    pub chain: String,
    /// The name of the worker that has or had its last lease.
    pub worker: String,
    /// The investigation that a follow-up question is about.
    pub parent_id: Option<SessionId>,
}

impl Store {
    /// The number of sessions that match the filter, without its limit; at most [`MAX_COUNTED`].
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn count_sessions(&self, filter: SessionFilter) -> Result<i64, Error> {
        self.run(Operation::Command, move |connection| count(connection, &filter)).await
    }

    /// The sessions that match the filter, newest first.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn list_sessions(&self, filter: SessionFilter) -> Result<Vec<SessionLine>, Error> {
        self.run(Operation::Command, move |connection| lines(connection, &filter)).await
    }
}

/// Adds the conditions of a filter to a boxed query, whose type has no name that two queries share. The search uses the
/// expressions of the two indexes: any other expression would read every body.
macro_rules! filtered {
    ($query:ident, $filter:ident) => {
        if let Some(status) = $filter.status {
            $query = $query.filter(alert_sessions::status.eq(status.as_str()));
        }
        if let Some(since) = $filter.since {
            let begin =
                sql::<Timestamptz>("now() - make_interval(secs => ").bind::<Double, _>(since.as_secs_f64()).sql(")");
            $query = $query.filter(alert_sessions::created_at.ge(begin));
        }
        if let Some(words) = &$filter.search {
            let found =
                sql::<Bool>("alert_sessions.session_id IN (SELECT alert_id FROM alerts WHERE body IS NOT NULL AND ")
                    .sql("to_tsvector('simple', left(body, 150000)) @@ websearch_to_tsquery('simple', ")
                    .bind::<Text, _>(words.clone())
                    .sql(") UNION ALL SELECT session_id FROM alert_sessions WHERE final_analysis IS NOT NULL AND ")
                    .sql("to_tsvector('simple', left(final_analysis, 150000)) @@ websearch_to_tsquery('simple', ")
                    .bind::<Text, _>(words.clone())
                    .sql("))");
            $query = $query.filter(found);
        }
    };
}

fn count(connection: &mut PgConnection, filter: &SessionFilter) -> QueryResult<i64> {
    let mut query = alert_sessions::table.select(alert_sessions::session_id).limit(MAX_COUNTED).into_boxed();
    filtered!(query, filter);
    let found: Vec<uuid::Uuid> = query.load(connection)?;
    Ok(i64::try_from(found.len()).unwrap_or(MAX_COUNTED))
}

fn lines(connection: &mut PgConnection, filter: &SessionFilter) -> QueryResult<Vec<SessionLine>> {
    let mut query = alert_sessions::table
        .left_join(alerts::table.on(alerts::alert_id.eq(alert_sessions::session_id)))
        .order(alert_sessions::session_id.desc())
        .limit(i64::from(filter.limit))
        .select((
            alert_sessions::session_id,
            alert_sessions::created_at,
            alert_sessions::finished_at,
            alert_sessions::status,
            alert_sessions::stop_reason,
            alerts::severity.nullable(),
            alerts::title.nullable(),
            alerts::alert_type.nullable(),
            alert_sessions::chain,
            alert_sessions::worker_name,
            alert_sessions::parent_id,
        ))
        .into_boxed();
    filtered!(query, filter);
    query.load(connection)
}
