//! Reads for people: sessions by time, and ids by any unique part of them.

use chrono::{DateTime, Utc};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Text;
use uuid::Uuid;

use crate::investigation::ids::SessionId;

use super::connect::Store;
use super::error::Error;
use super::schema::{alert_sessions, alerts};

/// Shorter parts of an id say too little.
const SHORTEST_PART: usize = 6;

/// A session, as a list shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSummary {
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
    /// The alert's title.
    pub title: Option<String>,
    /// `critical`, `high`, `normal` or `low`.
    pub severity: Option<String>,
    /// What chains are chosen by.
    pub alert_type: Option<String>,
    /// The chain that runs.
    pub chain: String,
    /// Its worker's name, the last one's when it is over.
    pub worker: String,
    /// How often it was claimed or handed back.
    pub epoch: i32,
    /// Number of its last event.
    pub last_seq: i32,
    /// The alert, cleaned and masked.
    pub alert: Option<String>,
    /// Cause, evidence and next step.
    pub executive_summary: Option<String>,
    /// The analysis.
    pub final_analysis: Option<String>,
    /// Why there is none.
    pub error: Option<String>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = alert_sessions, check_for_backend(diesel::pg::Pg))]
struct SessionRow {
    session_id: Uuid,
    created_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
    status: String,
    stop_reason: Option<String>,
    chain: String,
    worker_name: String,
    lease_epoch: i32,
    event_seq: i32,
    executive_summary: Option<String>,
    final_analysis: Option<String>,
    error: Option<String>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = alerts, check_for_backend(diesel::pg::Pg))]
struct AlertRow {
    title: Option<String>,
    severity: Option<String>,
    alert_type: Option<String>,
    body: Option<String>,
}

/// What a part of an id belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// This one.
    One(SessionId),
    /// Nothing.
    None,
    /// More than one; at most ten of them.
    Many(Vec<SessionId>),
    /// The part is shorter than six characters, or holds others than hexadecimal digits.
    NoId,
}

impl Store {
    /// The newest `limit` sessions, newest first.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn list_sessions(&self, limit: u32) -> Result<Vec<SessionSummary>, Error> {
        self.summaries(None, limit).await
    }

    /// One session; `None` if the id opened none.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn show_session(&self, session: SessionId) -> Result<Option<SessionSummary>, Error> {
        Ok(self.summaries(Some(session), 1).await?.pop())
    }

    /// The alert or session whose id begins or ends with `part` (dashes do not matter).
    ///
    /// # Errors
    /// When the database is away.
    pub async fn resolve(&self, part: &str) -> Result<Found, Error> {
        let part = part.trim().replace('-', "").to_ascii_lowercase();
        if part.len() < SHORTEST_PART || !part.chars().all(|c| c.is_ascii_hexdigit()) {
            return Ok(Found::NoId);
        }
        let mut ids: Vec<SessionId> = self
            .run(move |connection| {
                let plain = || sql::<Text>("replace(alert_id::text, '-', '')");
                alerts::table
                    .filter(plain().like(format!("{part}%")).or(plain().like(format!("%{part}"))))
                    .order(alerts::alert_id.desc())
                    .limit(10)
                    .select(alerts::alert_id)
                    .load(connection)
            })
            .await?
            .into_iter()
            .map(SessionId)
            .collect();
        Ok(match (ids.pop(), ids.is_empty()) {
            (None, _) => Found::None,
            (Some(only), true) => Found::One(only),
            (Some(last), false) => {
                ids.push(last);
                Found::Many(ids)
            }
        })
    }

    async fn summaries(&self, session: Option<SessionId>, limit: u32) -> Result<Vec<SessionSummary>, Error> {
        let rows: Vec<(SessionRow, Option<AlertRow>)> = self
            .run(move |connection| {
                let mut query = alert_sessions::table
                    .left_join(alerts::table.on(alerts::alert_id.eq(alert_sessions::session_id)))
                    .order(alert_sessions::session_id.desc())
                    .limit(i64::from(limit))
                    .select((SessionRow::as_select(), Option::<AlertRow>::as_select()))
                    .into_boxed();
                if let Some(session) = session {
                    query = query.filter(alert_sessions::session_id.eq(session.0));
                }
                query.load(connection)
            })
            .await?;
        Ok(rows.into_iter().map(|(session, alert)| summary(session, alert)).collect())
    }
}

fn summary(row: SessionRow, alert: Option<AlertRow>) -> SessionSummary {
    let alert = alert.unwrap_or(AlertRow { title: None, severity: None, alert_type: None, body: None });
    SessionSummary {
        session_id: SessionId(row.session_id),
        created_at: row.created_at,
        finished_at: row.finished_at,
        status: row.status,
        stop_reason: row.stop_reason,
        title: alert.title,
        severity: alert.severity,
        alert_type: alert.alert_type,
        chain: row.chain,
        worker: row.worker_name,
        epoch: row.lease_epoch,
        last_seq: row.event_seq,
        alert: alert.body,
        executive_summary: row.executive_summary,
        final_analysis: row.final_analysis,
        error: row.error,
    }
}
