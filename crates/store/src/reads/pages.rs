//! The pages of the web server: sessions with their figures, counts by status, alerts that were given up.

use chrono::{DateTime, Utc};
use diesel::dsl::{count_star, sql};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Nullable, Text, Timestamptz};

use super::filter::{WAITS_FOR_APPROVAL, filtered, session_line, waits_for_approval};
use crate::call::Operation;
use crate::connect::Store;
use crate::error::Error;
use crate::schema::{alert_sessions, alerts};
use tarsy_core::summary;
use tarsy_engine::ports::RunStatus;
use tarsy_reports::{
    DeadAlert, Facets, LastEvent, MAX_FACETS, SessionEntry, SessionLine, SessionPage, ShownStatus,
    StatusCounts, Tokens,
};

/// A figure over the rows that a session has in a table.
macro_rules! of_session {
    ($what:literal, $table:literal) => {
        concat!(
            "(SELECT ",
            $what,
            " FROM ",
            $table,
            " own WHERE own.session_id = alert_sessions.session_id)"
        )
    };
}

/// The last event of a running session. Others are described by their end.
macro_rules! of_last_event {
    ($column:literal) => {
        concat!(
            "CASE WHEN alert_sessions.status = 'running' THEN (SELECT ",
            $column,
            " FROM timeline_events own WHERE own.session_id = alert_sessions.session_id \
              AND own.session_seq = alert_sessions.event_seq) END"
        )
    };
}

#[derive(Queryable)]
struct Row {
    line: SessionLine,
    waits_for_approval: bool,
    summary: Option<String>,
    error: Option<String>,
    fingerprint: Option<String>,
    last_seq: i32,
    joined: i32,
    takeovers: i64,
    tool_calls: i64,
    tokens: Vec<i64>,
    questions: i64,
    last_type: Option<String>,
    last_at: Option<DateTime<Utc>>,
    last_content: Option<String>,
}

impl From<Row> for SessionEntry {
    fn from(row: Row) -> Self {
        let last_event = match (row.last_type, row.last_at, row.last_content) {
            (Some(event_type), Some(created_at), Some(content)) => Some(LastEvent {
                event_type: event_type.into(),
                created_at,
                content,
            }),
            _ => None,
        };
        let mut sums = row.tokens.into_iter();
        let mut sum = || sums.next().unwrap_or_default();
        Self {
            line: row.line,
            waits_for_approval: row.waits_for_approval,
            cause: row
                .summary
                .as_deref()
                .and_then(summary::cause)
                .map(str::to_owned),
            error: row.error,
            fingerprint: row.fingerprint,
            last_seq: row.last_seq,
            owners: row.takeovers + 1,
            tool_calls: row.tool_calls,
            tokens: Tokens {
                input: sum(),
                cached: sum(),
                output: sum(),
                thinking: sum(),
            },
            joined: row.joined,
            questions: row.questions,
            last_event,
        }
    }
}

impl Store {
    /// A page of sessions with their figures, newest first, in one statement.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn session_page(&self, page: SessionPage) -> Result<Vec<SessionEntry>, Error> {
        let rows = self
            .run(Operation::Command, move |connection| {
                entries(connection, &page)
            })
            .await?;
        Ok(rows.into_iter().map(SessionEntry::from).collect())
    }

    /// The number of sessions for each status, among those that the page's time and search select.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn status_counts(&self, page: SessionPage) -> Result<StatusCounts, Error> {
        let counted = self
            .run(Operation::Command, move |connection| {
                counts(connection, &page)
            })
            .await?;
        let mut counts = StatusCounts::default();
        for (status, count, waiting) in counted {
            let of = match RunStatus::from(status) {
                // Such a session has no tab, and is in the list of all sessions.
                RunStatus::Unknown(_) => continue,
                RunStatus::Running => &mut counts.running,
                RunStatus::Completed => &mut counts.completed,
                RunStatus::Failed => &mut counts.failed,
                RunStatus::Cancelled => &mut counts.cancelled,
                RunStatus::TimedOut => &mut counts.timed_out,
                RunStatus::Limited => &mut counts.limited,
            };
            *of = count;
            counts.waiting_for_approval += waiting;
        }
        Ok(counts)
    }

    /// The chains of sessions and the sources of alerts. An index is read once for each word.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn facets(&self) -> Result<Facets, Error> {
        self.run(Operation::Command, facets).await
    }

    /// The newest alerts that were given up, newest first.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn dead_alerts(&self, limit: u32) -> Result<Vec<DeadAlert>, Error> {
        self.run(Operation::Command, move |connection| {
            dead(connection, limit)
        })
        .await
    }
}

fn entries(connection: &mut PgConnection, page: &SessionPage) -> QueryResult<Vec<Row>> {
    let filter = &page.filter;
    let mut query = alert_sessions::table
        .left_join(alerts::table.on(alerts::alert_id.eq(alert_sessions::session_id)))
        .order(alert_sessions::session_id.desc())
        .limit(i64::from(filter.limit))
        .select((
            session_line!(),
            waits_for_approval(),
            alert_sessions::executive_summary,
            sql::<Nullable<Text>>("left(alert_sessions.error, 500)"),
            alert_sessions::fingerprint,
            alert_sessions::event_seq,
            alert_sessions::joined_alerts,
            sql::<BigInt>(concat!(
                "(SELECT count(*) FROM timeline_events own WHERE own.session_id = alert_sessions.session_id ",
                "AND own.event_type = 'session_resumed')"
            )),
            sql::<BigInt>(of_session!("count(*)", "tool_interactions")),
            sql::<Array<BigInt>>(of_session!(
                "ARRAY[coalesce(sum(input_tokens), 0)::bigint, coalesce(sum(cached_tokens), 0)::bigint, \
                 coalesce(sum(output_tokens), 0)::bigint, coalesce(sum(thinking_tokens), 0)::bigint]",
                "llm_interactions"
            )),
            sql::<BigInt>(
                "(SELECT count(*) FROM alert_sessions asked WHERE asked.parent_id = alert_sessions.session_id)",
            ),
            sql::<Nullable<Text>>(of_last_event!("event_type")),
            sql::<Nullable<Timestamptz>>(of_last_event!("created_at")),
            sql::<Nullable<Text>>(of_last_event!("left(content, 300)")),
        ))
        .into_boxed();
    filtered!(query, filter);
    if let Some(before) = page.before {
        query = query.filter(alert_sessions::session_id.lt(before.0));
    }
    query.load(connection)
}

fn counts(
    connection: &mut PgConnection,
    page: &SessionPage,
) -> QueryResult<Vec<(ShownStatus, i64, i64)>> {
    let mut filter = page.filter.clone();
    filter.statuses.clear();
    filter.waits_for_approval = false;
    let waiting = format!("count(*) FILTER (WHERE {WAITS_FOR_APPROVAL})");
    let mut query = alert_sessions::table
        .left_join(alerts::table.on(alerts::alert_id.eq(alert_sessions::session_id)))
        .group_by(alert_sessions::status)
        .select((
            alert_sessions::status,
            count_star(),
            sql::<BigInt>(&waiting),
        ))
        .into_boxed();
    filtered!(query, filter);
    query.load(connection)
}

fn dead(connection: &mut PgConnection, limit: u32) -> QueryResult<Vec<DeadAlert>> {
    alerts::table
        .filter(alerts::place.eq("dead"))
        .order(alerts::alert_id.desc())
        .limit(i64::from(limit))
        .select((
            alerts::alert_id,
            alerts::received_at,
            alerts::dead_reason,
            alerts::dead_detail,
            alerts::subject,
            alerts::deliveries,
            alerts::title,
            sql::<Nullable<Text>>("left(alerts.body, 4000)"),
        ))
        .load(connection)
}

/// The words of an indexed column, each read by a step to the next higher one.
macro_rules! words_of {
    ($column:literal, $table:literal) => {
        concat!(
            "WITH RECURSIVE word AS ((SELECT ",
            $column,
            " AS w FROM ",
            $table,
            " WHERE ",
            $column,
            " IS NOT NULL ORDER BY ",
            $column,
            " LIMIT 1) UNION ALL SELECT (SELECT ",
            $column,
            " FROM ",
            $table,
            " WHERE ",
            $column,
            " > word.w ORDER BY ",
            $column,
            " LIMIT 1) FROM word WHERE word.w IS NOT NULL) ",
            "SELECT ARRAY(SELECT w FROM word WHERE w IS NOT NULL LIMIT $1) AS words"
        )
    };
}

#[derive(QueryableByName)]
struct Words {
    #[diesel(sql_type = Array<Text>)]
    words: Vec<String>,
}

fn facets(connection: &mut PgConnection) -> QueryResult<Facets> {
    let limit = i64::try_from(MAX_FACETS).unwrap_or(i64::MAX);
    let mut read = |statement: &str| -> QueryResult<Vec<String>> {
        let words: Words = diesel::sql_query(statement)
            .bind::<BigInt, _>(limit)
            .get_result(connection)?;
        Ok(words.words)
    };
    let chains = read(words_of!("chain", "alert_sessions"))?;
    let sources = read(words_of!("source", "alerts"))?;
    Ok(Facets { chains, sources })
}
