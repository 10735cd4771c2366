//! An investigation with the questions about it.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Integer, Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

use crate::engine::ports::{StoreError, Threads};
use crate::investigation::alert::{Alert, AlertStatus};
use crate::investigation::follow_up::{Exchange, PastCall, Thread};
use crate::investigation::ids::SessionId;

use crate::store::connect::Store;
use crate::store::error::Error;
use crate::store::rows::number;
use crate::store::schema::alert_sessions;
use crate::store::statement::statement;

/// More calls than this are not read: a prompt shows fewer.
const CALLS: i64 = 2_000;
/// More answers than this are not read: a prompt shows fewer.
const ANSWERS: i64 = 50;

pub(crate) struct ReadThread {
    session_id: Uuid,
}

statement!(
    ReadThread,
    "thread.sql",
    (SqlUuid, Text, Text, Nullable<Text>, Nullable<Text>, Text, Text, Text, Text, Text),
    [SqlUuid: session_id]
);

type ThreadRow = (Uuid, String, String, Option<String>, Option<String>, String, String, String, String, String);

pub(crate) struct ReadCalls {
    session_id: Uuid,
    limit: i64,
}

statement!(ReadCalls, "thread_calls.sql", (Integer, Text, Text, Bool), [SqlUuid: session_id, BigInt: limit]);

pub(crate) struct ReadAsked {
    session_id: Uuid,
    limit: i64,
}

statement!(ReadAsked, "thread_asked.sql", (Text, Text, BigInt), [SqlUuid: session_id, BigInt: limit]);

impl Threads for Store {
    async fn thread(&self, session: SessionId) -> Result<Option<Thread>, StoreError> {
        Ok(self.run(move |connection| read(connection, session.0)).await?)
    }
}

impl Store {
    /// The investigation that `session` is or asks about, and the questions about it that were taken up, in their
    /// order; empty when there is no such session.
    ///
    /// # Errors
    /// When the database is unavailable.
    pub async fn thread_sessions(&self, session: SessionId) -> Result<Vec<SessionId>, Error> {
        let ids: Vec<Uuid> = self
            .run(move |connection| {
                let found: Option<(Uuid, Option<Uuid>)> = alert_sessions::table
                    .find(session.0)
                    .select((alert_sessions::session_id, alert_sessions::parent_id))
                    .first(connection)
                    .optional()?;
                let Some((own, parent)) = found else { return Ok(Vec::new()) };
                let root = parent.unwrap_or(own);
                let questions: Vec<Uuid> = alert_sessions::table
                    .filter(alert_sessions::parent_id.eq(root))
                    .order((alert_sessions::created_at, alert_sessions::session_id))
                    .select(alert_sessions::session_id)
                    .load(connection)?;
                Ok(std::iter::once(root).chain(questions).collect())
            })
            .await?;
        Ok(ids.into_iter().map(SessionId).collect())
    }
}

fn read(connection: &mut PgConnection, session: Uuid) -> QueryResult<Option<Thread>> {
    let row: Option<ThreadRow> = (&ReadThread { session_id: session }).get_result(connection).optional()?;
    let Some((root, status, chain, analysis, error, alert_type, title, severity, source, text)) = row else {
        return Ok(None);
    };
    let calls: Vec<(i32, String, String, bool)> =
        (&ReadCalls { session_id: root, limit: CALLS }).get_results(connection)?;
    let asked: Vec<(String, String, i64)> =
        (&ReadAsked { session_id: root, limit: ANSWERS }).get_results(connection)?;
    let all = asked.first().map_or(0, |(.., all)| *all);
    let alert = Alert {
        source,
        alert_type,
        title,
        severity: severity.parse().unwrap_or_default(),
        status: AlertStatus::Firing,
        fingerprint: String::new(),
        members: Vec::new(),
        runbook_url: None,
        text,
    };
    let call = |(session_seq, tool, arguments, is_error)| PastCall {
        session_seq: number::from_int(session_seq),
        tool,
        arguments,
        is_error,
    };
    Ok(Some(Thread {
        root: SessionId(root),
        over: status != "running",
        chain,
        alert,
        outcome: status,
        analysis,
        error,
        calls: calls.into_iter().map(call).collect(),
        older: u32::try_from(all.saturating_sub(ANSWERS)).unwrap_or_default(),
        asked: asked.into_iter().rev().map(|(question, answer, _)| Exchange { question, answer }).collect(),
    }))
}
